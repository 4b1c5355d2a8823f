"""Which userland a toolchain is used in, and what a study that compares either plans."""

from collections.abc import Mapping as AnyMapping

import pytest
from planning import block, embedded, other, study

from tare.cases import plan_blocks
from tare.config import check_source, load_manifests, load_toolchains
from tare.errors import TareError
from tare.progress import estimate
from tare.userlands import HOST, load_userlands, userland_of
from tare.workflow import Workflow

V9 = {"from": "source", "userlands": ["alpine312-v9", "debian11-v9"]}


@pytest.mark.parametrize(
    ("name", "toolchain", "wanted", "found"),
    [
        ("distribution", {}, "debian12", "debian12"),
        ("gcc9", {"userlands": ["debian11"]}, "debian13", "debian11"),
        ("gcc14", {"userlands": ["debian13"]}, "debian13", "debian13"),
        ("v9", V9, "debian11", "debian11-v9"),
        ("v9", V9, "alpine312", "alpine312-v9"),
        ("v9", V9, "debian13", "alpine312-v9"),
    ],
)
def test_a_toolchain_is_used_in_a_userland_that_has_it(
    name: str, toolchain: AnyMapping[str, object], wanted: str, found: str
) -> None:
    assert userland_of(name, dict(toolchain), wanted) == found


def test_every_userland_of_a_toolchain_has_a_recipe() -> None:
    named = {userland for toolchain in load_toolchains().values() for userland in toolchain.get("userlands", [])}
    assert named <= set(load_userlands())


def test_compared_toolchains_run_each_in_its_userland() -> None:
    found = block(toolchains=["gcc9", "gcc14"], compare={"toolchains": ["gcc9", "gcc14"]}, backends=["native", "docker-host"])
    own = {arm.name: found.setting.of(arm).binary for arm in found.arms}
    assert own["docker-host+gcc9"] == own["native+gcc9"] == "build/debian11/gcc9/O3_native/dac"
    assert own["docker-host+gcc14"] == own["native+gcc14"] == "build/debian13/gcc14/O3_native/dac"


def test_a_toolchain_of_the_hosts_modules_is_built_on_the_host_for_native_and_in_the_image_for_containers() -> None:
    site = other(toolchains={"v9": {"modules": ["gcc/9.3.0", "openmpi/3.1.1"]}})
    found = block(site, toolchains=["v9"], userland="alpine312", backends=["native", "docker-host"])
    own = {arm.name: found.setting.of(arm).userland for arm in found.arms}
    assert own["native"] == HOST
    assert own["docker-host"] == "alpine312-v9"


@pytest.mark.parametrize(
    ("userlands", "message"),
    [
        (["debian13", "debian10"], r"compare.userlands: unknown userland 'debian10'.*userlands.ini"),
        (["debian13", "debian12"], r"compare.userlands: debian12 has no toolchain 'gcc14'; it is in debian13; choose"),
    ],
    ids=["no recipe", "not in that one"],
)
def test_userlands_that_cannot_be_compared_are_refused(userlands: list[str], message: str) -> None:
    wrong = study(compare={"userlands": userlands})
    with pytest.raises(TareError, match=message):
        plan_blocks(wrong, embedded(), load_manifests(), load_toolchains())


@pytest.mark.parametrize(
    ("toolchain", "message"),
    [
        ({"from": "modules"}, r"x: from: 'modules' needs modules"),
        ({"from": "source"}, r"x: from: 'source' needs userlands"),
        ({"from": "host", "modules": ["gcc/9"]}, r"x: modules: found beside from: 'host'"),
    ],
)
def test_a_toolchain_says_what_its_source_needs(toolchain: dict[str, object], message: str) -> None:
    with pytest.raises(TareError, match=message):
        check_source(toolchain, "x")


def test_a_dry_run_says_blocks_launches_and_node_hours() -> None:
    text = estimate(Workflow.read({"study": "config/studies/kononowicz2022.yaml"}))
    assert text.startswith("212 blocks, 9328 launches, about ") and "node hours" in text


def test_without_a_time_to_expect_the_estimate_is_an_upper_bound() -> None:
    assert "at most" in estimate(Workflow.read({}))
