"""Printed tables against computed ones, cell by cell; for each mismatch, which other rule would have given the printed digits.

The tables of Kononowicz & Czarnul 2022 are known by their columns, not by their numbers, so that the table of another app or
of more ranks is audited without a change. What a printed table leaves unsaid (toolchain, container, flags) is the study's
``printed:`` and, for flags, the app's best ones.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from tare.errors import TareError
from tare.measurements import BASELINE, Study, read_table, rows_of, to_numbers
from tare.methods import METHODS, centres, method_of
from tare.rounding import half_up, number
from tare.tables import best_flags, better_backend, flag_factors, latency
from tare.yamlio import ROOT, shown

MATCH, SLIP, MISMATCH, ABSENT = "match", "known slip", "MISMATCH", "no data"
COLUMNS = ["table", "key", "column", "printed", "computed", "status", "other_rule", "note"]

Value = float | str | None
Rules = dict[str, Value]


@dataclass(frozen=True)
class Check:
    """One printed number with what the study's method gives and what other rules would."""

    table: str
    key: str
    column: str
    printed: str
    computed: Value
    others: Rules


class Published:
    """A replayed study with lookups of one cell at a time."""

    def __init__(self, measurements: pd.DataFrame, study: Study) -> None:
        self.measurements, self.study = measurements, study
        self.printed: Study = study["study"]["printed"]
        self.toolchain = str(self.printed.get("toolchain", first(measurements, "toolchain")))
        self.container = str(self.printed.get("backend", first_container(study)))
        self.best = best_flags.best_by_app(measurements, study)
        self.times = lookup(centres(measurements, study))
        self.means = lookup(centres(measurements, study, method=METHODS["alles2018"]))
        self.pooled = lookup(self.pool())

    @cached_property
    def better(self) -> dict[tuple[str, str, str, int], float]:
        """The better backend's time of each app, toolchain, flags and rank count."""
        rows = rows_of(better_backend.build(self.measurements, self.study))
        return {(row["app"], row["toolchain"], row["flags"], int(row["ranks"])): row["median_s"] for row in rows}

    @cached_property
    def factors(self) -> pd.DataFrame:
        """The flag factors over the study's rank counts."""
        return flag_factors.build(self.measurements, self.study)

    @cached_property
    def factors_over_all(self) -> pd.DataFrame:
        """The flag factors over all rank counts."""
        config = {**self.study["study"], "factor_ranks": None}
        return flag_factors.build(self.measurements, {**self.study, "study": config})

    def pool(self) -> pd.DataFrame:
        """Return plain medians of every pooled value, where the study has such a file."""
        if "pool" not in self.printed:
            return pd.DataFrame(columns=["app", "toolchain", "flags", "backend", "ranks", "centre"])
        rows = read_table(ROOT / self.printed["pool"])
        for column in ("ranks", "wall_s"):
            rows[column] = to_numbers(rows[column], f"{self.printed['pool']}: {column}")
        keys = ["app", "toolchain", "flags", "backend", "ranks"]
        return rows.groupby(keys)["wall_s"].median().rename("centre").reset_index()

    def time(self, row: Study, backend: str, ranks: Any = None, toolchain: str | None = None) -> float | None:
        """Return one cell's time; flags, where the printed table has none, are the app's best."""
        return self.times.get(self.key(row, backend, ranks, toolchain))

    def key(self, row: Study, backend: str, ranks: Any = None, toolchain: str | None = None) -> tuple[str, str, str, str, int]:
        """Return a cell's key."""
        flags = row.get("flags") or self.best.get((row["app"], self.toolchain), "")
        return (row["app"], toolchain or self.toolchain, flags, backend, int(ranks or row["ranks"]))


def first(measurements: pd.DataFrame, column: str) -> str:
    """Return a column's first value, or nothing of an empty table."""
    return str(measurements[column].iloc[0]) if len(measurements) else ""


def first_container(study: Study) -> str:
    """Return the first backend that is not native."""
    return next((cell["backend"] for cell in study["cells"] if cell["backend"] != BASELINE), "")


def lookup(table: pd.DataFrame) -> dict[tuple[str, str, str, str, int], float]:
    """Return cell times by (app, toolchain, flags, backend, ranks)."""
    keys = ["app", "toolchain", "flags", "backend"]
    return {(*(str(row[key]) for key in keys), int(row["ranks"])): float(row["centre"]) for row in rows_of(table)}  # type: ignore[misc]


def ratio(first_value: float | None, second: float | None) -> float | None:
    """Return a quotient, or None where a part is missing."""
    return first_value / second if first_value is not None and second else None


def percent(value: float | None) -> float | None:
    """Return |1 − value| in percent."""
    return None if value is None else abs(1 - value) * 100


def check_medians(data: Published, row: Study) -> Iterator[tuple[str, Value, Rules]]:
    """Tables 1-3: a cell's median."""
    key = data.key(row, row["backend"])
    value = data.times.get(key)
    others: Rules = {"plain median of all pooled values": data.pooled.get(key), "mean": data.means.get(key)}
    yield "median_s", value, others | rounded_otherwise(value, row["median_s"])


def rounded_otherwise(value: float | None, printed: str) -> Rules:
    """Return a value cut off and rounded up to the printed digits."""
    if value is None:
        return {}
    step = 10 ** -digits_of(printed)
    return {"rounded up": math.ceil(value / step) * step, "cut off": math.floor(value / step) * step}


def check_better(data: Published, row: Study) -> Iterator[tuple[str, Value, Rules]]:
    """Table 4: the smaller of the backends' medians."""
    value = data.better.get((row["app"], data.toolchain, row["flags"], int(row["ranks"])))
    others: Rules = {"native's": data.time(row, BASELINE), "the container's": data.time(row, data.container)}
    yield "median_s", value, others


def check_factor(data: Published, row: Study) -> Iterator[tuple[str, Value, Rules]]:
    """Table 5: the factor p of two flag sets."""
    found = factor(data.factors, data.toolchain, row)
    over_all = factor(data.factors_over_all, data.toolchain, row)
    others: Rules = {"equation (6), mean of ratios": found["p_mean"], "equation (5) over all ranks": over_all["p"]}
    yield "p", found["p"], others


def factor(table: pd.DataFrame, toolchain: str, row: Study) -> dict[str, float | None]:
    """Return p and p_mean of a pair of flag sets, in whichever order the table has the pair."""
    table = table[(table["app"] == row["app"]) & (table["toolchain"] == toolchain)]
    pair = (row["param_a"], row["param_b"])
    for found in rows_of(table):
        if (found["param_a"], found["param_b"]) == pair:
            return {"p": number(found["p"]), "p_mean": number(found["p_mean"])}
        if (found["param_b"], found["param_a"]) == pair:
            return {"p": ratio(1, number(found["p"])), "p_mean": None}
    return {"p": None, "p_mean": None}


def check_best_flags(data: Published, row: Study) -> Iterator[tuple[str, Value, Rules]]:
    """Table 6: the best flags of an app."""
    yield "best_flags", data.best.get((row["app"], data.toolchain)), {}


def check_speedup(data: Published, row: Study) -> Iterator[tuple[str, Value, Rules]]:
    """Table 7: speed-up against one rank of the same backend."""
    one, many = data.time(row, row["backend"], 1), data.time(row, row["backend"])
    other = BASELINE if row["backend"] != BASELINE else data.container
    rules: Rules = {
        "from medians rounded to 2 decimals": ratio(rounded(one), rounded(many)),
        "against one rank of the other backend": ratio(data.time(row, other, 1), many),
    }
    yield "speedup", ratio(one, many), rules


def rounded(value: float | None) -> float | None:
    """Return a time as Tables 1-3 print it."""
    return None if value is None else float(half_up(value, 2))


def check_host_container(data: Published, row: Study) -> Iterator[tuple[str, Value, Rules]]:
    """Table 8: A, B, C and Sf of the container against native."""
    d, h = data.time(row, data.container), data.time(row, BASELINE)
    known = d is not None and h is not None
    rough = abs(rounded(d) - rounded(h)) if known else None  # type: ignore[operator]
    yield "A_abs_diff_s", abs(d - h) if d is not None and h is not None else None, {"from rounded medians": rough}
    yield "B_faster", ("D" if d < h else "H") if d is not None and h is not None else None, {}
    yield (
        "C_percent",
        percent(ratio(d, h)),
        {
            "the container is the base": percent(ratio(h, d)),
            "from rounded medians": percent(ratio(rounded(d), rounded(h))),
        },
    )
    scaling = ratio(ratio(data.time(row, data.container, 1), d), ratio(data.time(row, BASELINE, 1), h))
    yield "Sf", scaling, {"ratio of times, container / native": ratio(d, h), "ratio of times, native / container": ratio(h, d)}


def check_toolchains(data: Published, row: Study) -> Iterator[tuple[str, Value, Rules]]:
    """Table 9: the faster toolchain in the container and by how much."""
    names = sorted({key[1] for key in data.times})
    times = {name: time for name in names if (time := data.time(row, data.container, toolchain=name)) is not None}
    if len(times) < 2:
        yield "faster_toolchain", None, {}
        yield "percent", None, {}
        return
    fast, slow = min(times, key=lambda name: times[name]), max(times, key=lambda name: times[name])
    yield "faster_toolchain", fast, {}
    yield "percent", percent(times[fast] / times[slow]), {"the faster is the base": percent(times[slow] / times[fast])}


def check_latency(data: Published, row: Study) -> Iterator[tuple[str, Value, Rules]]:
    """Table 10: shortest, longest, median round trip in milliseconds."""
    table = latency.build(data.measurements, data.study)
    found = [line for line in rows_of(table) if line["backend"] == row["backend"]]
    trips = latency.trips(data.measurements)
    trips = trips[trips["backend"] == row["backend"]]
    value = found[0][f"{row['statistic']}_ms"] if found else None
    yield "latency", value, {"mean": trips["ms"].mean(), "in seconds": ratio(value, 1000)}


CHECKS: dict[frozenset[str], Callable[[Published, Study], Iterator[tuple[str, Value, Rules]]]] = {
    frozenset({"app", "flags", "backend", "ranks", "median_s"}): check_medians,
    frozenset({"ranks", "app", "flags", "median_s"}): check_better,
    frozenset({"app", "param_a", "param_b", "p"}): check_factor,
    frozenset({"app", "best_flags"}): check_best_flags,
    frozenset({"app", "backend", "ranks", "speedup"}): check_speedup,
    frozenset({"ranks", "app", "A_abs_diff_s", "B_faster", "C_percent", "Sf"}): check_host_container,
    frozenset({"ranks", "app", "faster_toolchain", "percent"}): check_toolchains,
    frozenset({"backend", "statistic", "latency"}): check_latency,
}
VALUES = (
    "median_s",
    "p",
    "best_flags",
    "speedup",
    "A_abs_diff_s",
    "B_faster",
    "C_percent",
    "Sf",
    "faster_toolchain",
    "percent",
    "latency",
)


def digits_of(printed: str) -> int:
    """Return how many decimals a printed number has."""
    exponent = Decimal(printed).as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def as_printed(value: Value, printed: str) -> str | None:
    """Return a value with as many decimals as its printed partner, or None where it is absent."""
    if value is None or isinstance(value, str):
        return value
    return half_up(value, digits_of(printed))


def checks(measurements: pd.DataFrame, study: Study) -> Iterator[Check]:
    """Yield every printed number with what was computed for it."""
    data = Published(measurements, study)
    folder = ROOT / data.printed["path"]
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise TareError(f"{shown(folder)}: no printed table there: found no .csv file; check printed: path: in the study")
    for path in files:
        table = read_table(path)
        check = CHECKS.get(frozenset(table.columns))
        if check is None:
            raise TareError(f"{shown(path)}: unknown kind of table: found {', '.join(table.columns)}; see src/tare/audit.py")
        for row in rows_of(table):
            key = " ".join(str(row[name]) for name in table.columns if name not in VALUES)
            for column, value, others in check(data, row):
                yield Check(path.stem, key, column, str(row[column]), value, others)


def audit(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return printed against computed numbers; empty where the study names no printed tables."""
    if "printed" not in study.get("study", {}):
        return pd.DataFrame(columns=COLUMNS)
    slips = known_slips(study)
    return pd.DataFrame([judged(check, slips, method_of(study).name) for check in checks(measurements, study)], columns=COLUMNS)


def judged(check: Check, slips: list[Study], method: str) -> list[str | None]:
    """Return one line of the audit."""
    computed = as_printed(check.computed, check.printed)
    reason = next((slip["reason"] for slip in slips if applies(slip, check)), None)
    if computed is None:
        status = ABSENT
    elif computed == check.printed:
        status = MATCH
    else:
        status = SLIP if reason else MISMATCH
    matching = [name for name, value in check.others.items() if as_printed(value, check.printed) == check.printed]
    other = None
    if status in (SLIP, MISMATCH):
        other = "; ".join(matching) if matching else f"none of: {', '.join([method, *check.others])}"
    return [check.table, check.key, check.column, check.printed, computed, status, other, reason if status == SLIP else None]


def applies(slip: Study, check: Check) -> bool:
    """Tell whether a known slip is about this printed number."""
    return (slip["table"], slip["column"]) == (check.table, check.column) and fnmatchcase(check.key, slip["key"])


def known_slips(study: Study) -> list[Study]:
    """Return the printed numbers that are known to follow no rule, or another."""
    name = study["study"]["printed"].get("slips")
    return rows_of(read_table(Path(ROOT / name))) if name else []
