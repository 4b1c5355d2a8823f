import pandas as pd
import pytest

from tare import figures, replay, report, simulate, tables
from tare.errors import TareError
from tare.importing import made
from tare.measurements import read_pair
from tare.simulate import simulated
from tare.summary import summary
from tare.verdicts import judged
from tare.yamlio import ROOT

TRY = ROOT / "config" / "studies" / "try.yaml"
MODEL = simulate.DEFAULTS | {
    **{"name": "x", "where": "x.yaml", "programs": {"dac": 2.0}, "ranks": [1], "repeats": 20, "noise": 0.005, "seed": 1},
    **{"backends": {"native": 1.0, "native-aa": 1.0, "docker-host": 1.0, "docker-overlay": 1.1}},
}


def verdicts(**changes):
    table = judged(*simulated(MODEL | changes))
    return table[table["metric"] == "app_s"].set_index("backend")


def test_a_planted_overhead_is_found_and_a_planted_zero_is_called_equivalent():
    found = verdicts()
    assert found.loc["docker-overlay", "verdict"] == "slower"
    assert found.loc["docker-overlay", "low"] < 1.1 < found.loc["docker-overlay", "high"]
    assert found.loc["docker-host", "verdict"] == found.loc["native-aa", "verdict"] == "equivalent"


def test_a_drift_and_outliers_do_not_hide_a_planted_overhead():
    found = verdicts(drift_per_round=0.01, outliers={"share": 0.02, "factor": 1.1}, repeats=40)
    assert found.loc["docker-overlay", "verdict"] == "slower"
    assert found.loc["docker-host", "verdict"] != "slower"


def test_a_planted_drift_is_reported():
    assert tables.build("drift", *simulated(MODEL | {"drift_per_round": 0.01}))["verdict"].tolist() == ["drift"]


def test_planted_failures_are_failed_repeats_without_a_time():
    measurements, facts = simulated(MODEL | {"failures": 0.3})
    failed = measurements[measurements["status"] == "failed"]
    assert 0 < len(failed) < len(measurements)
    assert failed[["wall_s", "app_s"]].isna().all(axis=None)
    assert sum(cell["failed"] for cell in facts["cells"]) == len(failed)


def test_false_alarms_are_as_rare_as_promised():
    alarms = []
    for seed in range(100):
        table = judged(*simulated(MODEL | {"repeats": 5, "seed": seed, "ranks": [1, 2, 4], "backends": ZEROS}))
        wall = table[(table["metric"] == "wall_s") & table["counted"]]
        alarms.append(bool(wall["verdict"].isin(["slower", "faster"]).any()))
    assert sum(alarms) <= 12  # at most 5 % of 100 expected; more than 12 has a chance below 0.2 %


ZEROS = {"native": 1.0, "docker-host": 1.0, "singularity": 1.0}


def test_the_same_seed_gives_the_same_study():
    first, second = simulated(MODEL)[0], simulated(MODEL)[0]
    pd.testing.assert_frame_equal(first, second)
    assert not first["wall_s"].equals(simulated(MODEL | {"seed": 2})[0]["wall_s"])


def test_adaptive_repeats_stop_when_precise_and_at_the_maximum_otherwise():
    until = {"min": 5, "max": 12, "until": 0.02}
    quiet, _ = simulated(MODEL | {"repeats": until})
    noisy, facts = simulated(MODEL | {"repeats": until, "noise": 0.2})
    assert quiet["round"].max() < 12
    assert noisy["round"].max() == 12
    assert "0 of 1 blocks reached it" in report.render(noisy, facts, {})


def test_everything_says_that_it_is_simulated():
    measurements, facts = simulated(MODEL)
    assert tables.build("overhead", measurements, facts)["simulated"].all()
    assert "simulated" in [text.get_text() for text in figures.draw("times_box", measurements, facts).texts]
    assert "simulated: nothing here was measured" in report.render(measurements, facts, {})
    assert "SIMULATED" in summary(measurements, facts)


def test_the_rehearsal_makes_every_file(tmp_path, capsys):
    path = tmp_path / "small.yaml"
    small = {
        "name: try": "name: small",
        "[1, 2, 4]": "[1]",
        "max: 40": "max: 6",
        "{dac: 2.0, masterslave: 3.0, spmd: 1.6}": "{dac: 2.0}",
    }
    text = TRY.read_text()
    for old, new in small.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    assert replay.main([str(path), "--results", str(tmp_path)]) == 0
    folder = tmp_path / "small"
    made_files = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    expected = {f"tables/{name}{suffix}" for name in tables.names() for suffix in tables.FORMATS}
    expected |= {f"figures/{name}{suffix}" for name in figures.names() for suffix in figures.FORMATS}
    assert made_files == expected | {"measurements.csv", "metrics.csv", "study.json", "report.html"}
    assert "skipped in 2 of 2 cells (site 'simulated' has no podman)" in " ".join(capsys.readouterr().out.split())
    read_pair(folder / "measurements.csv", folder / "study.json")


def test_the_rehearsal_finds_what_it_planted():
    table = judged(*(made(TRY)[index] for index in (0, 2)))
    wall = table[(table["metric"] == "app_s") & table["counted"] & table["skipped"].isna()]
    found = wall.groupby("backend")["verdict"].agg(set)
    assert found["docker-overlay"] == found["docker-macvlan"] == {"slower"}
    assert "slower" not in found["docker-host"]


def test_a_misspelt_key_of_a_simulation_is_refused(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(TRY.read_text().replace("noise:", "nose:"))
    with pytest.raises(TareError, match=r"unknown key 'nose'|missing key 'noise'"):
        made(path)


@pytest.mark.parametrize("colour", [True, False])
def test_the_summary_has_a_line_per_setting(colour):
    measurements, facts = simulated(MODEL)
    text = summary(measurements, facts, colour)
    assert ("\033[31m" in text) is colour
    assert "dac/simulated/O3_native/n2r1" in text
    assert "docker-overlay: slower in 1 of 1 cell" in text
