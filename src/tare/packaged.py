"""Programs that are not built here: their command, their input files, and their numbers and answer read from what they write."""

import functools
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.errors import TareError

Mapping = dict[str, Any]

PACKAGED = "packaged"
"""Stands where a program that is built here has its flags; its files are build/<userland>/<toolchain>/packaged/<app>.json."""
PROOF_LIBRARY = "proof.so"
PROOF_FILE = "tare-proof.json"

PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*)\}")
"""``{steps}``; what is not a plain name in braces (``${x}``, ``{3}``, JSON) is the program's own and stays."""


@dataclass(frozen=True)
class Command:
    """What every rank of a packaged program runs, and the files that it finds where it runs."""

    executable: str  # absolute, or relative to the checkout
    arguments: tuple[str, ...]
    environment: tuple[str, ...]  # NAME=value
    inputs: Mapping  # file name → text


def rows_and_columns(ranks: int) -> tuple[int, int]:
    """Return the most square grid of ranks, rows ≤ columns, as linear algebra libraries want it."""
    rows = next(rows for rows in range(math.isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


def placeholders(options: Mapping, ranks: int, nodes: int) -> Mapping:
    """Return the values of all placeholders: the app's options, the layout, and ``{order}`` where ``memory_MB`` is an option.

    ``order`` is that of the largest square matrix of doubles that fits into ``memory_MB`` megabytes per rank.
    """
    rows, columns = rows_and_columns(ranks)
    layout = {"ranks": ranks, "nodes": nodes, "rows": rows, "columns": columns}
    order = {"order": math.isqrt(int(options["memory_MB"] * ranks * 125_000))} if "memory_MB" in options else {}
    return {**layout, **order, **options}


def filled(text: str, values: Mapping) -> str:
    """Return a text with its placeholders replaced; their names were checked when the study was read."""
    return PLACEHOLDER.sub(lambda found: str(values[found[1]]), text)


def command_of(program: Mapping, values: Mapping) -> Command:
    """Return what is run for one setting."""
    without_mpi = {} if program.get("mpi", True) else {"TARE_PROOF_WITHOUT_MPI": "1"}
    environment = {**program.get("environment", {}), **without_mpi}
    return Command(
        program["executable"],
        tuple(filled(word, values) for word in program["arguments"]),
        tuple(f"{name}={filled(value, values)}" for name, value in sorted(environment.items())),
        {name: filled(text, values) for name, text in program.get("inputs", {}).items()},
    )


def check_program(manifest: Mapping, where: str) -> None:
    """Raise when a program's placeholders, expressions or main metric cannot be: before anything is measured."""
    program, where = manifest["program"], f"{where}: program"
    known = placeholders({name: spec["default"] for name, spec in manifest["options"].items()}, 1, 1)
    for at, text in texts_of(program):
        for name in PLACEHOLDER.findall(text):
            if name not in known:
                raise TareError(f"{where}.{at}: unknown placeholder {{{name}}}; known: {', '.join(sorted(known))}; mend it")
    for at, spec in readings_of(program):
        check_reading(spec, known, f"{where}.{at}")
    metric = manifest["metric"]["name"]
    if metric not in ("app_s", *program.get("numbers", {})):
        raise TareError(f"{where}.numbers: the metric {metric!r} is not among them; add it, or choose app_s")


def texts_of(program: Mapping) -> list[tuple[str, str]]:
    """Return every text of a program that may have placeholders, with its place."""
    words = [(f"arguments[{index}]", word) for index, word in enumerate(program["arguments"])]
    named = [(f"{key}.{name}", text) for key in ("environment", "inputs") for name, text in program.get(key, {}).items()]
    return words + named + [(f"{at}.regex", spec["regex"]) for at, spec in readings_of(program) if "regex" in spec]


def readings_of(program: Mapping) -> list[tuple[str, Mapping]]:
    """Return every specification of something read from the output, with its place."""
    numbers = [(f"numbers.{name}", spec) for name, spec in program.get("numbers", {}).items()]
    checks = [(f"answer[{index}]", spec) for index, spec in enumerate(program["answer"])]
    expected = [(f"{at}.expected", spec["expected"]) for at, spec in checks if isinstance(spec.get("expected"), dict)]
    return numbers + checks + expected


def check_reading(spec: Mapping, values: Mapping, where: str) -> None:
    """Raise when an expression is not one, or has no group for its number."""
    if "regex" not in spec:
        return
    try:
        groups = re.compile(filled(spec["regex"], dict.fromkeys(values, 1))).groups
    except re.error as error:
        raise TareError(f"{where}.regex: not a regular expression: {error}; mend it") from error
    wanted = 0 if is_presence(spec) else 1
    if groups < wanted:
        raise TareError(f"{where}.regex: found no group (…); the number must stand in the first one")


def is_presence(spec: Mapping) -> bool:
    """Say whether a check only asks that its expression is found."""
    return "says" in spec and not any(key in spec for key in ("expected", "minimum", "maximum"))


def read_answer(program: Mapping, values: Mapping, directory: Path, stdout: str) -> tuple[Mapping | None, str | None]:
    """Return a repeat's answer in the form of our own programs' (``proof.read_answer``), or None, and what is wrong with it."""
    proof = read_json(directory / PROOF_FILE)
    if proof is None:
        return None, "no proof: rank 0 did not come to MPI_Finalize (a program without MPI needs `mpi: false`)"
    reader = Reader(directory, stdout, values)
    answer: Mapping = {"app_s": proof["app_s"], "metrics": {}, "answer": None, "proof": proof["proof"]}
    try:
        found = {name: reader.metric(spec) for name, spec in program.get("numbers", {}).items()}
        numbers = {name: value for name, value in found.items() if value is not None}
        checks = {spec["says"]: reader.fault(spec) for spec in program["answer"]}
    except TareError as error:
        return answer, str(error)
    faults = [f"{says}: {fault}" for says, fault in checks.items() if fault]
    answer |= {
        "app_s": numbers.get("app_s", proof["app_s"]),
        "metrics": {**{name: value for name, value in numbers.items() if name != "app_s"}, "init_to_finalize_s": proof["app_s"]},
        "answer": {"checks": {says: fault is None for says, fault in checks.items()}, "ok": not faults},
    }
    return answer, f"wrong answer: {'; '.join(faults)}" if faults else None


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, None where there is no such file or it was cut off."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class Reader:
    """What a program wrote in one repeat: its stdout, and the files in the directory where it ran."""

    directory: Path
    stdout: str
    values: Mapping

    def text(self, spec: Mapping) -> str:
        """Return the output that a specification reads."""
        if "file" not in spec:
            return self.stdout
        written = sorted(self.directory.glob(spec["file"]))
        if not written:
            raise TareError(f"{spec['file']}: the program did not write it; what it says of itself stands in stdout or stderr")
        return written[-1].read_text(encoding="utf-8", errors="replace")

    def found(self, spec: Mapping) -> str | None:
        """Return what stands at a JSON path or in the last match of an expression (its first group), or None."""
        if "json" in spec:
            return at_json_path(self.text(spec), spec["json"])
        expression = re.compile(filled(spec["regex"], escaped(self.values)), re.MULTILINE)
        matches = list(expression.finditer(self.text(spec)))
        return str(matches[-1][min(1, expression.groups)]) if matches else None

    def metric(self, spec: Mapping) -> float | None:
        """Return a number in the unit that its name says; None where the program says that it has none."""
        value = self.number(spec)
        return None if value == spec.get("absent") else value * float(spec.get("scale", 1))

    def number(self, spec: Mapping) -> float:
        """Return a number as the program writes it."""
        found = self.found(spec)
        what = f"{spec.get('file', 'stdout')}: {spec.get('json') or spec.get('regex')!r}"
        if found is None:
            raise TareError(f"{what}: not found; is it what this version of the program writes?")
        try:
            value = float(found)
        except ValueError as error:
            raise TareError(f"{what}: found {found!r}; must be a number") from error
        if not math.isfinite(value):
            raise TareError(f"{what}: found {found!r}; must be finite")
        return value

    def fault(self, spec: Mapping) -> str | None:
        """Return what is wrong with a part of the answer, or None."""
        if is_presence(spec):
            return None if self.found(spec) is not None else "not said"
        value = self.number(spec)
        if "expected" in spec:
            expected = self.number(spec["expected"]) if isinstance(spec["expected"], dict) else spec["expected"]
            wrong = not abs(value - expected) <= spec["tolerance"]
            return f"{value:.12g} instead of {expected:.12g}, at most {spec['tolerance']:g} off" if wrong else None
        low, high = spec.get("minimum", -math.inf), spec.get("maximum", math.inf)
        return None if low <= value <= high else f"{value:.12g} is not within {low:g} to {high:g}"


def escaped(values: Mapping) -> Mapping:
    """Return placeholders' values as parts of a regular expression."""
    return {name: re.escape(str(value)) for name, value in values.items()}


def at_json_path(text: str, path: str) -> str | None:
    """Return what stands at a path of keys and list indices (``jobs.0.read.bw_bytes``) of a JSON document, or None."""
    try:
        value = functools.reduce(step_into, path.split("."), json.loads(text))
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return str(value)


def step_into(value: Any, key: str) -> Any:
    """Return a member of a JSON list or object."""
    return value[int(key)] if isinstance(value, list) else value[key]
