"""What may be said of each cell: slower, faster, equivalent within ±δ, or undecided and how many repeats would decide.

Two hypotheses are tested per cell: "the ratio is 1" (two-sided) and "it is off by a factor of 1 + δ or more" (two one-sided
tests). Each family is corrected over all counted cells of a metric (Holm 1979), so that the chance of calling any cell of a
study slower or faster when it is not is at most 1 − confidence, and the same for equivalent.
"""

import math

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from tare.measurements import Study, rows_of
from tare.stats import overheads, settings_of

SLOWER, FASTER, EQUIVALENT, UNDECIDED, NONE = "slower", "faster", "equivalent", "undecided", "not measured"
POWER = 0.8
MOST_REPEATS = 1_000
FAMILY = ["metric", "size"]


def holm(p_values: "pd.Series[float]") -> "pd.Series[float]":
    """Return p-values adjusted over the family of those present (Holm 1979, step-down); absent ones stay absent.

    A cell without a p-value (one repeat, no spread) still belongs to the family; without it the bar for others would drop.
    """
    order = p_values.fillna(1.0).to_numpy(float).argsort(kind="stable")
    factors = np.arange(len(order), 0, -1)
    steps = np.maximum.accumulate(p_values.fillna(1.0).to_numpy(float)[order] * factors)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(steps, 1.0)
    return pd.Series(adjusted, index=p_values.index).where(p_values.notna())


def with_verdicts(table: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Add ``p_difference_holm``, ``p_equivalence_holm``, ``verdict`` and ``repeats_to_decide`` to a table of overheads.

    Cells that are not counted (native-aa, probes) get a verdict of their own, uncorrected: they are families of one.
    """
    confidence, delta = settings_of(study)
    table = table.copy()
    for name in ("p_difference", "p_equivalence"):
        table[f"{name}_holm"] = table[name].astype("float64")
        counted = table["counted"].astype(bool)
        for _, family in table[counted].groupby(FAMILY, dropna=False):
            table.loc[family.index, f"{name}_holm"] = holm(family[name].astype("float64"))
    table["verdict"] = [verdict(row, 1 - confidence) for row in rows_of(table)]
    sizes = table.assign(one=table["counted"].astype(int)).groupby(FAMILY, dropna=False)["one"].transform("sum")
    families = [int(size) if row["counted"] else 1 for row, size in zip(rows_of(table), sizes, strict=True)]
    needs = [repeats_to_decide(row, 1 - confidence, delta, size) for row, size in zip(rows_of(table), families, strict=True)]
    table["repeats_to_decide"] = pd.array(needs, dtype="Int64")
    return table


def verdict(row: Study, alpha: float) -> str:
    """Return one cell's verdict. Equivalence wins over a difference that is sure but smaller than δ."""
    if not row["ratio"] > 0:
        return NONE
    if row["p_equivalence_holm"] <= alpha:
        return EQUIVALENT
    if row["p_difference_holm"] <= alpha:
        return SLOWER if row["ratio_mean"] > 1 else FASTER
    return UNDECIDED


def repeats_to_decide(row: Study, alpha: float, delta: float, family: int) -> int | None:
    """Return how many repeats would decide an undecided cell with 80 % power, if centre and spread stay as measured.

    The least n with (t[1 − α′, n − 1] + t[0.8, n − 1]) · s/√n ≤ distance (Chow, Shao & Wang 2008, Section 3.1), where the
    distance is from the mean log ratio to 1 (α′ = α/2m) or to the nearer equivalence bound (α′ = α/m); m = cells in the family.
    None where it is decided, has no spread to go by, or would need more than 1,000.
    """
    if row["verdict"] != UNDECIDED or not row["low"] > 0 or not row["freedom"] > 0:
        return None
    centre = abs(math.log(row["ratio_mean"]))
    deviation = row["error"] * math.sqrt(row["n_pairs"] or row["n"])
    n = np.unique(np.geomspace(2, MOST_REPEATS, 2000).round())
    power = stdtrit(n - 1, POWER)
    reach = deviation / np.sqrt(n)
    differs = (stdtrit(n - 1, 1 - alpha / family / 2) + power) * reach <= centre
    equals = (stdtrit(n - 1, 1 - alpha / family) + power) * reach <= math.log1p(delta) - centre
    enough = n[differs | equals]
    return int(enough[0]) if len(enough) else None


def rank_test_needs(family: int, alpha: float = 0.05) -> int:
    """Return the fewest pairs with which a signed-rank test (Wilcoxon 1945), corrected for so many cells, can decide at all.

    Its smallest two-sided p-value is 2 · 2⁻ⁿ; 36 cells at 0.05 need 11.
    """
    return math.ceil(math.log2(2 * max(family, 1) / alpha))


def judged(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the overheads of a study with their verdicts."""
    return with_verdicts(overheads(measurements, study), study)
