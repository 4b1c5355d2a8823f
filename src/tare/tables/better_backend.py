"""The smaller of all backends' times in seconds, and whose it is (Kononowicz & Czarnul 2022, Table 4)."""

import pandas as pd

from tare.measurements import Study
from tare.methods import SETTING, centres

DECIMALS = {"median_s": 3}


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per setting: the best time, its backend, and how many backends were compared."""
    table = centres(measurements, study)
    groups = table.groupby(SETTING, dropna=False, sort=False)
    best = table.loc[groups["centre"].idxmin()].rename(columns={"centre": "median_s"})
    best["backends"] = groups["backend"].transform("size")
    columns = [*SETTING, "median_s", "backend", "backends"]
    return best[columns].sort_values(SETTING, ignore_index=True)
