"""Containers per node: the same ranks in one container per node, in two, in four … (Liu & Guitart 2022, scenarios SCE1-SCE6)."""

import pandas as pd

from tare.measurements import Study
from tare.tables._factor import COLUMNS, compare_levels

DECIMALS = dict.fromkeys(COLUMNS, 3)
SCENARIOS = {1: "SCE1", 2: "SCE2", 4: "SCE3", 8: "SCE4", 16: "SCE5", 32: "SCE6"}


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per cell and number of containers per node; no rows for a study that does not vary it."""
    if "containers_per_node" in measurements.columns:
        numbers = pd.to_numeric(measurements["containers_per_node"], errors="coerce").astype("float64")
        measurements = measurements.assign(containers_per_node=numbers)
    table = compare_levels(measurements, study, "containers_per_node", r"\d+ctn")
    names = [SCENARIOS.get(int(count), "") for count in table["containers_per_node"]]
    table.insert(len(table.columns) - len(COLUMNS) - 1, "scenario", names)
    return table
