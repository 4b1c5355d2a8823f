"""The simulated site: a whole study is planned, measured, collected and judged, and what was planted must be found."""

import json
import math
import re
from itertools import count

import numpy as np
import pandas as pd
import pytest
from analysis_data import campaign
from planning import study

from tare import figures, report, tables
from tare.cases import plan_document
from tare.collect import collect
from tare.config import complete_site, load_manifests, load_site, load_toolchains
from tare.errors import TareError
from tare.files import save
from tare.measurements import read_pair
from tare.precision import may_stop
from tare.ratios import log_ratio_paired
from tare.runner import measure_block
from tare.simulate import SESSIONS, Model
from tare.summary import summary
from tare.verdicts import judged
from tare.yamlio import ROOT, read_yaml

SITE = read_yaml(ROOT / "config" / "sites" / "simulated.yaml")
RATIOS = {"docker-host": 1.0, "docker-overlay": 1.1}
BACKENDS = ["native", *RATIOS]
CALM = {"noise": 0.005, "drift_per_round": 0.0, "outliers": {"share": 0.0, "factor": 1.0}, "failures": 0.0, "ratios": RATIOS}


@pytest.fixture
def rehearsed(tmp_path):
    """A function that runs a small study on a simulated site; all that a real study runs through but Snakemake."""
    numbers = count()

    def run(planted=(), **changes):
        site = complete_site({**SITE, "simulation": SITE["simulation"] | CALM | dict(planted)}, "simulated.yaml")
        small = {"toolchains": ["gcc"], "backends": BACKENDS, "noise_floor": True, "ranks": [1], "repeats": 20, "warmup": 0}
        planned = study(**{**small, **changes})
        root = tmp_path / f"study{next(numbers)}"
        plan = plan_document(planned, site, load_manifests(), load_toolchains())
        save(root / "plan.json", json.dumps(plan))
        for setting in plan["blocks"]:
            measure_block(root / "plan.json", setting, SESSIONS)
        files = [root / name for name in ("measurements.csv", "metrics.csv", "study.json")]
        collect(root / "plan.json", load_manifests(), *files)
        return read_pair(files[0], files[2])

    return run


def verdicts(rehearsal, metric="app_s"):
    table = judged(*rehearsal)
    return table[(table["metric"] == metric) & table["size"].isna()].set_index("backend")


def test_a_planted_overhead_is_found_and_a_planted_zero_is_called_equivalent(rehearsed):
    found = verdicts(rehearsed())
    assert found.loc["docker-overlay", "verdict"] == "slower"
    assert found.loc["docker-overlay", "low"] < 1.1 < found.loc["docker-overlay", "high"]
    assert found.loc["docker-host", "verdict"] == found.loc["native-aa", "verdict"] == "equivalent"


def test_a_planted_loss_of_bandwidth_is_an_overhead(rehearsed):
    found = verdicts(rehearsed(apps={"contention": {}}, ranks=[2]), "bandwidth_MB_per_s")
    assert found.loc["docker-overlay", ["verdict", "unit", "better"]].tolist() == ["slower", "MB/s", "higher"]
    assert found.loc["docker-overlay", "median"] < found.loc["docker-overlay", "median_native"]
    assert found.loc["docker-host", "verdict"] == "equivalent"


def test_a_drift_and_outliers_do_not_hide_a_planted_overhead(rehearsed):
    planted = {"drift_per_round": 0.01, "outliers": {"share": 0.02, "factor": 1.1}}
    found = verdicts(rehearsed(planted, repeats=40))
    assert found.loc["docker-overlay", "verdict"] == "slower"
    assert found.loc["docker-host", "verdict"] != "slower"


def test_a_planted_drift_is_reported(rehearsed):
    assert tables.build("drift", *rehearsed({"drift_per_round": 0.01}))["verdict"].tolist() == ["drift"]


def test_planted_failures_are_failed_repeats_without_a_time(rehearsed):
    measurements, facts = rehearsed({"failures": 0.3})
    failed = measurements[measurements["status"] == "failed"]
    assert 0 < len(failed) < len(measurements)
    assert failed[["wall_s", "app_s"]].isna().all(axis=None)
    assert set(failed["reason"]) == {"a planted failure"}
    assert sum(cell["failed"] for cell in facts["cells"]) == len(failed)


def test_the_same_seed_gives_the_same_numbers(rehearsed):
    first, second, other = (rehearsed(seed=seed)[0]["wall_s"] for seed in (1, 1, 2))
    pd.testing.assert_series_equal(first, second)
    assert not first.equals(other)


def test_adaptive_repeats_stop_when_precise_and_at_the_maximum_otherwise(rehearsed):
    until = {"min": 5, "max": 12, "until": 0.02}
    quiet, _ = rehearsed(repeats=until)
    noisy, facts = rehearsed({"noise": 0.2}, repeats=until)
    assert quiet["round"].max() < 12
    assert noisy["round"].max() == 12
    page = report.render(noisy, facts, {})
    assert "0 of 1 blocks reached it" in page
    assert "dac/gcc/O3_native/n2r1" in page


def test_everything_says_that_it_is_simulated(rehearsed):
    measurements, facts = rehearsed(repeats=3)
    assert set(measurements["hosts"]) == {"simulated1"}
    for name in tables.names():
        table = tables.build(name, measurements, facts)
        assert table["simulated"].all(), name
        assert all(tables.SIMULATED in tables.text(name, table, suffix) for suffix in (".md", ".tex")), name
    for name in figures.names():
        assert "simulated" in [text.get_text() for text in figures.draw(name, measurements, facts).texts], name
    assert "simulated: nothing here was measured" in report.render(measurements, facts, {})
    assert "SIMULATED" in summary(measurements, facts)


def test_a_program_that_the_model_does_not_know_is_refused(rehearsed):
    with pytest.raises(TareError, match="simulation: programs: no 'ep'; known: contention, dac"):
        rehearsed(apps={"ep": {}})


@pytest.mark.parametrize("change", [{"launch": "local"}, {"simulation": None}])
def test_a_model_without_a_simulated_launch_and_the_reverse_are_refused(change):
    site = {key: value for key, value in {**SITE, **change}.items() if value is not None}
    with pytest.raises(TareError, match=r"simulated.yaml: launch: 'simulated' and the key simulation belong together"):
        complete_site(site, "simulated.yaml")


# --- the statistics on a thousand studies drawn from the site's own model -----------------------------------------------------


MODEL = load_site("simulated")["simulation"] | {"failures": 0.0}
STUDIES = 1000
TRUTH = 1.05


def campaigns(rounds, arms, seed, **changes):
    """Times of so many arms in a thousand studies: studies × arms × rounds; the first arm is native."""
    model = Model(**{**MODEL, **changes})
    numbers = np.broadcast_to(np.arange(1.0, rounds + 1), (STUDIES, arms, rounds))
    return model.factors(numbers, np.random.default_rng(seed))


def covered(n, **changes):
    """In which part of a thousand studies the interval covers the planted overhead."""
    native, cell = np.moveaxis(campaigns(n, 2, seed=n, **changes), 1, 0)
    intervals = [log_ratio_paired(ratios).interval(0.95) for ratios in TRUTH * cell / native]
    return np.mean([low <= TRUTH <= high for low, high in intervals])


@pytest.mark.parametrize("n", [5, 10, 20])
def test_intervals_cover_the_planted_overhead(n):
    assert 0.93 <= covered(n, outliers={"share": 0.0, "factor": 1.0}) <= 0.97


@pytest.mark.parametrize("n", [5, 10, 20])
def test_outliers_make_intervals_wide_and_never_too_narrow(n):
    assert 0.93 <= covered(n, outliers={"share": 0.01, "factor": 1.15}) <= 0.98


@pytest.mark.parametrize("noise", [0.008, 0.012, 0.016])
def test_intervals_cover_the_planted_overhead_after_adaptive_stopping(noise):
    covered = [adaptive(study, 0.01) for study in campaigns(50, 3, seed=9, noise=noise)]
    assert 0.93 <= np.mean(covered) <= 0.97


def adaptive(times, until):
    """Take rounds of three arms as they come until it may stop; tell whether the container's interval covers the truth."""
    names = ("native", "native-aa", "docker-host")
    planted = dict(zip(names, times * np.array([[1.0], [1.0], [TRUTH]]), strict=True))
    for rounds in range(5, times.shape[1] + 1):
        if may_stop({arm: {("s", n): arm_times[n] for n in range(rounds)} for arm, arm_times in planted.items()}, until, 0.95):
            break
    low, high = log_ratio_paired(planted["docker-host"][:rounds] / planted["native"][:rounds]).interval(0.95)
    return low <= TRUTH <= high


def test_false_alarms_are_as_rare_as_promised():
    p_values = []
    for rounds in (5, 20):
        native, *cells = np.moveaxis(campaigns(rounds, 7, seed=rounds), 1, 0)
        p_values.append([[log_ratio_paired(ratios).p_difference() for ratios in cell / native] for cell in cells])
    smallest = np.min(np.array(p_values), axis=1)  # Holm calls some cell different where the smallest p of six is at most α / 6
    assert (np.mean(smallest <= 0.05 / 6, axis=1) <= 0.066).all()  # 5 % expected at most; above 6.6 % has a chance of 1 %


def test_a_whole_studys_false_alarms_are_as_rare_as_promised():
    zeros = {"native": 1.0, "docker-host": 1.0, "singularity": 1.0}
    alarms = []
    for seed in range(60):
        table = judged(*campaign(planted=zeros, apps={"dac": 2.0}, seed=seed))
        wall = table[(table["metric"] == "wall_s") & table["counted"]]
        alarms.append(bool(wall["verdict"].isin(["slower", "faster"]).any()))
    assert sum(alarms) <= 8  # at most 5 % of 60 expected; more than 8 has a chance below 0.3 %


def test_the_model_draws_what_it_promises():
    drawn = campaigns(20, 5, seed=3, noise=0.02, outliers={"share": 0.1, "factor": 3.0}, failures=0.25)
    assert np.mean(np.isnan(drawn)) == pytest.approx(0.25, abs=0.01)
    known = drawn[~np.isnan(drawn)]
    assert np.mean(known > 2) == pytest.approx(0.1, abs=0.01)
    calm = np.log(known[known < 2])
    assert np.std(calm) == pytest.approx(math.hypot(0.02, 0.001 * np.std(np.arange(20))), abs=0.001)


def test_a_wide_summary_is_broken_into_tables_that_fit():
    planted = {"native": 1.0, **{f"docker-overlay+{count}ctn": 1.1 for count in range(2, 14)}}
    lines = summary(*campaign(planted=planted)).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("dac/gcc14/O3_native/n2r1") for line in lines) == 3
    assert sum(" %▲" in line for line in lines) == 27


@pytest.mark.parametrize("colour", [True, False])
def test_the_summary_has_a_line_per_setting(rehearsed, colour):
    text = summary(*rehearsed(), colour)
    assert ("\033[31m" in text) is colour
    assert "dac/gcc/O3_native/n2r1" in text
    assert "docker-overlay: slower in 1 of 1 cell" in re.sub(r"\033\[[0-9;]*m", "", text)
