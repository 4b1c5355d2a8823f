"""Each backend against native by the measures A, B, C and Sf (Kononowicz & Czarnul 2022, Table 8).

With d the backend's and h native's time: A = |d − h| in seconds, B = the faster of both, C = |1 − d/h| · 100 in percent (native
is the base both ways), Sf = speed-up of the backend / speed-up of native, below 1 where the backend scales worse.
"""

import pandas as pd

from tare.measurements import BASELINE, Study
from tare.methods import SETTING, beside_native, centres
from tare.tables import speedup

DECIMALS = {"A_abs_diff_s": 2, "C_percent": 2, "Sf": 4, "overhead_percent": 2}


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per setting and backend other than native."""
    table = beside_native(centres(measurements, study))
    d, h = table["centre"], table["native"]
    table["A_abs_diff_s"] = (d - h).abs()
    table["B_faster"] = [faster(*row) for row in zip(d, h, table["backend"], strict=True)]
    table["C_percent"] = (1 - d / h).abs() * 100
    table["overhead_percent"] = (d / h - 1) * 100
    table = table.merge(factors(measurements, study), on=[*SETTING, "backend"], how="left")
    columns = [*SETTING, "backend", "A_abs_diff_s", "B_faster", "C_percent", "Sf", "overhead_percent"]
    return table[columns].sort_values([*SETTING, "backend"], ignore_index=True)


def faster(d: float, h: float, backend: str) -> str | None:
    """Name the faster of a backend and native; None where one is missing."""
    if pd.isna(d) or pd.isna(h):
        return None
    if d == h:
        return "equal"
    return backend if d < h else BASELINE


def factors(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return Sf of wall_s per cell."""
    table = speedup.build(measurements, study)
    return table.loc[table["metric"] == "wall_s", [*SETTING, "backend", "Sf"]]
