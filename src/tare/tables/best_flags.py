"""The flag set with the smallest sum of times over the rank counts that all have (Kononowicz & Czarnul 2022, Table 6)."""

import pandas as pd

from tare.measurements import Study
from tare.tables.flag_factors import GROUP, best_times

DECIMALS = {"ahead_percent": 2}


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per app and toolchain: the best flags, and how much longer the second best takes, in percent."""
    rows = []
    for key, group in best_times(measurements, study).groupby(GROUP, dropna=False, sort=False):
        wide = group.pivot_table(index=["nodes", "ranks"], columns="flags", values="median_s").dropna()
        sums = wide.sum().sort_values(kind="stable")
        if len(wide):
            ahead = (sums.iloc[1] / sums.iloc[0] - 1) * 100 if len(sums) > 1 else None
            rows.append([*key, *sums.index[:2], *[None] * (2 - len(sums)), ahead, len(wide)])
    return pd.DataFrame(rows, columns=[*GROUP, "best_flags", "second", "ahead_percent", "settings"])


def best_by_app(measurements: pd.DataFrame, study: Study) -> dict[tuple[str, str], str]:
    """Return the best flags of each app and toolchain."""
    table = build(measurements, study)
    return {(app, tool): flags for app, tool, flags in zip(table["app"], table["toolchain"], table["best_flags"], strict=True)}
