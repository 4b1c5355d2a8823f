"""Arms: a study's ``compare:`` crossed with its backends, names, partners, and what the analysis gets to see of them."""

from pathlib import Path
from typing import Any

import pytest
from planning import backend, block, built, embedded, other, planned, plans_of

from tare.arms import Arm, arm_document, arm_from_document, with_baselines
from tare.cases import Block
from tare.collect import arm_facts
from tare.config import load_study
from tare.errors import TareError
from tare.prepare import Prepared
from tare.records import Store, append_record, find_missing, plan_digests
from tare.runner import prepare_all

TWO: dict[str, Any] = {"toolchains": ["gcc", "gcc14"], "flags": ["O2"], "compare": {"toolchains": ["gcc", "gcc14"]}}


def compared(**compare: Any) -> Block:
    """The only block of a study that compares something."""
    backends = ["native", "docker-host", "docker-overlay"]
    settled = {key: compare[key] for key in ("toolchains", "flags") if key in compare}
    return block(other(), backends=backends, compare=compare, ranks=[8], **{"toolchains": ["distribution"], **settled})


def names(of: Block) -> list[str]:
    return [arm.name for arm in of.arms]


def test_without_compare_an_arm_is_its_backend_and_paired_with_native() -> None:
    arms = block(noise_floor=True).arms
    assert all(arm.name == arm.label for arm in arms)
    assert {arm.baseline for arm in arms} == {"native"}
    assert all(arm.factors == {} for arm in arms)


def test_compared_toolchains_share_a_block_whose_id_joins_them() -> None:
    found = compared(toolchains=["gcc", "gcc14"])
    assert found.setting.id == "dac/gcc+gcc14/O3_native/n2r8"
    assert names(found) == [
        *("native+gcc", "native+gcc14", "docker-host+gcc", "docker-host+gcc14", "docker-overlay+gcc", "docker-overlay+gcc14"),
    ]
    assert {arm.label for arm in found.arms} == {"native", "docker-host", "docker-overlay"}


def test_an_arm_is_paired_with_the_native_one_of_the_same_toolchain_and_flags() -> None:
    found = compared(toolchains=["gcc", "gcc14"], flags=["O0", "O3"])
    assert found.arm("docker-host+gcc14+O0").baseline == "native+gcc14+O0"
    assert found.arm("native+gcc+O3").baseline == "native+gcc+O3"
    assert found.setting.of(found.arm("docker-host+gcc14+O0")).binary == "build/debian13/gcc14/O0/dac"


def test_where_native_lacks_a_toolchain_its_arms_are_paired_with_another_native_one() -> None:
    arms = compared(toolchains=["gcc", "gcc14"]).arms
    again = {arm.name: arm.baseline for arm in with_baselines(arms, {"native+gcc": "no such module"})}
    assert again["docker-host+gcc"] == again["docker-host+gcc14"] == "native+gcc14"


def test_the_second_native_arm_stands_beside_each_native_one() -> None:
    arms = block(noise_floor=True, backends=["native"], **TWO).arms
    assert [(arm.name, arm.label, arm.baseline) for arm in arms[2:]] == [
        ("native-aa+gcc", "native-aa", "native+gcc"),
        ("native-aa+gcc14", "native-aa", "native+gcc14"),
    ]


def test_native_runs_in_the_nodes_own_userland_only() -> None:
    found = compared(userlands=["debian13", "debian11"])
    assert names(found) == ["native", "docker-host", "docker-host+debian11", "docker-overlay", "docker-overlay+debian11"]
    assert found.setting.of(found.arm("docker-host+debian11")).userland == "debian11"
    assert found.arm("docker-host+debian11").baseline == "native"


def test_an_interconnect_that_is_not_the_usual_one_has_a_native_of_its_own() -> None:
    found = compared(interconnects=["roce", "gigabit"])
    assert found.setting.interconnect == "roce"
    assert found.arm("docker-host+gigabit").baseline == "native+gigabit"
    assert found.arm("docker-host").baseline == "native"
    assert found.setting.of(found.arm("native+gigabit")).interconnect == "gigabit"


def test_an_interconnect_that_the_site_lacks_is_refused() -> None:
    with pytest.raises(
        TareError, match=r"^study.yaml: compare.interconnects: site 'embedded' has no 'fats'; did you mean 'fast'"
    ):
        planned(compare={"interconnects": ["fats"]})


def test_toolchains_stand_in_compare_or_beside_it_but_not_in_both() -> None:
    with pytest.raises(TareError, match="toolchains: stands in compare as well"):
        load_study({"compare": {"toolchains": ["gcc14"]}})


def test_an_arm_read_back_from_the_plan_is_the_arm_that_was_planned() -> None:
    for arm in compared(toolchains=["gcc", "distribution"], userlands=["debian13", "debian11"]).arms:
        assert arm_from_document(arm_document(arm)) == arm


def test_what_is_planned_of_an_arm_does_not_change_when_another_is_compared_with_it() -> None:
    alone, beside = block(toolchains=["gcc"], flags=["O2"]), block(toolchains=["gcc"], flags=["O2"], compare={"mtu": [None]})
    assert plans_of(alone)["native"] == plans_of(beside)["native"]


def test_another_binary_of_one_arm_is_another_plan_of_that_arm_only() -> None:
    found = compared(toolchains=["gcc", "gcc14"])
    digests = built(found)
    changed = {**digests, "native+gcc": {**digests["native+gcc"], "binary": "b2"}}
    one, two = plan_digests(found, digests), plan_digests(found, changed)
    assert {name for name in one if one[name] != two[name]} == {"native+gcc"}


def test_a_missing_arm_is_measured_again_with_its_own_partner_only(tmp_path: Path) -> None:
    found, store = compared(toolchains=["gcc", "gcc14"]), Store(tmp_path)
    plans = plans_of(found)
    for name in names(found):
        if name != "docker-host+gcc14":
            record = {"plan": plans[name], "session": "s1", "round": 1, "warmup": False}
            append_record(store.records(found.setting.id, name), record)
    missing = find_missing(store, found, plans, 1)
    assert missing.arms_of_round(0) == {"docker-host+gcc14", "native+gcc14"}


def test_the_analysis_sees_a_block_of_its_own_for_each_compared_toolchain() -> None:
    found = compared(toolchains=["gcc", "gcc14"])
    seen = [arm_facts(found, arm) for arm in found.arms]
    assert {(row["block"], row["toolchain"]) for row in seen} == {
        ("dac/gcc/O3_native/n2r8", "gcc"),
        ("dac/gcc14/O3_native/n2r8", "gcc14"),
    }
    assert len({(row["block"], row["backend"]) for row in seen}) == len(seen)


def test_two_arms_of_one_block_never_look_the_same_to_the_analysis() -> None:
    found = compared(userlands=["debian13", "debian11"], interconnects=["roce", "gigabit"], ranks_on=["cores", "threads"])
    seen = [(facts["block"], facts["backend"]) for facts in (arm_facts(found, arm) for arm in found.arms)]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("key", ["toolchain", "affinities"])
def test_an_unknown_factor_is_refused(key: str) -> None:
    with pytest.raises(TareError, match=key):
        load_study({"compare": {key: ["x"]}})


def test_a_study_on_the_embedded_site_may_compare_both_interconnects() -> None:
    found = block(embedded(), backends=["native"], compare={"interconnects": ["ethernet", "fast"]})
    assert found.arms == (
        Arm("native", "native", "native", "native", interconnect="ethernet"),
        Arm("native+fast", "native", "native+fast", "native+fast", interconnect="fast"),
    )


def ready(arm: Arm) -> Prepared:
    """What an arm looks like that could be prepared."""
    return Prepared(backend(arm.backend), (), "mpirun (Open MPI) 5.0.7", ())


def test_where_native_cannot_be_prepared_no_arm_is_and_all_say_why() -> None:
    asked = []

    def prepare(arm: Arm) -> Prepared:
        asked.append(arm.name)
        raise TareError("a1: mpirun --version: exit 127: not found")

    arms = block(noise_floor=True, backends=["docker-host", "native"]).arms
    prepared, reasons = prepare_all(list(arms), prepare)
    assert (prepared, asked) == ({}, ["native"])
    because = "its native partner native cannot run: a1: mpirun --version: exit 127: not found"
    assert reasons == {"native": "a1: mpirun --version: exit 127: not found", "docker-host": because, "native-aa": because}


def test_where_one_toolchains_native_cannot_be_prepared_the_other_toolchain_is_measured() -> None:
    def prepare(arm: Arm) -> Prepared:
        if arm.name == "native+gcc":
            raise TareError("a1: no gcc")
        return ready(arm)

    prepared, reasons = prepare_all(list(compared(toolchains=["gcc", "gcc14"]).arms), prepare)
    assert set(prepared) == {"native+gcc14", "docker-host+gcc14", "docker-overlay+gcc14"}
    assert set(reasons) == {"native+gcc", "docker-host+gcc", "docker-overlay+gcc"}


def test_a_container_that_cannot_be_prepared_leaves_the_others_to_be_measured() -> None:
    def prepare(arm: Arm) -> Prepared:
        if arm.backend == "docker-host":
            raise TareError("a2: docker: not running")
        return ready(arm)

    prepared, reasons = prepare_all(list(compared().arms), prepare)
    assert (set(prepared), reasons) == ({"native", "docker-overlay"}, {"docker-host": "a2: docker: not running"})
