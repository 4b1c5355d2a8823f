"""Containers per node: the same ranks in one container per node, in two, in four … (Liu & Guitart 2022, scenarios SCE1-SCE6)."""

import pandas as pd

from tare.measurements import Study
from tare.tables._factor import compare_levels

DECIMALS = {"median_s": 3, "ratio_to_first": 3, "ratio_to_native": 3}
SCENARIOS = {1: "SCE1", 2: "SCE2", 4: "SCE3", 8: "SCE4", 16: "SCE5", 32: "SCE6"}


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per cell and number of containers per node; no rows for a study that does not vary it."""
    if "containers_per_node" in measurements.columns:
        numbers = pd.to_numeric(measurements["containers_per_node"], errors="coerce").astype("float64")
        measurements = measurements.assign(containers_per_node=numbers)
    table = compare_levels(measurements, study, "containers_per_node", r"\d+ctn")
    table.insert(len(table.columns) - 4, "scenario", [SCENARIOS.get(int(count), "") for count in table["containers_per_node"]])
    return table
