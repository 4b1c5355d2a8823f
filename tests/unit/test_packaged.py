"""Packaged programs without running any: placeholders, what is read from their output, and what a study may not say."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from planning import planned

from tare.config import own_programs
from tare.errors import TareError
from tare.packaged import PROOF_FILE, command_of, filled, placeholders, read_answer, rows_and_columns

ENTRY: dict[str, Any] = {
    "options": {"steps": {"type": "integer", "default": 5, "help": "steps"}},
    "program": {
        "executable": "/opt/own/melt",
        "arguments": ["-n", "{steps}", "${home}", "{ranks}"],
        "inputs": {"melt.in": "run {steps} {rows}x{columns}"},
        "numbers": {"rate_per_s": {"regex": r"rate (\S+)"}, "deep_s": {"file": "out*.json", "json": "a.0.b", "scale": 0.001}},
        "answer": [{"says": "energy", "regex": r"^{steps} (\S+)$", "expected": {"regex": r"^0 (\S+)$"}, "tolerance": 0.5}],
    },
    "metric": {"name": "rate_per_s", "unit": "1/s", "better": "higher"},
}
STDOUT = "0 1.0\n5 1.25\nrate 3\nrate 4\n"
VALUES = placeholders({"steps": 5}, 6, 2)


def ran(directory: Path, stdout: str = STDOUT, deep: Any = 7) -> tuple[dict[str, Any] | None, str | None]:
    """The answer of a run that wrote this."""
    (directory / PROOF_FILE).write_text(json.dumps({"app_s": 2.5, "proof": [{"rank": 0}]}))
    (directory / "out-1.json").write_text(json.dumps({"a": [{"b": deep}]}))
    return read_answer(ENTRY["program"], VALUES, directory, stdout)


@pytest.mark.parametrize(("ranks", "grid"), [(1, (1, 1)), (2, (1, 2)), (6, (2, 3)), (7, (1, 7)), (16, (4, 4))])
def test_ranks_form_the_most_square_grid(ranks: int, grid: tuple[int, int]) -> None:
    assert rows_and_columns(ranks) == grid


def test_the_order_of_a_matrix_fills_the_memory_of_all_ranks() -> None:
    order = placeholders({"memory_MB": 8}, 4, 1)["order"]
    assert 8 * order**2 <= 32_000_000 < 8 * (order + 1) ** 2


def test_placeholders_are_filled_and_the_programs_own_braces_stay() -> None:
    command = command_of(ENTRY["program"], VALUES)
    assert command.arguments == ("-n", "5", "${home}", "6")
    assert command.inputs == {"melt.in": "run 5 2x3"}
    assert filled(r"\d{3} {steps}", VALUES) == r"\d{3} 5"


def test_the_last_match_and_a_json_path_are_its_numbers_and_its_answer_is_checked(tmp_path: Path) -> None:
    answer, problem = ran(tmp_path)
    assert problem is None
    assert answer is not None
    assert answer["metrics"] == {"rate_per_s": 4.0, "deep_s": 0.007, "init_to_finalize_s": 2.5}
    assert (answer["app_s"], answer["answer"]) == (2.5, {"checks": {"energy": True}, "ok": True})


@pytest.mark.parametrize(
    ("stdout", "deep", "says"),
    [
        (STDOUT.replace("1.25", "1.75"), 7, "wrong answer: energy: 1.75 instead of 1, at most 0.5 off"),
        (STDOUT.replace("1.25", "nan"), 7, "must be finite"),
        (STDOUT.replace("rate", "speed"), 7, "not found"),
        (STDOUT, "x", "found 'x'; must be a number"),
    ],
    ids=["wrong", "nan", "absent", "text"],
)
def test_what_is_wrong_with_its_output_is_told_and_the_proof_is_kept(tmp_path: Path, stdout: str, deep: Any, says: str) -> None:
    answer, problem = ran(tmp_path, stdout, deep)
    assert says in str(problem)
    assert answer is not None
    assert answer["proof"] == [{"rank": 0}]


def test_without_a_proof_there_is_no_answer(tmp_path: Path) -> None:
    assert read_answer(ENTRY["program"], VALUES, tmp_path, STDOUT)[0] is None


def changed(path: str, value: Any) -> dict[str, Any]:
    """The entry with one key changed."""
    entry = copy.deepcopy(ENTRY)
    *parents, last = path.split("/")
    at = entry
    for key in parents:
        at = at[key]
    at[last] = value
    return entry


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("program/arguments", ["{stesp}"], "program.arguments[0]: unknown placeholder {stesp}; known: "),
        ("program/numbers", {"rate_per_s": {"regex": "("}}, "program.numbers.rate_per_s.regex: not a regular expression"),
        ("program/numbers", {"rate_per_s": {"regex": "rate"}}, "found no group"),
        ("program/numbers", {}, "the metric 'rate_per_s' is not among them"),
        ("program/answre", [], "unknown key 'answre'; did you mean 'answer'?"),
        ("program/answer", [], "program.answer"),
    ],
)
def test_a_program_that_cannot_be_is_refused_before_anything_starts(path: str, value: Any, says: str) -> None:
    with pytest.raises(TareError) as caught:
        own_programs({"where": "own.yaml", "programs": {"melt": changed(path, value)}}, {})
    assert str(caught.value).startswith("own.yaml: programs.melt: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_program_may_not_take_the_name_of_one_that_is_here() -> None:
    with pytest.raises(TareError, match=r"programs\.dac: found a program of this name"):
        own_programs({"where": "own.yaml", "programs": {"dac": ENTRY}}, {"dac": {}})


def test_a_packaged_program_is_planned_once_whatever_flags_the_study_has() -> None:
    blocks = planned(apps={"lammps": {}}, flags=["O2", "O3"], ranks=[2])
    assert [block.setting.id for block in blocks] == ["lammps/gcc14/packaged/n2r2"]
    assert blocks[0].setting.built == "build/debian13/gcc14/packaged/lammps.json"
