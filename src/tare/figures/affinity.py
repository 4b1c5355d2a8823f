"""Times by affinity: any CPU, the container's CPUs, CPUs and memory, pinned (Liu & Guitart 2022), as bars relative to native."""

import pandas as pd
from matplotlib.figure import Figure

from tare.figures._levels import bars
from tare.measurements import Study
from tare.tables import affinity


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per setting, affinities across, a bar per backend; the line at 1 is native."""
    table = affinity.build(measurements, study)
    return bars(table, "affinity", affinity.LEVELS, str, "affinity is not varied in this study")
