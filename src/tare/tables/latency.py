"""Round trips: shortest, longest and median, in milliseconds (Kononowicz & Czarnul 2022, Table 10)."""

import pandas as pd

from tare.measurements import NOISE_FLOOR, Study, measured

DECIMALS = {"min_ms": 3, "max_ms": 3, "median_ms": 3}
KEYS = ["app", "toolchain", "flags", "nodes", "ranks", "metric", "backend"]


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per backend of every app that measures a round trip; each repeat (or ping) is one value."""
    rows = trips(measurements)
    groups = rows.groupby(KEYS, dropna=False, sort=False)["ms"]
    return groups.agg(n="count", min_ms="min", max_ms="max", median_ms="median").reset_index()


def trips(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose own metric is a round trip, in milliseconds (column ``ms``)."""
    rows = measured(measurements)
    rows = rows[rows["metric"].astype(str).str.endswith("round_trip_s") & (rows["value"] > 0) & (rows["backend"] != NOISE_FLOOR)]
    return rows.assign(ms=rows["value"] * 1000)
