"""How far the repeats can be trusted: outliers (flagged, never deleted), and drift over a campaign."""

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr

from tare.measurements import BASELINE, Study, measured, rows_of
from tare.methods import beyond_whiskers
from tare.metrics import LOWER, Scale
from tare.ratios import Floats
from tare.stats import Measure, Sample, compare, metric_values, samples, settings_of
from tare.verdicts import holm

WALL: Measure = ("wall_s", None)
SECONDS = Scale("s", LOWER)
MAD_LIMIT = 3.5
MAD_SCALE = 0.6744897501960817  # the 75th percentile of a standard normal: makes the MAD of normal data their deviation


def beyond_mad(values: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Mark values whose modified z-score 0.6745 · (x − median)/MAD is beyond 3.5 (Iglewicz & Hoaglin 1993)."""
    centre = np.median(values) if len(values) else 0.0
    deviation = np.median(np.abs(values - centre)) if len(values) else 0.0
    if deviation == 0:
        return np.zeros(len(values), dtype=bool)
    far: np.ndarray[tuple[int], np.dtype[np.bool_]] = MAD_SCALE * np.abs(values - centre) / deviation > MAD_LIMIT
    return far


def flagged(values: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Mark what either rule calls an outlier."""
    return beyond_whiskers(values) | beyond_mad(values)


def kept(sample: Sample) -> Sample:
    """Return a sample without its flagged repeats, for a second look only."""
    keep = ~flagged(sample.values)
    rounds = tuple(key for key, wanted in zip(sample.rounds, keep, strict=True) if wanted)
    return Sample(sample.values[keep], rounds)


OUTLIER_COLUMNS = [
    *("block", "app", "userland", "toolchain", "flags", "nodes", "ranks", "backend", "n", "beyond_iqr", "beyond_mad", "flagged"),
    *("ratio", "low", "high", "ratio_without", "low_without", "high_without"),
]


def outliers(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return each cell's flagged repeats of wall_s, and its overhead with all repeats and without the flagged ones."""
    blocks = samples(metric_values(measurements, study))
    confidence, delta = settings_of(study)
    lines: list[dict[str, Any]] = []
    for cell in study["cells"]:
        arms = blocks.get(cell["block"], {}).get(WALL, {})
        if cell["backend"] not in arms:
            continue
        sample = arms[cell["backend"]]
        line = {key: cell.get(key) for key in OUTLIER_COLUMNS[:8]} | {
            "n": len(sample.values),
            "beyond_iqr": int(beyond_whiskers(sample.values).sum()),
            "beyond_mad": int(beyond_mad(sample.values).sum()),
            "flagged": int(flagged(sample.values).sum()),
        }
        partner = cell.get("native", BASELINE)
        if cell["backend"] != partner and partner in arms:
            native = arms[partner]
            every = compare(WALL, SECONDS, sample, native, confidence, delta)
            fewer = compare(WALL, SECONDS, kept(sample), kept(native), confidence, delta)
            line |= {"ratio": every.ratio, "low": every.low, "high": every.high}
            line |= {"ratio_without": fewer.ratio, "low_without": fewer.low, "high_without": fewer.high}
        lines.append(line)
    return pd.DataFrame(lines, columns=OUTLIER_COLUMNS)


DRIFT = "drift"
DRIFT_COLUMNS = [
    *("block", "app", "toolchain", "flags", "nodes", "ranks", "rounds", "n"),
    *("percent_per_round", "p", "p_holm", "verdict"),
]


def drift(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the trend of wall_s over the rounds of each block, all arms together, in percent per round.

    Each arm's logs are centred on their mean; a line is laid through the means of each round, and its slope tested by Student's t
    (the arms of one round share its moment, so a round is one observation). Holm-corrected over the blocks. A drift that all arms
    share cancels in paired ratios. Data without rounds have no drift to test: no rows.
    """
    rows = measured(measurements)
    rows = rows[rows["round"].notna() & (rows["wall_s"] > 0)]
    lines = [drift_of(block) for _, block in rows.groupby("block", sort=False)]
    table = pd.DataFrame(lines, columns=DRIFT_COLUMNS).astype({"p": "float64"})
    alpha = 1 - settings_of(study)[0]
    table["p_holm"] = holm(table["p"])
    table["verdict"] = [verdict(row, alpha) for row in rows_of(table)]
    return table


def verdict(row: Study, alpha: float) -> str:
    """Return what is said of one block's drift."""
    if math.isnan(row["p_holm"]):
        return "too few rounds"
    return DRIFT if row["p_holm"] <= alpha else "no drift shown"


def drift_of(block: pd.DataFrame) -> dict[str, Any]:
    """Return one block's line: slope per round and its p-value, both absent with fewer than three rounds."""
    logs = block.assign(log=np.log(block["wall_s"].to_numpy(float)))
    logs["log"] -= logs.groupby("backend")["log"].transform("mean")
    means = logs.groupby("round")["log"].mean().to_numpy(float)
    first = rows_of(block.head(1))[0]
    slope, p_value = trend(means)
    line = {key: first.get(key) for key in DRIFT_COLUMNS[:6]} | {"rounds": len(means), "n": len(block)}
    return line | {"percent_per_round": None if slope is None else math.expm1(slope) * 100, "p": p_value}


def trend(means: Floats) -> tuple[float | None, float | None]:
    """Return slope per step and two-sided p-value of a line through values in their order."""
    freedom = len(means) - 2
    if freedom < 1:
        return None, None
    x, y = np.arange(len(means)) - (len(means) - 1) / 2, means - means.mean()
    spread = float(x @ x)
    slope = float(x @ y) / spread
    rest = float(((y - slope * x) ** 2).sum())
    if rest <= 1e-24:
        return slope, None
    return slope, 2 * float(stdtr(freedom, -abs(slope) / math.sqrt(rest / freedom / spread)))
