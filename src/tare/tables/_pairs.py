"""What tables of pairs share: two levels of a factor against each other, in the same round where the data know rounds."""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pandas as pd

from tare.measurements import Study
from tare.methods import method_of
from tare.ratios import LogRatio, log_ratio_paired, log_ratio_unpaired
from tare.stats import settings_of
from tare.verdicts import EQUIVALENT, NONE, UNDECIDED, holm, verdict

PAIR = ["session", "round"]
COLUMNS = ["n_pairs", "ratio", "low", "high", "verdict"]
"""``ratio``: geometric mean of b's time over a's; above 1 a is faster."""

Side = tuple[str, pd.DataFrame]


def pairs_of(rows: pd.DataFrame, group: list[str], factor: str) -> Iterator[tuple[tuple[Any, ...], Side, Side]]:
    """Yield the group's key and the two levels' repeats, for every pair of levels of a factor that a group has."""
    for key, found in rows.groupby(group, dropna=False):
        levels = [(str(level), repeats) for level, repeats in found.groupby(factor)]
        for one, two in combinations(levels, 2):
            yield key, one, two


def percent_faster(study: Study, one: Side, two: Side) -> tuple[str, float]:
    """Return the faster level and (1 − fast/slow) · 100 of the study's own centres (Kononowicz & Czarnul 2022, Table 9)."""
    method = method_of(study)
    times = {name: method.middle(method.keep(rows["wall_s"].to_numpy(float))) for name, rows in (one, two)}
    fast, slow = sorted(times, key=lambda name: times[name])
    return "equal" if times[fast] == times[slow] else fast, (1 - times[fast] / times[slow]) * 100


def log_ratio(one: pd.DataFrame, two: pd.DataFrame) -> LogRatio | None:
    """Return the mean log of two / one: of the same rounds, or of all repeats where the data know no rounds."""
    if one["round"].isna().all() and two["round"].isna().all():
        return log_ratio_unpaired(two["wall_s"].to_numpy(float), one["wall_s"].to_numpy(float))
    both = one.dropna(subset=["round"]).merge(two.dropna(subset=["round"]), on=PAIR, suffixes=("_one", "_two"))
    return log_ratio_paired((both["wall_s_two"] / both["wall_s_one"]).to_numpy(float))


def with_intervals(table: pd.DataFrame, logs: list[LogRatio | None], study: Study) -> pd.DataFrame:
    """Add COLUMNS to a table of pairs with the columns ``a`` and ``b``; verdicts are corrected over the table (Holm 1979)."""
    confidence, delta = settings_of(study)
    facts = pd.DataFrame([facts_of(one, confidence, delta) for one in logs], columns=[*COLUMNS[:-1], "difference", "equivalence"])
    facts = facts.astype({name: "float64" for name in facts.columns if name != "n_pairs"}).astype({"n_pairs": "Int64"})
    corrected = zip(holm(facts["difference"]), holm(facts["equivalence"]), strict=True)
    facts["verdict"] = [
        words(str(a), str(b), ratio, both, 1 - confidence)
        for a, b, ratio, both in zip(table["a"], table["b"], facts["ratio"], corrected, strict=True)
    ]
    return pd.concat([table.reset_index(drop=True), facts[COLUMNS]], axis=1)


def facts_of(logs: LogRatio | None, confidence: float, delta: float) -> list[Any]:
    """Return pairs, ratio, interval, and the p-values of difference and equivalence; None where they cannot be told."""
    if logs is None:
        return [0, None, None, None, None, None]
    low, high = logs.interval(confidence) or (None, None)
    return [logs.n, math.exp(logs.mean), low, high, logs.p_difference(), logs.p_equivalence(delta)]


def words(one: str, two: str, ratio: float, corrected: tuple[float, float], alpha: float) -> str:
    """Return a pair's verdict: who is faster, equivalent, undecided or not measured."""
    row = {"ratio": ratio, "ratio_mean": ratio, "p_difference_holm": corrected[0], "p_equivalence_holm": corrected[1]}
    found = verdict(row, alpha)
    return found if found in (EQUIVALENT, UNDECIDED, NONE) else f"{one if ratio > 1 else two} faster"
