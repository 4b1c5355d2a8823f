"""Study, site, toolchains and app manifests: read, completed with defaults, checked before anything starts."""

import copy
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tare.errors import TareError
from tare.packaged import check_program
from tare.yamlio import ROOT, check, read_yaml, shown, suggestion

Mapping = dict[str, Any]

DEFAULT_STUDY = ROOT / "config" / "config.yaml"
APPS = ROOT / "src" / "apps"
FLAGS = {
    "O0": ("-O0",),
    "O2": ("-O2",),
    "O3": ("-O3",),
    "O3_native": ("-O3", "-march=native"),
}
"""Compiler flag sets of Kononowicz & Czarnul 2022, Section 4; names are config values, wildcards and labels."""

STUDY_DEFAULTS: Mapping = {
    "probes": {},
    "userland": "debian13",
    "noise_floor": True,
    "compare": {},
    "interconnect": None,
    "profile": [],
    "binding": "core",
    "warmup": 1,
    "timeout_s": 600,
    "confidence": 0.95,
    "equivalence": 0.01,
}
SITE_DEFAULTS: Mapping = {
    "virtual": False,
    "shared_cpus": False,
    "sockets_per_node": 1,
    "threads_per_core": 1,
    "userland": None,
}
SCHEDULER_DEFAULTS: Mapping = {"account": None, "runtime_min": 60, "exclusive": True, "sbatch": [], "sbatch_block": []}
DOCKER_DEFAULTS: Mapping = {"command": "docker", "registry": None, "ssh_port": 22022, "shm_size": "1g"}
SIMULATION_DEFAULTS: Mapping = {
    "flags": {},
    "drift_per_round": 0.0,
    "launch_s": 0.0,
    "outliers": {"share": 0.0, "factor": 1.0},
    "failures": 0.0,
}
SINGULARITY_DEFAULTS: Mapping = {
    "command": "apptainer",
    "no_https": False,
    "networks": {},
    "cgroup": "",
    "unpack": False,
    "ssh_port": 22023,
}


@dataclass(frozen=True)
class Repeats:
    """A study's key ``repeats``: a number, or ``{min: 5, max: 50, until: 0.01}``."""

    least: int
    most: int
    until: float | None
    """Half the width of every cell's overhead interval at which a block may stop; None: the number of rounds is fixed."""

    @classmethod
    def of(cls, value: Any, where: str = "study") -> "Repeats":
        """Read the key as the schema lets it through; a minimum above the maximum is a TareError."""
        if not isinstance(value, dict):
            return cls(value, value, None)
        if value["min"] > value["max"]:
            raise TareError(f"{where}: repeats: min: found {value['min']}; allowed: 3 to max ({value['max']}); change either")
        return cls(value["min"], value["max"], value["until"])


def read_study(overrides: Mapping) -> tuple[Mapping, str]:
    """Return the study as given, unchecked, and where it stands.

    ``overrides`` is Snakemake's config: a whole study (``--configfile``), or single keys (``--config``) laid over the
    file that its key ``study`` names (default: config/config.yaml).
    """
    given = copy.deepcopy(dict(overrides))
    source = ROOT / given.pop("study", DEFAULT_STUDY)
    if "apps" in given or "import" in given:
        return given, "--configfile"
    study = read_yaml(source)
    if not isinstance(study, dict):
        found = type(study).__name__
        raise TareError(f"{shown(source)}: not a study: found {found}; must be a mapping of keys to values")
    return {**study, **{key: typed(value) for key, value in given.items()}}, shown(source)


def load_study(overrides: Mapping) -> Mapping:
    """Return the checked study that is to be measured, completed with defaults; ``where`` says where it stands."""
    study, where = read_study(overrides)
    study = with_compared(study, where)
    check(study, "study", where)
    Repeats.of(study["repeats"], where)
    return {**STUDY_DEFAULTS, **study, "where": where}


def with_compared(study: Mapping, where: str) -> Mapping:
    """Return the study with toolchains and flags also where the rest looks for them when they stand in ``compare``."""
    compare = study.get("compare")
    compared = {key: compare[key] for key in ("toolchains", "flags") if key in compare} if isinstance(compare, dict) else {}
    for key in compared:
        if key in study:
            raise TareError(f"{where}: {key}: stands in compare as well: found {study[key]}; leave it in one of the two places")
    return {**study, **compared}


def typed(value: Any) -> Any:
    """Return a value of ``--config`` in its type: Snakemake leaves the members of lists as text."""
    if isinstance(value, list):
        return [typed(member) for member in value]
    return yaml.safe_load(value) if isinstance(value, str) else value


def load_site(name: str) -> Mapping:
    """Return the checked site ``config/sites/<name>.yaml``, with what was discovered on the machine laid over it."""
    path = ROOT / "config" / "sites" / f"{name}.yaml"
    known = sorted(file.stem for file in path.parent.glob("*.yaml") if file.stem != "template")
    if not path.is_file():
        raise TareError(f"site: unknown site {name!r}; {suggestion(name, known)}; sites stand in config/sites/")
    return complete_site(read_yaml(path), shown(path))


def complete_site(read: Any, where: str) -> Mapping:
    """Check a site as read, lay discovered facts over it, and fill in defaults."""
    check(read, "site", where)
    site: Mapping = {**SITE_DEFAULTS, **read}
    facts = ROOT / site.get("discovered", "")
    if "discovered" in site and facts.is_file():
        site |= read_yaml(facts)
        check(site, "site", shown(facts))
    for name, fabric in site["interconnects"].items():
        if fabric.get("transport") == "rdma" and "adapters" not in fabric:
            raise TareError(
                f"{where}: interconnects.{name}: rdma without adapters; add adapters: [mlx5_0:1] (ibv_devices lists them)"
            )
    if site["cpus_per_node"] is None:
        site["cpus_per_node"] = len(os.sched_getaffinity(0))
    if "scheduler" in site:
        site["scheduler"] = {**SCHEDULER_DEFAULTS, **site["scheduler"]}
    elif site["launch"] not in ("local", "simulated"):
        raise TareError(f"{where}: launch: {site['launch']!r} needs a scheduler; add scheduler: {{partition: …}}")
    for runtime, defaults in (("docker", DOCKER_DEFAULTS), ("singularity", SINGULARITY_DEFAULTS)):
        if runtime in site["runtimes"]:
            site["runtimes"] = {**site["runtimes"], runtime: {**defaults, **site["runtimes"][runtime]}}
    if (site["launch"] == "simulated") != ("simulation" in site):
        raise TareError(f"{where}: launch: 'simulated' and the key simulation belong together; found one alone; add the other")
    if "simulation" in site:
        site["simulated"] = True
        site["simulation"] = {**SIMULATION_DEFAULTS, **site["simulation"]}
    return without_missing(site) if site["launch"] == "local" else site


def without_missing(site: Mapping) -> Mapping:
    """Return a site that is this machine without the runtimes that it lacks, and under ``absent`` why it lacks them."""
    absent = {}
    for runtime, options in site["runtimes"].items():
        command = options.get("command")
        if command is not None and shutil.which(command) is None:
            absent[runtime] = f"{command} is not installed on this machine"
        elif runtime != "native" and not archives_of(options):
            absent[runtime] = f"no image: {options.get('archive') or options.get('source')} is not there (docker save makes it)"
    runtimes = {runtime: options for runtime, options in site["runtimes"].items() if runtime not in absent}
    return {**site, "runtimes": runtimes, "absent": absent}


def archives_of(options: Mapping) -> list[Path]:
    """Return the image archives that a runtime of this machine can use."""
    pattern = (options.get("archive") or options.get("source") or "").removeprefix("docker-archive:")
    return list(ROOT.glob(pattern.format(userland="*"))) if pattern else []


def load_toolchains() -> Mapping:
    """Return config/toolchains.yaml, checked."""
    path = ROOT / "config" / "toolchains.yaml"
    toolchains: Mapping = read_yaml(path)
    check(toolchains, "toolchains", shown(path))
    for name, toolchain in toolchains.items():
        check_source(toolchain, f"{shown(path)}: {name}")
    return toolchains


def check_source(toolchain: Mapping, where: str) -> None:
    """Raise when a toolchain does not say what its source needs: modules their names, source images their userlands."""
    needed = {"modules": "modules", "source": "userlands"}.get(toolchain["from"])
    if needed is not None and needed not in toolchain:
        raise TareError(f"{where}: from: {toolchain['from']!r} needs {needed}: […]; add it, or choose host or packages")
    if "modules" in toolchain and toolchain["from"] != "modules":
        raise TareError(f"{where}: modules: found beside from: {toolchain['from']!r}; say from: modules, or leave them out")


def load_manifests(study: Mapping | None = None) -> dict[str, Mapping]:
    """Return every app's manifest (src/apps/<app>.yaml, and the programs of a study's own), checked, by app name."""
    manifests = {}
    for path in sorted(APPS.glob("*.yaml")):
        manifest = read_yaml(path)
        check(manifest, "app", shown(path))
        if manifest["app"] != path.stem or path.with_suffix(".c").is_file() == ("program" in manifest):
            raise TareError(
                f"{shown(path)}: app: found {manifest['app']!r}; must be {path.stem!r}, with {path.stem}.c beside it or with "
                "the key program, not both; mend it"
            )
        manifests[path.stem] = completed_manifest(manifest, shown(path))
    return manifests | own_programs(study or {}, manifests)


def own_programs(study: Mapping, manifests: Mapping) -> dict[str, Mapping]:
    """Return the manifests of a study's own programs (``programs:``), checked."""
    found = {}
    for name, given in study.get("programs", {}).items():
        where = f"{study['where']}: programs.{name}"
        if name in manifests:
            raise TareError(f"{where}: found a program of this name in src/apps; names must differ; choose another")
        manifest = {"app": name, "title": name, "ranks": "any", "options": {}, **given}
        check(manifest, "app", where)
        if "program" not in manifest:
            raise TareError(f"{where}: missing key 'program'; it says executable, arguments and answer; add it")
        found[name] = completed_manifest(manifest, where)
    return found


def completed_manifest(manifest: Mapping, where: str) -> Mapping:
    """Return a manifest with its defaults; of a metric, a lower number is better unless it says otherwise."""
    if "program" in manifest:
        check_program(manifest, where)
    metric = {"better": "lower", **manifest["metric"]}
    further = [{"better": "lower", **entry} for entry in manifest.get("metrics", [])]
    return {"extra_processes": 0, "threads": False, "program": None, **manifest, "metric": metric, "metrics": further}


def complete_options(manifest: Mapping, given: Mapping, where: str) -> Mapping:
    """Return all options of an app: the study's where given, else the manifest's defaults; each checked."""
    known = manifest["options"]
    for name in given:
        if name not in known:
            raise TareError(f"{where}: unknown option {name!r} of {manifest['app']}; {suggestion(name, sorted(known))}")
    options = {name: given.get(name, spec["default"]) for name, spec in known.items()}
    for name, value in options.items():
        options[name] = checked_option(value, known[name], f"{where}.{name}")
    return options


def checked_option(value: Any, spec: Mapping, where: str) -> Any:
    """Return one option's value in its type, or raise the TareError that says what is allowed."""
    types: dict[str, Any] = {"integer": int, "number": (int, float), "string": str}
    if spec["type"] == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, types[spec["type"]]):
        raise TareError(f"{where}: found {value!r}; must be of type {spec['type']}: {spec['help']}")
    if not isinstance(value, str) and not spec.get("minimum", value) <= value <= spec.get("maximum", value):
        limits = f"{spec.get('minimum', '-∞')} to {spec.get('maximum', '∞')}"
        raise TareError(f"{where}: found {value!r}; allowed: {limits}: {spec['help']}")
    if isinstance(value, str) and not re.fullmatch(spec.get("pattern", ".*"), value):
        raise TareError(f"{where}: found {value!r}; must match {spec['pattern']}: {spec['help']}")
    return value
