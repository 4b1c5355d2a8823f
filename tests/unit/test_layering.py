"""What must not leak from one layer into another: the embedded cluster into the code, software deployment into the launch."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planning import relative

from tare.yamlio import ROOT, read_yaml

TEXTS = sorted(
    path
    for folder in ("src", "workflow")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".pyc", ".swp")
)
RULE_FILES = [ROOT / "Snakefile", *sorted((ROOT / "workflow" / "rules").glob("*.smk"))]

# What the embedded cluster is called where no site file says so: its nodes, its job user at a host, the checkout's mount point.
BY_NAME = {
    "a compute node": r"\bnode0\d\b",
    "the login node as a host": r"(?<![\w-])login(?=[:.]|\s*[\"'])",
    "the job user at a host": r"\btare@",
    "the checkout's mount point": r"(?<![\w./}])/tare(?![\w.])",
}


def leaves(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, dict):
        yield from (found for entry in value.values() for found in leaves(entry))
    elif isinstance(value, list):
        yield from (found for entry in value for found in leaves(entry))
    elif isinstance(value, str):
        yield value


def embedded_words() -> dict[str, str]:
    """What the embedded site's file calls its own, each with a pattern for it as a word; of subnets any address."""
    site = read_yaml(ROOT / "config" / "sites" / "embedded.yaml")
    docker = site["runtimes"]["docker"]
    own = [
        *(site["name"], site["discovered"], site["scheduler"]["partition"], docker["registry"]),
        *leaves(site["scheduler"]["sbatch"]),
        *leaves(site["interconnects"]),
        *leaves(docker["networks"]),
    ]
    networks = {f"{word.rsplit('.', 2)[0]}." for word in own if re.fullmatch(r"[\d.]+/\d+", word)}
    words = {word: rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in own}
    # The partition's name is an ordinary word: only as a value (quoted, or behind an equals sign) does it name the partition.
    words[site["scheduler"]["partition"]] = rf"""["'=]{site["scheduler"]["partition"]}(?![\w-])"""
    return words | {network: rf"(?<![\w.]){re.escape(network)}" for network in networks}


def found_in(text: str, patterns: dict[str, str]) -> list[str]:
    """The patterns that a text contains, each with the line."""
    return [
        f"{number}: {name}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        for name, pattern in patterns.items()
        if re.search(pattern, line)
    ]


@pytest.mark.parametrize("path", [ROOT / "Snakefile", *TEXTS], ids=relative)
def test_nothing_of_the_embedded_cluster_is_known_to_the_code(path: Path) -> None:
    assert found_in(path.read_text(encoding="utf-8"), embedded_words() | BY_NAME) == []


@pytest.mark.parametrize(
    "line",
    [
        'ssh("node01")',
        "partition = 'batch'",
        "--partition=batch",
        "eth0",
        "172.30.0.0/20",
        "address 172.30.0.11",
        "10.30.0.7",
        "docker://login:5000/tare/debian13",
        'host = "login"',
        "tare@somewhere",
        "--volume /tare:/tare",
        "cd /tare/results",
        "tare-overlay",
        "--licenses=machine:1",
        'site == "embedded"',
        ".tare/site.yaml",
    ],
)
def test_a_line_that_knows_the_embedded_cluster_is_found(line: str) -> None:
    assert found_in(line, embedded_words() | BY_NAME)


@pytest.mark.parametrize(
    "line",
    [
        "from tare.cases import plan_blocks",
        'f"{registry}/tare/{userland}:latest"',
        'f"{ROOT}/tare/report.py"',
        "the login node's work",
        "/usr/sbin/nologin",
        "sbatch",
        "BatchMode=yes",
        "name=f'tare-{session}'",
        "src/tare/stats.py",
    ],
)
def test_a_line_that_knows_nothing_of_it_is_not_found(line: str) -> None:
    assert found_in(line, embedded_words() | BY_NAME) == []


# --- rules --------------------------------------------------------------------------------------------------------------------


def rules() -> dict[str, str]:
    """Every rule's text by name."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in RULE_FILES)
    parts = re.split(r"^(?:rule|checkpoint) (\w+):$", text, flags=re.MULTILINE)
    bodies = (re.split(r"^(?=\S)", body, maxsplit=1, flags=re.MULTILINE)[0] for body in parts[2::2])
    return dict(zip(parts[1::2], bodies, strict=True))


def directives(body: str) -> list[str]:
    """A rule's directives in the order written."""
    return re.findall(r"^    (\w+):", body, flags=re.MULTILINE)


def test_only_the_rule_that_measures_has_no_software_deployment() -> None:
    without = [
        name
        for name, body in rules().items()
        if "shell" in directives(body) and not {"conda", "container"} & set(directives(body))
    ]
    assert without == ["measure_block"]


def test_no_rule_but_all_is_without_a_log_and_a_shell_command() -> None:
    incomplete = [name for name, body in rules().items() if not {"log", "shell"} <= set(directives(body))]
    assert incomplete == ["all"]


def test_no_rule_runs_python_inline_or_has_a_script() -> None:
    assert not [name for name, body in rules().items() if {"run", "script", "notebook"} & set(directives(body))]


def test_a_figure_and_a_table_depend_on_the_module_that_makes_them() -> None:
    assert 'module="src/tare/figures/{figure}.py"' in rules()["draw_figure"]
    assert 'module="src/tare/tables/{table}.py"' in rules()["write_table"]


def test_the_snakefile_is_a_table_of_contents() -> None:
    assert len((ROOT / "Snakefile").read_text(encoding="utf-8").splitlines()) <= 40


# --- pins ---------------------------------------------------------------------------------------------------------------------


def test_the_analysis_environment_repeats_the_pins_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = {pin.lower().replace("==", "=") for pin in project["dependencies"] if not pin.startswith("snakemake")}
    conda = set(read_yaml(ROOT / "workflow" / "envs" / "analysis.yaml")["dependencies"])
    python = {pin for pin in conda if pin.startswith("python=")}
    assert conda - python == pins
    (version,) = (pin.removeprefix("python=") for pin in python)
    oldest = project["requires-python"].removeprefix(">=")
    assert tuple(map(int, version.split("."))) >= tuple(map(int, oldest.split(".")))


def test_the_slurm_profile_is_found_from_the_working_directory() -> None:
    assert (ROOT / "slurm").is_symlink()
    assert (ROOT / "slurm" / "config.yaml").samefile(ROOT / "profiles" / "slurm" / "config.yaml")
