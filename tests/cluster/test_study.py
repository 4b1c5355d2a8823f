"""A small study on all five backends, measured by real Slurm jobs; then what a user does with it next.

The tests build on each other and run in this order: every one of them that measures costs a Slurm job.
"""

import csv
import ipaddress
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from studies import ARMS, ROOT, Study, output, run

from tare.proof import Label, Place, contradictions, parse_list
from tare.records import Record, file_sha256
from tare.yamlio import read_yaml

SITE = read_yaml(ROOT / "config" / "sites" / "embedded.yaml")
ETHERNET = SITE["interconnects"]["ethernet"]["subnet"]
NETWORKS = SITE["runtimes"]["docker"]["networks"]
SUBNETS = {
    **dict.fromkeys(("native", "singularity", "docker-host"), ETHERNET),
    "docker-macvlan": NETWORKS["macvlan"]["subnet"],
    "docker-overlay": NETWORKS["overlay"]["subnet"],
}


@pytest.fixture(scope="module")
def study(new_study: Callable[..., Study]) -> Study:
    """Measured as a user would: the profile by its bare name, nothing else."""
    study = new_study("small", probes={"pingpong": {"options": {"iterations": 20, "samples": 20}}})
    done = run(*study.argv(f"results/{study.name}/measurements.csv"), timeout_s=300)
    assert done.returncode == 0, done.stderr + study.logs()
    return study


# --- what was measured --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("app", ["dac", "pingpong"])
@pytest.mark.parametrize("arm", ARMS)
def test_every_cell_was_measured_as_often_as_planned_none_failed_none_skipped(study: Study, app: str, arm: str) -> None:
    stamp = study.stamp(arm, app)
    assert (stamp["planned"], stamp["measured"], stamp["failed"], stamp["pairs"], stamp["skipped"]) == (2, 2, 0, 2, None)


def test_the_table_has_a_row_for_every_repeat_of_every_cell(study: Study) -> None:
    with (study.root / "measurements.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted((row["app"], row["backend"], row["rep"], row["status"]) for row in rows) == sorted(
        (app, arm, rep, "ok") for app in ("dac", "pingpong") for arm in ARMS for rep in ("1", "2")
    )
    assert all(float(row["wall_s"]) > float(row["app_s"]) > 0 for row in rows)
    assert {row["virtual"] for row in rows} == {"True"}


def by_rank(record: Record) -> list[dict[str, Any]]:
    """A record's proof in rank order."""
    return sorted(record["proof"], key=lambda rank: int(rank["rank"]))


def proof(study: Study, arm: str, app: str = "dac") -> list[dict[str, Any]]:
    """What the ranks of a cell's last repeat proved."""
    return by_rank(study.records(arm, app)[-1])


def test_ranks_ran_on_both_nodes_each_on_the_cpu_of_its_own(study: Study) -> None:
    for arm in ARMS:
        (record, *_) = study.records(arm)
        assert len(set(record["hosts"])) == 2
        masks = [parse_list(rank["cpus_allowed"]) for rank in by_rank(record)]
        assert len(masks) == 2 and all(len(mask) == 1 for mask in masks)


def test_network_namespaces_are_the_nodes_own_or_the_containers_as_labelled(study: Study) -> None:
    for rank in (0, 1):
        networks = {arm: proof(study, arm)[rank]["ns"]["net"] for arm in ARMS}
        assert networks["native"] == networks["singularity"] == networks["docker-host"]
        assert len({networks["native"], networks["docker-macvlan"], networks["docker-overlay"]}) == 3


def test_containers_are_containers_and_native_is_none(study: Study) -> None:
    for rank in (0, 1):
        mounts = [proof(study, arm)[rank]["ns"]["mnt"] for arm in ARMS]
        assert len(set(mounts)) == len(ARMS)


@pytest.mark.parametrize("app", ["dac", "pingpong"])
@pytest.mark.parametrize("arm", ARMS)
def test_ranks_talked_over_the_labelled_network(study: Study, arm: str, app: str) -> None:
    subnet = ipaddress.ip_network(SUBNETS[arm])
    links = [link for rank in proof(study, arm, app) for link in rank["links"]]
    assert links
    assert all(ipaddress.ip_address(link[end]) in subnet for link in links for end in ("local", "peer"))


@pytest.mark.parametrize("app", ["dac", "pingpong"])
def test_all_backends_ran_the_very_same_binary_libc_and_mpi(study: Study, app: str) -> None:
    ranks = [rank for arm in ARMS for rank in proof(study, arm, app)]
    assert {rank["binary_sha256"] for rank in ranks} == {file_sha256(ROOT / f"build/debian13/gcc14/O3_native/{app}")}
    assert len({(rank["libc"], rank["mpi"]) for rank in ranks}) == 1


# --- real runs held against other labels --------------------------------------------------------------------------------------


def label(study: Study, arm: str) -> Label:
    """A backend's true label, made of what native ranks saw of the nodes and its own ranks of their containers."""
    runtime, _, network = arm.partition("-")
    places = tuple(
        Place(
            hostname=own["hostname"],
            node_ns=native["ns"],
            container_ns={kind: own["ns"][kind] for kind in ("net", "mnt", "uts", "pid")} if runtime == "docker" else None,
            cpus=parse_list(native["cpus_allowed"]),
            cores=(parse_list(native["cpus_allowed"]),),
        )
        for native, own in zip(proof(study, "native"), proof(study, arm), strict=True)
    )
    return Label(
        processes=2,
        slots=(1, 1),
        places=places,
        runtime=runtime,
        network=network or "host",
        subnet=SUBNETS[arm],
        bound=True,
        binary_sha256=file_sha256(ROOT / "build/debian13/gcc14/O3_native/dac"),
        mpi=proof(study, "native")[0]["mpi"],
    )


@pytest.mark.parametrize("arm", ARMS)
def test_a_real_run_bears_its_own_label_out(study: Study, arm: str) -> None:
    assert contradictions(label(study, arm), proof(study, arm)) == []


def test_a_real_overlay_run_is_rejected_as_docker_hosts(study: Study) -> None:
    found = contradictions(label(study, "docker-host"), proof(study, "docker-overlay"))
    assert any("a network namespace of its own; labelled docker on network 'host'" in problem for problem in found)
    assert any(f"labelled network {ETHERNET}" in problem for problem in found)


@pytest.mark.parametrize(("held_against", "ran_as"), list(permutations(ARMS, 2)))
def test_no_backends_real_run_passes_for_another_backends(study: Study, held_against: str, ran_as: str) -> None:
    assert contradictions(label(study, held_against), proof(study, ran_as))


# --- what a user does next ----------------------------------------------------------------------------------------------------


def jobs() -> list[str]:
    """This user's jobs that wait or run."""
    return output("squeue", "--noheader", "--me", "--format", "%i").split()


def test_running_again_with_nothing_to_do_submits_no_job(study: Study) -> None:
    before = study.contents(), study.contents("pingpong")
    done = run(*study.argv(f"results/{study.name}/measurements.csv"))
    assert done.returncode == 0 and "Nothing to be done" in done.stdout + done.stderr
    assert (study.contents(), study.contents("pingpong")) == before


def test_deleting_one_arms_records_measures_that_cell_again_with_native_partners_and_nothing_else(study: Study) -> None:
    before = study.contents()
    study.path("docker-macvlan").unlink()
    study.measure(study.target("docker-macvlan"))
    after = study.contents()
    assert {arm for arm in ARMS if after[arm] == before[arm]} == {"singularity", "docker-host", "docker-overlay"}
    assert after["native"].startswith(before["native"])
    assert (study.rounds("native"), study.rounds("docker-macvlan")) == ([1, 2, 3, 4], [3, 4])
    assert study.stamp("docker-macvlan")["pairs"] == 2
    assert all(record["status"] == "ok" for record in study.records("docker-macvlan"))


def test_more_repeats_top_every_cell_up_and_change_no_line_that_was_there(study: Study) -> None:
    before = study.contents()
    study.write(repeats=3)
    study.measure()
    after = study.contents()
    assert all(after[arm].startswith(before[arm]) and after[arm] != before[arm] for arm in ARMS)
    assert {arm: study.rounds(arm) for arm in ARMS} == {
        **{arm: [1, 2, 5] for arm in ("singularity", "docker-host", "docker-overlay")},
        **{"native": [1, 2, 3, 4, 5], "docker-macvlan": [3, 4, 5]},
    }
    assert {study.stamp(arm)["pairs"] for arm in ARMS if arm != "native"} == {3}


def test_another_size_is_measured_anew_and_the_two_are_never_mixed(study: Study) -> None:
    before = study.contents()
    old = study.records("native")[0]
    study.write(apps={"dac": {"options": {"rectangles": 20_000_001}}}, probes={}, repeats=1, backends=["native", "docker-host"])
    study.measure(f"results/{study.name}/measurements.csv")
    after = study.contents()
    assert all(after[arm].startswith(before[arm]) for arm in ("native", "docker-host"))
    new = [record for record in study.records("native") if record["plan"] != old["plan"]]
    assert [record["options"]["rectangles"] for record in new] == [20_000_001]
    with (study.root / "measurements.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted((row["backend"], row["rep"]) for row in rows) == [("docker-host", "1"), ("native", "1")]
    assert {row["plan"] for row in rows}.isdisjoint({old["plan"]})
