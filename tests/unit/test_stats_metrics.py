import pytest
from analysis_data import campaign, frame, row, study, tour
from test_stats import only

from tare.measurements import METRIC_COLUMNS
from tare.metrics import further_rows, split_size
from tare.stats import overheads
from tare.verdicts import judged


@pytest.mark.parametrize(
    ("name", "metric", "size"),
    [
        ("half_round_trip_8B_s", "half_round_trip_s", 8),
        ("bandwidth_1048576B_MB_per_s", "bandwidth_MB_per_s", 1048576),
        ("half_round_trip_min_s", "half_round_trip_min_s", None),
        ("packets", "packets", None),
    ],
)
def test_a_message_size_is_read_from_the_name(name, metric, size):
    assert split_size(name) == (metric, size)


def test_a_repeats_further_numbers_become_rows():
    measured = row("pingpong/gcc14/O2/n2r2", "native", 2, 3, 1.5, metric="half_round_trip_s", value=9e-6)
    metrics = {"half_round_trip_s": 9e-6, "half_round_trip_8B_s": 9.5e-6, "parts": 2, "mode": "put", "ok": True}
    rows = further_rows(measured, metrics)
    assert [(line["metric"], line["size"], line["value"]) for line in rows] == [
        ("half_round_trip_s", 8, 9.5e-6),
        ("parts", None, 2),
    ]
    assert all(tuple(line) == METRIC_COLUMNS for line in rows)
    assert rows[0]["session"] == "s1"
    assert rows[0]["round"] == 3


def test_every_message_size_is_compared_apart():
    table = overheads(*tour())
    overlay = table[(table["backend"] == "docker-overlay") & (table["metric"] == "half_round_trip_s")]
    sized = overlay[overlay["size"].notna()]
    assert sized["size"].tolist() == [1, 64, 4096, 262144]
    assert (sized["ratio"] > 1.15).all()
    assert overlay["size"].isna().sum() == 1


def test_a_rates_overhead_by_size_is_turned_round():
    measurements, facts = campaign(apps={"bibw": 1.0}, rank_counts=(2,), repeats=3)
    facts = facts | {"metrics": tour()[1]["metrics"].query("app == 'bibw'").assign(block="bibw/gcc14/O3_native/n2r2")}
    table = overheads(measurements, facts)
    rates = table[(table["metric"] == "sent_bytes_per_s") & (table["backend"] == "docker-overlay")]
    assert len(rates) == 4
    assert (rates["ratio"] > 1.15).all()


def test_sizes_have_families_of_their_own():
    table = judged(*tour())
    counters = table[(table["metric"] == "context-switches") & table["counted"]]
    assert len(counters)
    assert (counters["p_difference_holm"].dropna() <= 1).all()


def test_without_further_metrics_there_are_the_two_times_only():
    rows = [row("dac/gcc14/O2/n2r1", name, 1, 1, 1.0) for name in ("native", "docker-host")]
    cells = [
        {"block": "dac/gcc14/O2/n2r1", "backend": "docker-host", "counted": True, "planned": 1, "failed": 0, "skipped": None}
    ]
    table = overheads(frame(rows), study(cells))
    assert table["metric"].tolist() == ["wall_s", "app_s"]
    assert only(table, "docker-host")["ratio"] == 1.0
