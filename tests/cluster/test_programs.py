"""Every program, our own and packaged, measured once natively, under Singularity and on Docker's overlay: no cell missing."""

from collections.abc import Callable

import pytest
from studies import Study

from tare.records import read_records
from tare.yamlio import ROOT, read_yaml

TOUR = read_yaml(ROOT / "config" / "studies" / "bench-tour.yaml")
ARMS = ["native", "singularity", "docker-overlay"]
APPS = sorted(TOUR["apps"])
PACKAGED = ("hpcc", "lammps")


@pytest.fixture(scope="module")
def tour(new_study: Callable[..., Study]) -> Study:
    """The bench tour on three backends, one round."""
    kept = {key: TOUR[key] for key in ("apps", "flags", "toolchains", "noise_floor", "nodes", "ranks", "warmup")}
    study = new_study("programs", **kept, backends=ARMS, repeats=1)
    study.measure(f"results/{study.name}/measurements.csv", timeout_s=540)
    return study


def test_there_is_a_program_of_every_manifest_in_the_tour() -> None:
    assert APPS == sorted(path.stem for path in (ROOT / "src" / "apps").glob("*.yaml"))


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("app", APPS)
def test_a_program_answers_and_proves_where_it_ran(tour: Study, app: str, arm: str) -> None:
    flags = "packaged" if app in PACKAGED else tour.document["flags"][0]
    block = f"{app}/{tour.document['toolchains'][0]}/{flags}/n2r2"
    (record,) = read_records(tour.store.records(block, arm))
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["wall_s"] > record["app_s"] > 0
    assert [rank["rank"] for rank in record["proof"]] == list(range(record["processes"]))
