"""Profiled launches and system counters: where messages and seconds went, what is absent, and what is missing on resume."""

import json
from pathlib import Path
from typing import Any

import pytest
from analysis_data import tour
from planning import BACKENDS, BUILT, block, built, embedded_context, plans_of

from tare import profile, system
from tare.backends import load_backends
from tare.errors import TareError
from tare.launch import Program, rank_argv
from tare.profiles import decompositions
from tare.records import Store, append_record, drop_contradicted, find_missing, find_unprofiled, make_stamp
from tare.tables import decomposition

RANKS: list[dict[str, Any]] = [
    {
        **{"rank": 0, "size": 3, "span_s": 2.0, "init_s": 0.2, "finalize_s": 0.1, "user_s": 1.0, "sys_s": 0.4},
        **{"calls": {"MPI_Send": {"count": 2, "bytes": 16, "seconds": 0.5}}, "to": [[1, 1, 8], [2, 1, 8]]},
    },
    {
        **{"rank": 1, "size": 3, "span_s": 2.0, "init_s": 0.2, "finalize_s": 0.1, "user_s": 1.0, "sys_s": 0.2},
        **{"calls": {"MPI_Recv": {"count": 1, "bytes": 8, "seconds": 1.0}}, "to": []},
    },
    {
        **{"rank": 2, "size": 3, "span_s": 2.0, "init_s": 0.2, "finalize_s": 0.1, "user_s": 1.0, "sys_s": 0.0},
        **{"calls": {"MPI_Recv": {"count": 1, "bytes": 8, "seconds": 0.0}}, "to": [[0, 3, 30]]},
    },
]


def record(containers: str = "abc", **more: Any) -> dict[str, Any]:
    """The record of a profiled launch of three ranks, two of them on the first node."""
    proof = [{"rank": number, "ns": {"mnt": name}} for number, name in enumerate(containers)]
    found = {"kind": "mpi", "nodes": profile.homes([2, 1]), "ranks": RANKS}
    return {"proof": proof, "wall_s": 3.0, "app_s": 1.5, "reason": None, "profile": found, **more}


def test_messages_go_inside_a_container_between_containers_or_between_nodes() -> None:
    apart, together = profile.traffic(record("abc")), profile.traffic(record("aac"))
    assert apart["inter-container"] == together["intra-container"] == {"messages": 1, "bytes": 8}
    assert apart["inter-node"] == together["inter-node"] == {"messages": 4, "bytes": 38}
    assert apart["intra-container"] == together["inter-container"] == {"messages": 0, "bytes": 0}


def test_the_matrix_has_senders_down_and_receivers_across() -> None:
    assert profile.matrix(record()) == [[0, 8, 8], [0, 0, 0], [30, 0, 0]]


def test_the_parts_of_a_launch_add_up_to_its_time() -> None:
    parts = profile.decomposition(3.0, RANKS)
    assert parts == pytest.approx({"startup_s": 1.0, "init_s": 0.3, "mpi_s": 0.5, "compute_s": 1.2, "system_s": 0.2})
    assert sum(parts[name] for name in ("startup_s", "init_s", "mpi_s", "compute_s")) == pytest.approx(3.0)


def test_a_call_that_some_ranks_never_made_is_averaged_over_all() -> None:
    assert profile.calls(RANKS)["MPI_Recv"] == pytest.approx({"count": 2, "bytes": 16, "seconds": 1 / 3, "longest_s": 1.0})


def test_a_counter_that_one_rank_lacks_is_absent_and_never_zero() -> None:
    share = {"counters": {"cycles": {"value": 5.0}}}
    absent = {"counters": {"cycles": {"value": None, "reason": "no such counter"}}}
    assert profile.counters([share, share]) == {"cycles": {"value": 10.0, "reason": None}}
    assert profile.counters([share, absent]) == {"cycles": {"value": None, "reason": "no such counter"}}


@pytest.mark.parametrize(
    ("cycles", "alone", "ratio"), [(3e9, 2e9, 0.5), (2e9, 2e9, 0.0), (None, 2e9, None), (2e9, None, None), (2e9, 0.0, None)]
)
def test_contention_is_the_growth_of_cycles_over_one_core(cycles: float | None, alone: float | None, ratio: float | None) -> None:
    assert profile.contention(cycles, alone) == ratio


def test_the_cost_of_profiling_is_stated_and_a_failed_profile_has_no_parts() -> None:
    found = profile.summary([record()], 2.0)
    assert found is not None
    assert found["mpi"]["cost"] == 1.5
    failed = profile.summary([record(wall_s=None, reason="exit 1")], 2.0)
    assert failed == {"mpi": {"reason": "exit 1", "wall_s": None, "app_s": 1.5, "timed_s": 2.0}}
    assert profile.summary([], 2.0) is None


def test_a_rank_without_a_profile_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rank-0.json").write_text(json.dumps(RANKS[0]))
    with pytest.raises(TareError, match="rank 1: no profile"):
        profile.read_ranks(tmp_path, 2)


@pytest.mark.parametrize("name", BACKENDS)
def test_the_library_is_loaded_into_the_program_alone_whatever_the_backend(name: str) -> None:
    context, backend = embedded_context(), load_backends()[name]
    plain = Program("mpirun", "build/app", {}, (1, 1), False, False)
    loaded = Program("mpirun", "build/app", {}, (1, 1), False, False, preload=("/p.so",), environment=("A=1",))
    before, after = rank_argv(plain, backend, context), rank_argv(loaded, backend, context)
    assert after == [*before[:-1], "env", "LD_PRELOAD=/p.so", "A=1", before[-1]]


def test_a_profile_is_missing_until_it_is_on_record_and_never_counts_as_a_repeat(tmp_path: Path) -> None:
    one, store = block(backends=["native", "singularity"]), Store(tmp_path)
    plans, setting = plans_of(one), one.setting.id
    assert find_unprofiled(store, one, plans, ["mpi"]) == (("native", "mpi"), ("singularity", "mpi"))
    done = {"plan": plans["native"], "warmup": False, "session": "s", "round": None, "status": "ok", "profile": {"kind": "mpi"}}
    append_record(store.profiles(setting, "native"), done)
    assert find_unprofiled(store, one, plans, ["mpi"]) == (("singularity", "mpi"),)
    assert find_unprofiled(store, one, {**plans, "native": "other"}, ["mpi"])[0] == ("native", "mpi")
    assert find_missing(store, one, plans, 1).rounds == {"native": 1, "singularity": 1}


def test_a_stamp_is_dropped_when_a_planned_profile_is_not_there(tmp_path: Path) -> None:
    one, store = block(backends=["native"]), Store(tmp_path)
    plan, path = plans_of(one)["native"], store.stamp(one.setting.id, "native")
    append_record(
        store.records(one.setting.id, "native"),
        {"plan": plan, "warmup": False, "session": "s", "round": 1, "status": "ok"},
    )
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(make_stamp(store, one, "native", plan, plan, 1, None)) + "\n")
    assert drop_contradicted(store, one, built(one, BUILT), 1) == []
    (line,) = drop_contradicted(store, one, built(one, BUILT), 1, ["perf"])
    assert "its profile perf is not there" in line


def test_interfaces_that_lead_nowhere_are_not_counted() -> None:
    text = "Inter-|\n face |\n" + "".join(f"{name}: 1 2 0 0 0 0 0 0 30 4 0 0 0 0 0 0\n" for name in ("lo", "veth1", "eth0"))
    assert system.read_interfaces(text) == {"eth0": {"rx_bytes": 1, "rx_packets": 2, "tx_bytes": 30, "tx_packets": 4}}


def test_only_the_jobs_own_cpus_are_counted() -> None:
    text = "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 0 0 0 0 0 0 50 100 0 0\ncpu1 0 0 0 0 0 0 7 7 0 0\n"
    assert system.read_ticks(text, {0}, 100) == {"softirq_s": 0.5, "steal_s": 1.0}


def test_throttling_is_absent_where_no_control_group_tells_it(tmp_path: Path) -> None:
    assert system.read_throttling(tmp_path) is None
    for name, text in (("one", "nr_throttled 1\nthrottled_time 1500000000\n"), ("two", "throttled_usec 500000\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpu.stat").write_text(text)
    assert system.read_throttling(tmp_path) == pytest.approx(2.0)


def test_a_difference_keeps_what_moved() -> None:
    still = {"rx_bytes": 1, "rx_packets": 1, "tx_bytes": 1, "tx_packets": 1}
    before = {"interfaces": {"eth0": still, "eth1": still}, "softirq_s": 1.0, "steal_s": 0.0, "throttled_s": None, "load": 0.0}
    moved = {**still, "tx_bytes": 101}
    after = {**before, "interfaces": {"eth0": moved, "eth1": still, "new": still}, "softirq_s": 1.5, "load": 0.3}
    found = system.difference(before, after)
    assert found["interfaces"] == {"eth0": {"rx_bytes": 0, "rx_packets": 0, "tx_bytes": 100, "tx_packets": 0}}
    assert (found["softirq_s"], found["throttled_s"], found["load"]) == (0.5, None, 0.3)


@pytest.mark.parametrize(
    ("sent", "labelled", "nodes", "verdict"),
    [
        ({"eth0": 1e6, "eth1": 10}, "eth0", 2, ("eth0", "as labelled")),
        ({"eth0": 10, "eth1": 1e6}, "eth0", 2, ("eth1", "not as labelled: eth0")),
        ({"eth0": 10}, "eth0", 2, (None, "too little to tell")),
        ({"eth0": 1e6}, None, 2, ("eth0", "the site names no interface")),
        ({"eth0": 1e6}, "eth0", 1, (None, "one node")),
    ],
)
def test_traffic_is_where_the_label_says(
    sent: dict[str, float], labelled: str | None, nodes: int, verdict: tuple[str, str]
) -> None:
    assert system.traffic_verdict(sent, labelled, nodes) == verdict


def test_the_table_says_what_profiling_cost() -> None:
    table = decomposition.build(*tour())
    assert table["cost"].to_list() == pytest.approx([1.5 / 1.4] * len(table))
    assert decompositions({"cells": []}).empty
