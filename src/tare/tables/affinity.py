"""Affinity of the ranks: any CPU, the container's CPUs, CPUs and memory, and pinned (Liu & Guitart 2022)."""

import pandas as pd

from tare.measurements import Study
from tare.tables._factor import compare_levels

DECIMALS = {"median_s": 3, "ratio_to_first": 3, "ratio_to_native": 3}
LEVELS = ["any", "cpu", "cpumem", "cpumempin"]


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per cell and affinity; no rows for a study that does not vary it."""
    return compare_levels(measurements, study, "affinity", "|".join(LEVELS), LEVELS)
