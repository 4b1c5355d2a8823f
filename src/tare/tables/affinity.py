"""Affinity of the ranks: any CPU, the container's CPUs, CPUs and memory, and pinned (Liu & Guitart 2022)."""

import pandas as pd

from tare.measurements import Study
from tare.tables._factor import COLUMNS, compare_levels

DECIMALS = dict.fromkeys(COLUMNS, 3)
LEVELS = ["any", "cpu", "cpumem", "cpumempin"]


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per cell and affinity; no rows for a study that does not vary it."""
    return compare_levels(measurements, study, "affinity", "|".join(LEVELS), LEVELS)
