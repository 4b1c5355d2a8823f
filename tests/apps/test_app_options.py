"""A mistake on the command line costs one clear line and exit code 2, before anything is computed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from appbench import APP_NAMES, APPS, Bench

MISTAKES = [
    ("wave", ["--grid", "16x15x16"], "--grid: '16x15x16' is out of range; 16 to 100000 is allowed"),
    ("dac", ["--rectangles", "12x"], "--rectangles: '12x' is not an integer; 1 to 1e+15 is allowed"),
    ("dac", ["--rectangles=1e5"], "--rectangles: '1e5' is not an integer; 1 to 1e+15 is allowed"),
    ("dac", ["--rectangles", " 5"], "--rectangles: ' 5' is not an integer; 1 to 1e+15 is allowed"),
    ("dac", ["--rectangles", "+5"], "--rectangles: '+5' is not an integer; 1 to 1e+15 is allowed"),
    ("dac", ["--rectangles="], "--rectangles: '' is not an integer; 1 to 1e+15 is allowed"),
    ("dac", ["--rectangles", "0"], "--rectangles: '0' is out of range; 1 to 1e+15 is allowed"),
    ("dac", ["--rectangles", "-5"], "--rectangles: '-5' is out of range; 1 to 1e+15 is allowed"),
    (
        "dac",
        ["--rectangles", "99999999999999999999"],
        "--rectangles: '99999999999999999999' is not an integer; 1 to 1e+15 is allowed",
    ),
    ("dac", ["--rectangles"], "--rectangles: needs a value, as in --rectangles N"),
    (
        "dac",
        ["--rectangle", "5"],
        "unknown option '--rectangle'; known: --work, --rectangles, --keys, --inject_wrong_answer, --help",
    ),
    (
        "dac",
        ["rectangles", "5"],
        "unknown option 'rectangles'; known: --work, --rectangles, --keys, --inject_wrong_answer, --help",
    ),
    ("spmd", ["--grid", "200x400"], "--grid: '200x400' needs three sizes, as in 200x400x600"),
    ("spmd", ["--grid", "2x4x6x8"], "--grid: '2x4x6x8' needs three sizes, as in 200x400x600"),
    ("spmd", ["--grid", "2x4x 6"], "--grid: '2x4x 6' needs three sizes, as in 200x400x600"),
    ("spmd", ["--grid", "2x0x6"], "--grid: '2x0x6' is out of range; 1 to 100000 is allowed"),
    ("ep", ["--class", "X"], "--class: 'X' is unknown; known: S, W, A, B, C"),
    ("ep", ["--class", "s"], "--class: 's' is unknown; known: S, W, A, B, C"),
    ("spmd", ["--retain", "half"], "--retain: 'half' is not a number; 0 to 1 is allowed"),
    ("spmd", ["--retain", "1.5"], "--retain: '1.5' is out of range; 0 to 1 is allowed"),
    ("spmd", ["--retain", "nan"], "--retain: 'nan' is out of range; 0 to 1 is allowed"),
]
WRONG_COUNTS = [
    (
        "wave",
        13,
        ["--grid", "16x16x16", "--layer", "4"],
        "13 processes: too many for the grid: some cuboid would be less than two cells wide",
    ),
    (
        "cg",
        3,
        ["--coarse_grid", "2x2x2"],
        "3 processes: too many for the coarsest grid: some cuboid would have no cell",
    ),
    ("contention", 3, [], "3 processes: not even; pairs of ranks are needed: 2, 4, 6, ..."),
    ("dac", 3, [], "3 processes: not a power of two; 1, 2, 4, 8, ... are allowed"),
    (
        "masterslave",
        1,
        [],
        "1 process: no computing rank is left beside the extra process; at least 2 processes are needed",
    ),
    ("pingpong", 1, [], "1 process: not two; exactly 2 ranks are allowed"),
    (
        "spmd",
        2,
        ["--grid", "1x1x1"],
        "2 processes: too many for the grid: some cuboid would have no cell",
    ),
]


@pytest.mark.parametrize(("app", "arguments", "message"), MISTAKES)
def test_a_bad_option_exits_2_with_one_line(bench: Bench, app: str, arguments: list[str], message: str) -> None:
    done = bench.single(app, *arguments)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr == f"{app}: error: {message}; see {app} --help\n"


def test_four_ranks_complain_once(bench: Bench) -> None:
    done = bench.run("dac", "--rectangles", "12x", processes=4)
    assert (done.code, done.stdout) == (2, "")
    assert len(done.complaints("dac")) == 1


@pytest.mark.parametrize(("app", "processes", "arguments", "message"), WRONG_COUNTS)
def test_a_wrong_number_of_processes_exits_2(bench: Bench, app: str, processes: int, arguments: list[str], message: str) -> None:
    done = bench.run(app, *arguments, processes=processes)
    assert (done.code, done.stdout) == (2, "")
    assert done.complaints(app) == [f"{app}: error: {message}; start it with another number"]


@pytest.mark.parametrize(
    "arguments",
    [["--message_bytes", "9"], ["--message_bytes=9"], ["--message-bytes=9"], ["--message-bytes", "9"]],
)
def test_a_value_follows_a_blank_or_an_equals_sign(bench: Bench, arguments: list[str]) -> None:
    done = bench.run("pingpong", *arguments, "--samples", "2", processes=2)
    assert done.report["options"] == {
        "message_bytes": 9,
        "last_message_bytes": 0,
        "mode": "two-sided",
        "iterations": 100,
        "samples": 2,
    }


def test_a_result_that_cannot_be_written_is_an_error(bench: Bench) -> None:
    with Path("/dev/full").open("w") as full:
        done = bench.single("dac", "--rectangles", "10", stdout=full)
    assert done.code == 1
    assert done.stderr == "dac: error: the result cannot be written to stdout: No space left on device\n"


def test_a_grid_that_no_memory_can_hold_is_said_so(bench: Bench) -> None:
    done = bench.single("spmd", "--grid", "100000x100000x100000")
    assert done.code == 1
    (complaint,) = done.complaints("spmd")
    assert complaint.endswith("bytes; choose smaller sizes or more ranks")


def load_manifest(app: str) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((APPS / f"{app}.yaml").read_text())
    return manifest


def choices(option: dict[str, Any]) -> list[str]:
    """The names that an option takes; its manifest's pattern is ^(one|other)$."""
    named = re.fullmatch(r"\^\(([^()]+)\)\$", option.get("pattern", ""))
    return named[1].split("|") if named else []


def small_value(option: dict[str, Any]) -> str:
    """A value that makes a short run."""
    if names := choices(option):
        return names[0]
    if option["type"] == "string":
        return "x".join([str(max(3, option.get("minimum", 3)))] * 3)
    value = {"integer": 2, "number": 0.5}[option["type"]]
    return str(min(max(value, option["minimum"]), option["maximum"]))


def described(name: str, option: dict[str, Any]) -> str:
    """The option's line of --help, as the manifest has it."""
    if names := choices(option):
        return f"  --{name} NAME\n        {option['help']} ({', '.join(names)})\n"
    kinds = {"integer": "N", "number": "NUMBER", "string": "XxYxZ"}
    lowest, highest = option.get("minimum", 1), option.get("maximum", 100_000)
    return f"  --{name} {kinds[option['type']]}\n        {option['help']} ({lowest:.15g} to {highest:.15g})\n"


@pytest.mark.parametrize("app", APP_NAMES)
def test_help_says_what_the_manifest_says(bench: Bench, app: str) -> None:
    done = bench.single(app, "--help")
    manifest = load_manifest(app)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {app} ")
    assert all(described(name, option) in done.stdout for name, option in manifest["options"].items())
    defaults = {name: option["default"] for name, option in manifest["options"].items()}
    assert json.loads(done.stdout.partition("Defaults: ")[2]) == defaults


@pytest.mark.parametrize("app", APP_NAMES)
def test_a_manifest_has_its_keys_and_the_app_prints_its_metric(bench: Bench, app: str) -> None:
    manifest = load_manifest(app)
    keys = [key for key in manifest if key != "threads"]
    assert keys == ["app", "title", "ranks", "extra_processes", "options", "metric"]
    assert manifest["app"] == app
    values = [f"--{name}={small_value(option)}" for name, option in manifest["options"].items()]
    report = bench.run(app, *values, processes=2).report
    assert report["processes"] - report["ranks"] == manifest["extra_processes"]
    assert manifest["metric"]["name"] in {"app_s", *report["metrics"]}
