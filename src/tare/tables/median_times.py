"""Times from launch to exit in seconds, one number per cell by the study's method (Kononowicz & Czarnul 2022, Tables 1-3)."""

import pandas as pd

from tare.measurements import Study
from tare.methods import centres

DECIMALS = {"median_s": 2}
PIVOT = ("ranks", "median_s")


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per cell: app, toolchain, flags, backend, nodes, ranks, n, median_s (of ``alles2018``: a mean)."""
    table = centres(measurements, study).rename(columns={"centre": "median_s"})
    columns = ["app", "userland", "toolchain", "flags", "backend", "nodes", "ranks", "n", "median_s"]
    return table[columns].sort_values(columns[:-2], ignore_index=True)
