"""Planning: settings, slots, cells, blocks, and the order that the seed fixes."""

import json

import pytest
from planning import BACKENDS, block, embedded, other, planned, study

from tare.cases import block_from_document, plan_document, round_order
from tare.config import load_manifests, load_study, load_toolchains
from tare.errors import TareError

SETTING = "dac/gcc14/O3_native/n2r2"


def test_the_default_study_has_nine_blocks_of_five_counted_cells_and_a_probe_beside_them() -> None:
    default = load_study({})
    document = plan_document(default, embedded(), load_manifests(), load_toolchains())
    kinds = [entry["setting"]["kind"] for entry in document["blocks"].values()]
    assert sorted(kinds) == ["app"] * 9 + ["probe"]
    assert document["blocks"]["pingpong/gcc14/O3_native/n2r2"]["setting"]["kind"] == "probe"
    counted = [arm for entry in document["blocks"].values() for arm in entry["arms"] if entry["setting"]["kind"] == "app"]
    assert sum(arm in BACKENDS for arm in counted) == 45
    assert all(entry["skipped"] == {} for entry in document["blocks"].values())


def test_a_study_is_expanded_over_toolchains_flags_nodes_and_ranks() -> None:
    blocks = planned(toolchains=["gcc14", "gcc"], flags=["O0", "O3"], nodes=[1, 2], ranks=[1, 4])
    assert [entry.setting.id for entry in blocks] == [
        f"dac/{toolchain}/{flags}/n{nodes}r{ranks}"
        for toolchain in ("gcc14", "gcc")
        for flags in ("O0", "O3")
        for nodes in (1, 2)
        for ranks in (1, 4)
    ]


def test_threads_are_in_the_settings_name_and_count_as_cpus() -> None:
    one, four = planned(apps={"spmd": {"threads": 3}}, nodes=[1], ranks=[1, 4])
    assert [one.setting.id, four.setting.id] == ["spmd/gcc14/O3_native/n1r1t3", "spmd/gcc14/O3_native/n1r4t3"]
    assert one.setting.threads == 3
    assert four.oversubscribed
    assert planned(apps={"spmd": {"threads": 1}}, nodes=[1], ranks=[1])[0].setting.id == "spmd/gcc14/O3_native/n1r1"


def test_threads_of_an_app_that_has_none_are_refused() -> None:
    with pytest.raises(TareError, match=r"apps\.dac: threads: found 2; dac has no threads; leave the key out"):
        planned(apps={"dac": {"threads": 2}})


def test_pairs_need_an_even_number_of_ranks() -> None:
    with pytest.raises(TareError, match=r"apps\.contention: ranks: found 3; contention needs an even number: 2, 4, 6, …"):
        planned(apps={"contention": {"ranks": [3]}})


def test_an_app_may_have_ranks_and_nodes_of_its_own() -> None:
    blocks = planned(apps={"dac": {}, "spmd": {"ranks": [3], "nodes": [1]}}, ranks=[2])
    assert [entry.setting.id for entry in blocks] == ["dac/gcc14/O3_native/n2r2", "spmd/gcc14/O3_native/n1r3"]


def test_a_program_for_exactly_two_ranks_has_one_block_whatever_ranks_are_planned() -> None:
    blocks = planned(probes={"pingpong": {}}, ranks=[1, 2, 4])
    assert [entry.setting.id for entry in blocks if entry.setting.kind == "probe"] == ["pingpong/gcc14/O3_native/n2r2"]


@pytest.mark.parametrize(
    ("app", "nodes", "ranks", "slots"),
    [
        ("dac", 2, 1, (1,)),
        ("dac", 2, 2, (1, 1)),
        ("dac", 4, 8, (2, 2, 2, 2)),
        ("spmd", 4, 7, (2, 2, 2, 1)),
        ("spmd", 4, 5, (2, 1, 1, 1)),
        ("spmd", 3, 2, (1, 1)),
        ("masterslave", 1, 1, (2,)),
        ("masterslave", 2, 2, (2, 1)),
        ("masterslave", 2, 1, (1, 1)),
    ],
)
def test_processes_are_spread_evenly_over_no_more_nodes_than_there_are_processes(
    app: str, nodes: int, ranks: int, slots: tuple[int, ...]
) -> None:
    assert block(other(), apps={app: {}}, nodes=[nodes], ranks=[ranks]).setting.slots == slots


@pytest.mark.parametrize(
    ("app", "ranks", "cpus_per_node", "oversubscribed"),
    [("dac", 2, 1, False), ("dac", 4, 1, True), ("dac", 4, 2, False), ("masterslave", 2, 1, True), ("masterslave", 1, 1, False)],
)
def test_a_block_is_oversubscribed_where_a_node_has_fewer_cpus_than_processes(
    app: str, ranks: int, cpus_per_node: int, oversubscribed: bool
) -> None:
    found = block(embedded(cpus_per_node=cpus_per_node), apps={app: {}}, ranks=[ranks])
    assert found.oversubscribed == oversubscribed


def test_the_noise_floor_is_one_more_arm_that_runs_as_native() -> None:
    arms = {arm.name: arm.backend for arm in block(noise_floor=True).arms}
    assert arms == {name: name for name in BACKENDS} | {"native-aa": "native"}


def test_an_arm_that_the_site_lacks_stays_in_the_plan_with_its_reason() -> None:
    found = block(embedded(runtimes={"native": {}, "docker": {"networks": {"host": {}}}}))
    assert [arm.name for arm in found.arms] == BACKENDS
    assert [arm.name for arm in found.runnable] == ["native", "docker-host"]
    assert found.skipped["singularity"] == "site 'embedded' has no singularity"


def test_the_sites_first_interconnect_is_taken_where_the_study_names_none() -> None:
    assert block(other()).setting.interconnect == "gigabit"
    assert block(other(), interconnect="roce").setting.interconnect == "roce"


def test_options_that_are_not_set_have_the_published_sizes() -> None:
    assert block(apps={"spmd": {"options": {"steps": 3}}}).setting.options == {
        "grid": "200x400x600",
        "steps": 3,
        "coefficient": 1,
        "retain": 0.99,
        "overlap": 0,
    }


# --- order --------------------------------------------------------------------------------------------------------------------

ORDER = [
    ["singularity", "docker-host", "docker-overlay", "docker-macvlan", "native"],
    ["docker-overlay", "docker-macvlan", "docker-host", "singularity", "native"],
    ["native", "singularity", "docker-macvlan", "docker-host", "docker-overlay"],
]


def test_the_order_of_the_first_rounds_is_fixed_by_the_seed() -> None:
    assert [round_order(20220818, SETTING, number, BACKENDS) for number in (1, 2, 3)] == ORDER


def test_the_plan_writes_the_order_of_every_round_down_before_anything_runs() -> None:
    document = plan_document(study(repeats=3), embedded(), load_manifests(), load_toolchains())
    assert document["blocks"][SETTING]["order"] == ORDER


def test_more_repeats_leave_the_order_of_the_earlier_rounds_as_it_was() -> None:
    document = plan_document(study(repeats=8), embedded(), load_manifests(), load_toolchains())
    assert document["blocks"][SETTING]["order"][:3] == ORDER


def test_the_order_does_not_depend_on_how_the_study_lists_its_backends() -> None:
    assert round_order(20220818, SETTING, 1, BACKENDS[::-1]) == ORDER[0]


def test_every_round_runs_every_arm_once_in_an_order_of_its_own() -> None:
    orders = [round_order(1, SETTING, number, BACKENDS) for number in range(1, 41)]
    assert all(sorted(order) == sorted(BACKENDS) for order in orders)
    assert {order[0] for order in orders} == set(BACKENDS)
    assert len(set(map(tuple, orders))) > 25


@pytest.mark.parametrize(("seed", "setting"), [(20220819, SETTING), (20220818, "dac/gcc14/O3_native/n2r4")])
def test_another_seed_or_setting_has_another_order(seed: int, setting: str) -> None:
    assert [round_order(seed, setting, number, BACKENDS) for number in (1, 2, 3)] != ORDER


@pytest.mark.parametrize(
    "changes",
    [{}, {"ranks": [4]}, {"noise_floor": True}, {"apps": {"spmd": {}}}],
    ids=["plain", "oversubscribed", "noise-floor", "text-options"],
)
def test_a_block_read_back_from_the_plan_is_the_block_that_was_planned(changes: dict[str, object]) -> None:
    site = embedded(runtimes={"native": {}, "singularity": {}})
    document = plan_document(study(**changes), site, load_manifests(), load_toolchains())
    (written,) = json.loads(json.dumps(document))["blocks"].values()
    assert block_from_document(written) == block(site, **changes)
