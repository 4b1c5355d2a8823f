"""From records to measurements.csv and study.json: nothing dropped, nothing invented."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from planning import BUILT, embedded, plans_of, study

from tare.cases import Block, block_from_document, plan_document
from tare.collect import COLUMNS, collect
from tare.config import load_manifests, load_toolchains
from tare.errors import TareError
from tare.files import save
from tare.records import Record, Store, append_record, make_stamp

ARMS = ["native", "docker-host"]
NO_SINGULARITY = {"native": {}, "docker": {"networks": {"host": {}}}}


class Bench:
    """A planned study of one block with hand-made records."""

    def __init__(self, root: Path, **changes: Any) -> None:
        planned = study(**{"backends": [*ARMS, "singularity"], **changes})
        self.plan = plan_document(planned, embedded(runtimes=NO_SINGULARITY), load_manifests(), load_toolchains())
        self.plan_path = root / "plan.json"
        save(self.plan_path, json.dumps(self.plan))
        self.store = Store(root)
        self.blocks = [block_from_document(document) for document in self.plan["blocks"].values()]

    @property
    def block(self) -> Block:
        return self.blocks[0]

    def record(self, arm: str, number: int | None, wall_s: float | None, block: Block | None = None, **more: Any) -> Record:
        setting = (block or self.block).setting
        return {
            **{"block": setting.id, "app": setting.app, "userland": setting.userland, "toolchain": setting.toolchain},
            **{"flags": setting.flags, "backend": arm, "nodes": setting.nodes, "ranks": setting.ranks},
            **{"processes": setting.processes, "interconnect": setting.interconnect, "binding": setting.binding},
            **{"oversubscribed": False, "virtual": True, "options": setting.options, "digests": BUILT},
            **{"plan": plans_of(block or self.block)[arm], "session": "s1", "round": number, "order": 1},
            **{"warmup": number is None, "hosts": ["a1", "a2"], "startup": {"image_s": 0.5, "containers_s": 1.25}},
            **{"container_argv": None, "argv": ["mpirun", arm], "started": "2031-01-01T00:00:00.000+00:00"},
            **{
                "status": "ok" if wall_s else "failed",
                "reason": None if wall_s else "exit 1: no",
                "exit_code": 0 if wall_s else 1,
            },
            **{"wall_s": wall_s, "app_s": wall_s and wall_s - 0.25, "metrics": {"half_round_trip_s": 1e-5} if wall_s else {}},
            **{"cpu": {"busy_s": 2.0, "ranks_s": 1.5, "other_s": 0.5}, "proof": []},
            **{"answer": {"ok": True}},
            **more,
        }

    def add(self, *records: Record) -> None:
        for record in records:
            append_record(self.store.records(record["block"], record["backend"]), record)

    def stamp(self, skipped: dict[str, str] | None = None) -> None:
        repeats = self.plan["study"]["repeats"]
        for block in self.blocks:
            plans = plans_of(block)
            reasons = {**block.skipped, **(skipped or {})}
            for arm in block.arms:
                stamp = make_stamp(self.store, block, arm.name, plans[arm.name], plans["native"], repeats, reasons.get(arm.name))
                save(self.store.stamp(block.setting.id, arm.name), json.dumps(stamp))

    def collect(self) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """The rows and facts that collecting writes."""
        measurements, facts = self.store.root / "measurements.csv", self.store.root / "study.json"
        collect(self.plan_path, load_manifests(), measurements, self.store.root / "metrics.csv", facts)
        with measurements.open(newline="") as file:
            rows = list(csv.DictReader(file))
        return rows, json.loads(facts.read_text())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def complete(bench: Bench) -> None:
    """Warm-up and two repeats of both arms; docker's second repeat failed."""
    for arm, times in (("native", [2.0, 2.5]), ("docker-host", [3.0, None])):
        bench.add(bench.record(arm, None, 9.0))
        bench.add(*(bench.record(arm, number, wall_s) for number, wall_s in enumerate(times, start=1)))
    bench.stamp()


def test_the_columns_are_those_of_the_contract_in_their_order() -> None:
    assert ",".join(COLUMNS) == (
        "app,toolchain,flags,backend,ranks,rep,wall_s,app_s,nodes,block,round,order,session,status,exit_code,processes,"
        "oversubscribed,interconnect,userland,metric,value,startup_s,other_cpu_s,started,hosts,virtual,plan,reason,"
        "arm,baseline,containers_per_node,affinity,mtu,cpu_quota,cpu_shares,ranks_on"
    )


def test_there_is_one_row_for_every_repeat_and_none_for_warm_ups(bench: Bench) -> None:
    complete(bench)
    rows, _ = bench.collect()
    assert [(row["backend"], row["rep"], row["round"], row["wall_s"], row["status"]) for row in rows] == [
        ("native", "1", "1", "2.0", "ok"),
        ("native", "2", "2", "2.5", "ok"),
        ("docker-host", "1", "1", "3.0", "ok"),
        ("docker-host", "2", "2", "", "failed"),
    ]


def test_a_row_says_what_was_measured_where_and_under_which_plan(bench: Bench) -> None:
    complete(bench)
    rows, _ = bench.collect()
    assert rows[2] == {
        **{"app": "dac", "toolchain": "gcc14", "flags": "O3_native", "backend": "docker-host", "ranks": "2", "rep": "1"},
        **{"wall_s": "3.0", "app_s": "2.75", "nodes": "2", "block": "dac/gcc14/O3_native/n2r2", "round": "1", "order": "1"},
        **{"session": "s1", "status": "ok", "exit_code": "0", "processes": "2", "oversubscribed": "False"},
        **{"interconnect": "ethernet", "userland": "debian13", "metric": "app_s", "value": "2.75", "startup_s": "1.75"},
        **{"other_cpu_s": "0.5", "started": "2031-01-01T00:00:00.000+00:00", "hosts": "a1 a2", "virtual": "True"},
        **{"plan": plans_of(bench.block)["docker-host"], "reason": "", "arm": "docker-host", "baseline": "native"},
        **dict.fromkeys(["containers_per_node", "affinity", "mtu", "cpu_quota", "cpu_shares", "ranks_on"], ""),
    }


def test_a_failed_repeat_has_no_time_but_a_reason(bench: Bench) -> None:
    complete(bench)
    (failed,) = [row for row in bench.collect()[0] if row["status"] == "failed"]
    assert {name: failed[name] for name in ("wall_s", "app_s", "value", "reason", "exit_code")} == {
        **{"wall_s": "", "app_s": "", "value": "", "reason": "exit 1: no", "exit_code": "1"},
    }


def test_an_arm_without_preparation_has_no_start_up_time_rather_than_zero(bench: Bench) -> None:
    bench.add(bench.record("native", 1, 2.0, startup={"image_s": None, "containers_s": None}))
    bench.add(bench.record("native", 2, 2.0, startup={"image_s": None, "containers_s": 0.75}))
    bench.stamp()
    assert [row["startup_s"] for row in bench.collect()[0]] == ["", "0.75"]


def test_an_app_may_be_compared_by_a_number_of_its_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, apps={"pingpong": {}})
    bench.add(bench.record("native", 1, 2.0), bench.record("docker-host", 1, None))
    bench.stamp()
    rows, _ = bench.collect()
    assert [(row["metric"], row["value"]) for row in rows] == [("half_round_trip_s", "1e-05"), ("half_round_trip_s", "")]


def test_records_of_another_plan_are_not_mixed_in(bench: Bench) -> None:
    bench.add(bench.record("native", 1, 7.0, plan="another"), bench.record("native", 2, 2.0))
    bench.stamp()
    rows, facts = bench.collect()
    assert [(row["rep"], row["wall_s"]) for row in rows] == [("1", "2.0")]
    assert facts["cells"][0]["measured"] == 1


def test_a_cell_that_the_site_lacks_has_no_row_and_its_reason_in_the_facts(bench: Bench) -> None:
    complete(bench)
    rows, facts = bench.collect()
    assert "singularity" not in {row["backend"] for row in rows}
    (skipped,) = [cell for cell in facts["cells"] if cell["skipped"]]
    assert skipped["backend"] == "singularity" and skipped["skipped"] == "site 'embedded' has no singularity"
    assert (skipped["planned"], skipped["measured"], skipped["failed"], skipped["argv"]) == (2, 0, 0, None)


def test_an_arm_that_could_not_be_made_ready_is_skipped_with_its_reason(bench: Bench) -> None:
    bench.stamp(skipped={"docker-host": "a2: docker: not running"})
    _, facts = bench.collect()
    assert {cell["backend"]: cell["skipped"] for cell in facts["cells"]} == {
        **{"native": None, "docker-host": "a2: docker: not running", "singularity": "site 'embedded' has no singularity"},
    }


def test_planned_measured_and_failed_add_up_in_the_facts(bench: Bench) -> None:
    complete(bench)
    _, facts = bench.collect()
    assert [(cell["backend"], cell["planned"], cell["measured"], cell["failed"], cell["pairs"]) for cell in facts["cells"]] == [
        ("native", 2, 2, 0, 2),
        ("docker-host", 2, 1, 1, 2),
        ("singularity", 2, 0, 0, 0),
    ]
    assert facts["cells"][1]["argv"] == ["mpirun", "docker-host"]


def test_probes_and_the_noise_floor_are_not_counted_among_the_cells(tmp_path: Path) -> None:
    bench = Bench(tmp_path, probes={"pingpong": {}}, noise_floor=True)
    bench.stamp()
    counted = {(cell["app"], cell["backend"]): cell["counted"] for cell in bench.collect()[1]["cells"]}
    assert {name for name, value in counted.items() if value} == {("dac", arm) for arm in (*ARMS, "singularity")}
    assert not counted["dac", "native-aa"] and not counted["pingpong", "native"]


def test_the_facts_say_from_what_and_when_they_were_made(bench: Bench) -> None:
    complete(bench)
    _, facts = bench.collect()
    assert facts["study"] == bench.plan["study"] and facts["site"] == bench.plan["site"]
    assert (facts["baseline"], facts["seed"], facts["repeats"]) == ("native", 20220818, 2)
    assert set(facts["provenance"]) == {"commit", "snakemake", "made"}


def test_one_app_at_one_size_has_one_answer_whatever_ran_it(bench: Bench) -> None:
    bench.add(
        bench.record("native", 1, 2.0, answer={"checksum": "aa"}), bench.record("docker-host", 1, 2.0, answer={"checksum": "aa"})
    )
    bench.add(bench.record("docker-host", 2, None, answer={"checksum": "bb"}), bench.record("docker-host", 3, None, answer=None))
    bench.stamp()
    assert len(bench.collect()[0]) == 4
    bench.add(bench.record("docker-host", 4, 2.0, answer={"checksum": "bb"}))
    with pytest.raises(TareError) as caught:
        bench.collect()
    here = bench.block.setting.id
    assert str(caught.value) == (
        f"{here}: docker-host answered bb; {here}: native answered aa; one of them is wrong, so no table is made;"
        " remove the wrong one's records"
    )


def test_another_size_may_have_another_answer(tmp_path: Path) -> None:
    bench = Bench(tmp_path, flags=["O2", "O3"])
    one, two = bench.blocks
    bench.add(bench.record("native", 1, 2.0, one, answer={"checksum": "aa"}, options={"n": 1}))
    bench.add(bench.record("native", 1, 2.0, two, answer={"checksum": "bb"}, options={"n": 2}))
    bench.stamp()
    assert len(bench.collect()[0]) == 2


def test_a_block_that_was_not_measured_is_named(bench: Bench) -> None:
    with pytest.raises(TareError) as caught:
        bench.collect()
    path = bench.store.stamp(bench.block.setting.id, "native")
    assert str(caught.value) == f"{path}: no stamp; the block was not measured; run snakemake again"


def test_a_failed_record_with_a_time_is_refused(bench: Bench) -> None:
    bench.add(bench.record("native", 1, 2.0, status="failed"))
    bench.stamp()
    with pytest.raises(TareError, match="a failed record has a time: found"):
        bench.collect()
