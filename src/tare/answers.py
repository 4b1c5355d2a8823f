"""The study's answer in words: one sentence per backend, one short phrase per cell."""

from collections.abc import Iterable

import pandas as pd

from tare.measurements import BASELINE, NOISE_FLOOR, Study, rows_of
from tare.rounding import ABSENT, half_up, number, overhead_percent
from tare.verdicts import EQUIVALENT, FASTER, NONE, SLOWER, UNDECIDED


def plural(count: int, word: str) -> str:
    """Return ``1 cell``, ``2 cells``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def percent_digits(values: Iterable[object]) -> int:
    """Return the decimals that tell small overheads apart without crowding large ones."""
    largest = max((abs(found - 1) for value in values if (found := number(value)) is not None), default=1.0)
    return 2 if largest < 0.001 else 1


def interval(row: Study) -> str:
    """Return a cell's interval as overheads in percent, ``+1.1 to +5.4``."""
    if number(row["low"]) is None:
        return ABSENT
    digits = percent_digits((row["low"], row["high"]))
    return f"{overhead_percent(row['low'], digits)} to {overhead_percent(row['high'], digits)}"


def margin(delta: float) -> str:
    """Return δ as people write it: ``±1 %``."""
    return f"±{delta * 100:.3g} %"


def in_words(row: Study, delta: float) -> str:
    """Return what one cell's numbers mean."""
    if row["verdict"] == NONE:
        return no_number(row)
    if row["backend"] == NOISE_FLOOR:
        return "what no difference looks like here"
    if row["verdict"] == EQUIVALENT:
        return f"as fast as native within {margin(delta)}"
    if row["verdict"] in (SLOWER, FASTER):
        size = half_up(abs(row["ratio"] - 1) * 100, 1)
        return f"{row['verdict']} by {size} %"
    if number(row["low"]) is None:
        return "undecided: " + ("one repeat alone" if max(row["n"], row["n_pairs"]) == 1 else "no spread to judge by")
    more = row["repeats_to_decide"]
    needs = f"about {more} repeats would tell" if number(more) is not None else "no sensible number of repeats would tell"
    return f"undecided: {needs}"


def no_number(row: Study) -> str:
    """Say why a cell has no overhead."""
    if isinstance(row["skipped"], str):
        return f"skipped: {row['skipped']}"
    if row["n"]:
        return "no native repeat of the same round"
    return f"no number: {plural(int(row['failed']), 'repeat')} failed" if row["failed"] else "not measured"


def place(row: Study) -> str:
    """Name a cell's setting, as in ``spmd on 4 ranks``."""
    return f"{row['app']} on {plural(int(row['ranks']), 'rank')}"


def backend_sentence(backend: str, rows: list[Study], delta: float) -> str:
    """Return one sentence on one backend over all its counted cells."""
    parts = [
        difference_part(SLOWER, [row for row in rows if row["verdict"] == SLOWER], len(rows)),
        difference_part(FASTER, [row for row in rows if row["verdict"] == FASTER], len(rows)),
        count_part(f"as fast as native within {margin(delta)} in", EQUIVALENT, rows, len(rows)),
        count_part("undecided in", UNDECIDED, rows, len(rows)),
        skipped_part([row for row in rows if isinstance(row["skipped"], str) and row["verdict"] == NONE], len(rows)),
        count_part("without a number in", NONE, [row for row in rows if not isinstance(row["skipped"], str)], len(rows)),
    ]
    return f"{backend}: " + "; ".join(part for part in parts if part) + "."


def difference_part(word: str, rows: list[Study], total: int) -> str:
    """Say in how many cells a backend differs, and by how much."""
    if not rows:
        return ""
    sizes = sorted(abs(row["ratio"] - 1) * 100 for row in rows)
    most = max(rows, key=lambda row: abs(row["ratio"] - 1))
    by = f"by {half_up(sizes[0], 1)} to {half_up(sizes[-1], 1)} %, most in {place(most)}"
    if len(rows) == 1:
        by = f"by {half_up(sizes[0], 1)} % in {place(most)}"
    return f"{word} in {len(rows)} of {plural(total, 'cell')}, {by}"


def count_part(words: str, verdict: str, rows: list[Study], total: int) -> str:
    """Say in how many cells a verdict was reached."""
    count = sum(row["verdict"] == verdict for row in rows)
    return f"{words} {count} of {plural(total, 'cell')}" if count else ""


def skipped_part(rows: list[Study], total: int) -> str:
    """Say in how many cells a backend was skipped, and why where the reason is the same."""
    reasons = {row["skipped"] for row in rows}
    why = f" ({next(iter(reasons))})" if len(reasons) == 1 else ""
    return f"skipped in {len(rows)} of {plural(total, 'cell')}{why}" if rows else ""


def sentences(table: pd.DataFrame, delta: float, metric: str = "wall_s") -> list[str]:
    """Return one sentence per backend from a judged table of overheads."""
    rows = rows_of(table[(table["metric"] == metric) & table["counted"].astype(bool)])
    backends = [name for name in dict.fromkeys(row["backend"] for row in rows) if name not in (BASELINE, NOISE_FLOOR)]
    return [backend_sentence(name, [row for row in rows if row["backend"] == name], delta) for name in backends]
