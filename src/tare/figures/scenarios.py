"""Times by number of containers per node (Liu & Guitart 2022, scenarios SCE1-SCE6), as bars relative to native."""

import pandas as pd
from matplotlib.figure import Figure

from tare.figures._levels import bars
from tare.measurements import Study
from tare.tables import granularity


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per setting, scenarios across, a bar per backend; the line at 1 is native."""
    table = granularity.build(measurements, study)
    nothing = "the number of containers per node is not varied in this study"
    return bars(table, "containers_per_node", sorted(set(table["containers_per_node"])), written, nothing)


def written(count: float) -> str:
    """Return a number of containers per node with the scenario's name."""
    return f"{granularity.SCENARIOS.get(int(count), '')}\n{count:g} per node".strip()
