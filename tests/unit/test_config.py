"""A user's mistake is one line: where, what is wrong, what was found, what is allowed, what to do next."""

from pathlib import Path
from typing import Any

import pytest
from planning import STUDY, embedded

from tare.backends import load_backends
from tare.cases import plan_blocks
from tare.config import Mapping, checked_option, complete_site, load_manifests, load_site, load_study, load_toolchains
from tare.errors import TareError
from tare.workflow import Workflow
from tare.yamlio import ROOT, check, read_yaml

KEYS = ", ".join(sorted(read_yaml(ROOT / "workflow" / "schemas" / "study.schema.yaml")["properties"]))


def complaint(study: Mapping, site: Mapping | None = None) -> str:
    """What a user is told who plans this study."""
    with pytest.raises(TareError) as caught:
        plan_blocks(load_study(study), site or embedded(), load_manifests(), load_toolchains())
    return str(caught.value)


def changed(**changes: Any) -> Mapping:
    """The small study as somebody's --configfile, with some keys changed; None takes a key away."""
    return {key: value for key, value in (STUDY | changes).items() if value is not None}


def dac(**options: Any) -> Mapping:
    """The apps of a study that runs dac with these options."""
    return {"dac": {"options": options}}


OPTIONS = {app: manifest["options"] for app, manifest in load_manifests().items()}
RECTANGLES, GRID = OPTIONS["dac"]["rectangles"], OPTIONS["spmd"]["grid"]
DAC_OPTIONS = ", ".join(sorted(OPTIONS["dac"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repeat": 3}, f"--configfile: unknown key 'repeat'; did you mean 'repeats'? known: {KEYS}"),
        ({"zzz": 3}, f"--configfile: unknown key 'zzz'; known: {KEYS}"),
        ({"seed": None}, "--configfile: missing key 'seed'; add it"),
        ({"repeats": "five"}, "--configfile: repeats: found 'five'; must be of type integer or object"),
        ({"repeats": 0}, "--configfile: repeats: 0 is less than the minimum of 1"),
        ({"ranks": []}, "--configfile: ranks: [] should be non-empty"),
        ({"ranks": [2, 2]}, "--configfile: ranks: [2, 2] has non-unique elements"),
        ({"ranks": [2, 2.5]}, "--configfile: ranks[1]: found 2.5; must be of type integer"),
        ({"binding": "socket"}, "--configfile: binding: 'socket' is not one of: core, none"),
        (
            {"name": "../elsewhere"},
            "--configfile: name: '../elsewhere' does not match '^[A-Za-z0-9][A-Za-z0-9_.-]*$'",
        ),
        (
            {"backends": ["native", "singularty"]},
            "--configfile: backends[1]: unknown backend 'singularty'; did you mean 'singularity'?"
            f" known: {', '.join(sorted(load_backends()))}",
        ),
        (
            {"backends": ["docker-host"]},
            "--configfile: backends: 'native' is missing; every overhead is measured against it; add it",
        ),
        ({"ranks": [1, 3]}, "--configfile: apps.dac: ranks: found 3; dac needs a power of two: 1, 2, 4, 8, …"),
        (
            {"probes": {"pingpong": {"ranks": [4]}}},
            "--configfile: probes.pingpong: ranks: found 4; pingpong runs on exactly 2",
        ),
        (
            {"nodes": [3]},
            "--configfile: apps.dac: nodes: found 3; site 'embedded' has 2; ask for fewer or choose another site",
        ),
        (
            {"apps": {"dca": {}}},
            f"--configfile: apps.dca: unknown app 'dca'; did you mean 'dac'? known: {', '.join(sorted(load_manifests()))}",
        ),
        (
            {"apps": dac(rectangle=5)},
            f"--configfile: apps.dac.options: unknown option 'rectangle' of dac; did you mean 'rectangles'? known: {DAC_OPTIONS}",
        ),
        (
            {"apps": dac(rectangles="many")},
            f"--configfile: apps.dac.options.rectangles: found 'many'; must be of type integer: {RECTANGLES['help']}",
        ),
        (
            {"apps": dac(rectangles=2.5)},
            f"--configfile: apps.dac.options.rectangles: found 2.5; must be of type integer: {RECTANGLES['help']}",
        ),
        (
            {"apps": dac(rectangles=True)},
            f"--configfile: apps.dac.options.rectangles: found True; must be of type integer: {RECTANGLES['help']}",
        ),
        (
            {"apps": dac(rectangles=0)},
            f"--configfile: apps.dac.options.rectangles: found 0; allowed: 1 to {RECTANGLES['maximum']}: {RECTANGLES['help']}",
        ),
        (
            {"apps": {"spmd": {"options": {"grid": "200x400"}}}},
            f"--configfile: apps.spmd.options.grid: found '200x400'; must match {GRID['pattern']}: {GRID['help']}",
        ),
        (
            {"apps": {"dac": {"optoins": {}}}},
            "--configfile: apps.dac: unknown key 'optoins'; did you mean 'options'? "
            "known: nodes, one_rank_s, options, ranks, threads",
        ),
        (
            {"toolchains": ["gccc14"]},
            "--configfile: toolchains[0]: unknown toolchain 'gccc14'; did you mean 'gcc14'? known: "
            + ", ".join(sorted(load_toolchains())),
        ),
        ({"flags": ["Os"]}, "--configfile: flags[0]: unknown flag set 'Os'; known: O0, O2, O3, O3_native"),
        (
            {"interconnect": "infiniband"},
            "--configfile: interconnect: site 'embedded' has no 'infiniband'; known: ethernet, fast",
        ),
    ],
)
def test_a_study_that_cannot_be_planned_is_refused_in_one_line(changes: Mapping, message: str) -> None:
    assert complaint(changed(**changes)) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [unclosed", "{path}: line 1 not YAML: expected ',' or ']', but got '<stream end>'; mend that line"),
        ("name: x\n\tsite: y\n", "{path}: line 2 not YAML: found character '\\t' that cannot start any token; mend that line"),
        ("- a\n- b\n", "{path}: not a study: found list; must be a mapping of keys to values"),
        ("", "{path}: not a study: found NoneType; must be a mapping of keys to values"),
        ("name: x\n", "{path}: missing key 'site'; add it"),
    ],
    ids=["unclosed", "tab", "list", "empty", "almost-empty"],
)
def test_a_study_file_that_is_none_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    assert complaint({"study": str(path)}) == message.format(path=path)


def test_a_study_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.yaml"
    assert complaint({"study": str(path)}) == f"{path}: cannot be read: No such file or directory; check the name"


def test_single_keys_of_the_command_line_are_laid_over_the_studys_file() -> None:
    default, changed_once = load_study({}), load_study({"repeats": 8})
    assert changed_once["repeats"] == 8
    assert {**changed_once, "repeats": default["repeats"]} == default


def test_lists_of_the_command_line_have_numbers_in_them_though_snakemake_leaves_text() -> None:
    study = load_study({"ranks": ["1", "4"], "backends": ["native", "docker-host"], "repeats": 3})
    assert (study["ranks"], study["backends"], study["repeats"]) == ([1, 4], ["native", "docker-host"], 3)


def test_a_misspelt_key_of_the_command_line_is_refused() -> None:
    assert complaint({"repaets": 8}) == f"config/config.yaml: unknown key 'repaets'; did you mean 'repeats'? known: {KEYS}"


def test_a_whole_study_of_the_command_line_replaces_the_default() -> None:
    study = load_study(STUDY)
    assert study["apps"] == STUDY["apps"]
    assert study["warmup"] == 1 and study["binding"] == "core" and study["noise_floor"] is False


def measured_studies() -> list[Path]:
    """The studies in config/studies that measure something: replays of published data plan nothing."""
    return [path for path in sorted(ROOT.glob("config/studies/*.yaml")) if "apps" in read_yaml(path)]


@pytest.mark.parametrize("path", measured_studies(), ids=lambda path: path.stem)
def test_every_study_that_is_here_can_be_read(path: Path) -> None:
    workflow = Workflow.read({"study": str(path)})
    assert workflow.blocks or workflow.imported_files


@pytest.mark.parametrize(
    ("value", "kept"), [(5, 5), (5.0, 5), (600000000.0, 600000000)], ids=["whole", "whole-as-float", "large-as-float"]
)
def test_a_whole_number_is_an_integer_however_yaml_writes_it(value: float, kept: int) -> None:
    found = checked_option(value, {"type": "integer", "minimum": 1, "help": "h"}, "here")
    assert found == kept and isinstance(found, int)


# --- sites --------------------------------------------------------------------------------------------------------------------

SITE_KEYS = (
    "cpus_per_node, discovered, interconnects, launch, name, nodes, runtimes, scheduler, shared_cpus, simulation, "
    "sockets_per_node, threads_per_core, toolchains, userland, virtual"
)


def site_complaint(**changes: Any) -> str:
    """What a user is told whose site file is the embedded one with these keys changed; None takes a key away."""
    read = read_yaml(ROOT / "config" / "sites" / "embedded.yaml") | changes
    with pytest.raises(TareError) as caught:
        complete_site({key: value for key, value in read.items() if value is not None}, "site.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node": 2}, f"site.yaml: unknown key 'node'; did you mean 'nodes'? known: {SITE_KEYS}"),
        ({"launch": "rsh"}, "site.yaml: launch: 'rsh' is not one of: ssh, slurm, local, simulated"),
        (
            {"interconnects": {"roce": {"interface": "e1", "subnet": "10.7.0.0/16", "transport": "rdma"}}},
            "site.yaml: interconnects.roce: rdma without adapters; add adapters: [mlx5_0:1] (ibv_devices lists them)",
        ),
        ({"nodes": 0}, "site.yaml: nodes: 0 is less than the minimum of 1"),
        ({"scheduler": None}, "site.yaml: launch: 'ssh' needs a scheduler; add scheduler: {partition: …}"),
        ({"scheduler": {}}, "site.yaml: scheduler: missing key 'partition'; add it"),
        (
            {"interconnects": {"ethernet": {"interface": "eth0"}}},
            "site.yaml: interconnects.ethernet: missing key 'subnet'; add it",
        ),
        (
            {"runtimes": {"native": {}, "dokcer": {}}},
            "site.yaml: runtimes: unknown key 'dokcer'; did you mean 'docker'? known: docker, native, singularity",
        ),
        (
            {"runtimes": {"docker": {"networks": {"ipvlan": {}}}}},
            "site.yaml: runtimes.docker.networks: unknown key 'ipvlan'; did you mean 'macvlan'? known: host, macvlan, overlay",
        ),
        (
            {"runtimes": {"docker": {"networks": {"overlay": {"name": "x"}}}}},
            "site.yaml: runtimes.docker.networks.overlay: missing key 'subnet'; add it",
        ),
    ],
)
def test_a_site_that_is_none_is_refused_in_one_line(changes: Mapping, message: str) -> None:
    assert site_complaint(**changes) == message


def test_an_unknown_site_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(TareError) as caught:
        load_site("embeded")
    assert str(caught.value) == (
        "site: unknown site 'embeded'; did you mean 'embedded'? known: embedded, kononowicz2022, liu2022, local, simulated; "
        "sites stand in config/sites/"
    )


@pytest.mark.parametrize("name", sorted(path.stem for path in ROOT.glob("config/sites/*.yaml")))
def test_every_site_file_that_is_here_is_good_the_template_included(name: str) -> None:
    assert load_site(name)["name"] == name


def test_what_was_discovered_wins_over_the_site_file(tmp_path: Path) -> None:
    facts = tmp_path / "facts.yaml"
    facts.write_text("nodes: 4\nshared_cpus: true\n")
    site = embedded(discovered=str(facts))
    assert (site["nodes"], site["cpus_per_node"], site["shared_cpus"]) == (4, 1, True)


def test_a_discovered_fact_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    facts = tmp_path / "facts.yaml"
    facts.write_text("nodes: four\n")
    assert site_complaint(discovered=str(facts)) == f"{facts}: nodes: found 'four'; must be of type integer"


def test_a_site_has_its_defaults_where_it_is_silent() -> None:
    site = embedded(runtimes={"native": {}, "singularity": {}, "docker": {"networks": {"host": {}}}})
    assert site["runtimes"]["singularity"] == {
        **{"command": "apptainer", "no_https": False, "networks": {}, "cgroup": "", "unpack": False, "ssh_port": 22023}
    }
    assert site["runtimes"]["docker"] == {
        **{"command": "docker", "registry": None, "ssh_port": 22022, "shm_size": "1g"},
        "networks": {"host": {}},
    }
    assert site["scheduler"]["account"] is None and site["scheduler"]["runtime_min"] == 60


def machine_with(monkeypatch: pytest.MonkeyPatch, folder: Path, *programs: str) -> Mapping:
    """What the site `local` is on a machine that has just these programs."""
    for program in programs:
        (folder / program).write_text("#!/bin/sh\n")
        (folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    read = read_yaml(ROOT / "config" / "sites" / "local.yaml")
    docker = {**read["runtimes"]["docker"], "archive": str(folder.relative_to("/")) + "/{userland}.tar"}
    return complete_site({**read, "runtimes": {**read["runtimes"], "docker": docker}}, "local.yaml")


def test_a_machine_alone_lacks_the_runtimes_that_are_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = machine_with(monkeypatch, tmp_path)
    assert set(site["runtimes"]) == {"native"}
    assert site["absent"] == {
        "singularity": "apptainer is not installed on this machine",
        "docker": "docker is not installed on this machine",
    }


def test_a_machine_alone_lacks_the_runtimes_that_have_no_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = machine_with(monkeypatch, tmp_path, "docker")
    assert set(site["runtimes"]) == {"native"}
    archive = str(tmp_path.relative_to("/"))
    assert site["absent"]["docker"] == f"no image: {archive}/{{userland}}.tar is not there (docker save makes it)"


# --- manifests and schemas ----------------------------------------------------------------------------------------------------


def test_every_app_has_a_program_and_a_manifest_of_one_name() -> None:
    apps = ROOT / "src" / "apps"
    manifests = load_manifests()
    built = {app for app, manifest in manifests.items() if manifest["program"] is None}
    assert built == {path.stem for path in apps.glob("*.c")}
    assert set(manifests) == {path.stem for path in apps.glob("*.yaml")}
    assert {"hpcc", "lammps"} <= set(manifests) - built


def test_a_manifest_with_a_misspelt_key_is_refused() -> None:
    manifest = {**load_manifests()["dac"], "metrix": {}}
    with pytest.raises(TareError, match="unknown key 'metrix'; did you mean 'metric"):
        check(manifest, "app", "dac.yaml")


def test_every_default_option_of_an_app_is_one_that_the_app_allows() -> None:
    for name, manifest in load_manifests().items():
        for option, spec in manifest["options"].items():
            assert checked_option(spec["default"], spec, f"{name}.{option}") == spec["default"]


def closed(schema: Any) -> list[Any]:
    """Every part of a schema that lists properties, at any depth."""
    if isinstance(schema, list):
        return [found for entry in schema for found in closed(entry)]
    if not isinstance(schema, dict):
        return []
    return ([schema] if "properties" in schema else []) + closed(list(schema.values()))


@pytest.mark.parametrize("path", sorted(ROOT.glob("workflow/schemas/*.yaml")), ids=lambda path: path.name)
def test_no_schema_lets_a_misspelt_key_through(path: Path) -> None:
    parts = closed(read_yaml(path))
    assert parts
    assert all(part.get("additionalProperties") is False for part in parts)
