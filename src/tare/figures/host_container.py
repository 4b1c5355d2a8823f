"""Every cell's difference from native against native's own time: overhead and gain in different colours.

One marker per app (filled: overhead, hollow: gain), so that the two are told apart without colour as well.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import MARKERS, empty, legend_above, one_app_panels, plain_log
from tare.measurements import Study
from tare.methods import beside_native, centres

OVERHEAD, GAIN = "#D55E00", "#0072B2"


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per backend other than native; a dot is a cell."""
    table = beside_native(centres(measurements, study))
    table = table[table["native"].notna()]
    if table.empty:
        return empty("no cell with a measured repeat beside native")
    backends = list(dict.fromkeys(table["backend"]))
    figure, grid, places = one_app_panels(len(backends), 3.6, 2.8)
    for axes, name in zip(places, backends, strict=True):
        panel(axes, table[table["backend"] == name], list(dict.fromkeys(table["app"])))
        axes.set_title(name)
        axes.set_xlabel("native time [s]")
    for axes in grid[:, 0]:
        axes.set_ylabel("difference from native [%]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, apps: list[str]) -> None:
    """Draw one backend's cells."""
    axes.axhline(0, color="black", lw=0.8)
    percent = (rows["centre"] / rows["native"] - 1) * 100
    for index, app in enumerate(apps):
        for name, colour, side in (("overhead", OVERHEAD, percent >= 0), ("gain", GAIN, percent < 0)):
            mine = (rows["app"] == app) & side
            marker = MARKERS[index % len(MARKERS)]
            face = colour if name == "overhead" else "none"
            style: dict[str, Any] = {"color": colour, "marker": marker, "markerfacecolor": face, "ls": "", "alpha": 0.8}
            axes.plot(rows.loc[mine, "native"], percent[mine], label=f"{app}: {name}", **style)
    axes.set_xscale("log")
    plain_log(axes.xaxis)
