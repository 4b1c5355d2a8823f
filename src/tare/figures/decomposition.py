"""Where the seconds of one profiled launch went, from launch to exit: start-up, MPI_Init, compute, waiting in MPI by call.

Means over the ranks; the black tick is the ranks' time in the kernel, wherever it fell.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import empty, legend_above, one_app_panels, title_of, varying
from tare.measurements import NOISE_FLOOR, Study, rows_of
from tare.profiles import decompositions, mpi_calls

PANEL = ["app", "toolchain", "flags", "nodes", "ranks"]
OWN = {"start-up": "#bbbbbb", "MPI_Init, MPI_Finalize": "#777777", "compute": "#F0E442"}
CALL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
OTHER = "other MPI"


def draw(_: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per setting; a bar is a backend's profiled launch."""
    rows, calls = decompositions(study), mpi_calls(study)
    rows, calls = rows[rows["backend"] != NOISE_FLOOR], calls[calls["backend"] != NOISE_FLOOR]
    if rows.empty:
        return empty("no MPI profile in this study (profile: [mpi])")
    longest = calls.groupby("call")["seconds"].sum().sort_values(ascending=False)
    colours = dict(zip(longest.index, CALL_COLOURS, strict=False))
    groups = list(rows.groupby(PANEL, sort=False, dropna=False))
    told = varying(rows, PANEL[1:])
    bars = max(len(mine) for _, mine in groups)
    figure, grid, places = one_app_panels(len(groups), 3.6, 0.9 + 0.3 * bars)
    for axes, (key, mine) in zip(places, groups, strict=True):
        setting = dict(zip(PANEL, key, strict=True))
        panel(axes, mine, calls, colours)
        axes.set_title(title_of(setting, told))
        axes.set_xlabel("seconds of the launch [s]")
    for axes in grid[:, 0]:
        axes.set_ylabel("mean of ranks [s]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, calls: pd.DataFrame, colours: dict[str, str]) -> None:
    """Draw one setting: a stacked bar per backend, the first at the top."""
    names = list(rows["backend"])
    for place, row in enumerate(rows_of(rows)):
        mine = calls
        for key in [*PANEL, "backend"]:
            mine = mine[mine[key] == row[key]]
        left = 0.0
        for label, seconds, colour in parts(row, mine, colours):
            axes.barh(place, max(seconds, 0.0), left=left, color=colour, height=0.7, label=label)
            left += max(seconds, 0.0)
        axes.plot([row["system_s"]] * 2, [place - 0.35, place + 0.35], color="black", lw=2, label="kernel time of the ranks")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()


def parts(row: dict[str, Any], calls: pd.DataFrame, colours: dict[str, str]) -> list[tuple[str, float, str]]:
    """Return label, seconds and colour of one bar's parts; calls without a colour of their own are one part."""
    seconds = dict(zip(calls["call"], calls["seconds"], strict=True))
    rest = sum(value for name, value in seconds.items() if name not in colours)
    own = zip(OWN.items(), ("startup_s", "init_s", "compute_s"), strict=True)
    return [
        *((label, row[name], colour) for (label, colour), name in own),
        *((name, seconds.get(name, 0.0), colour) for name, colour in colours.items()),
        (OTHER, rest, "#332288"),
    ]
