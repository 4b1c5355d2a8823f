"""Times by number of containers per node (Liu & Guitart 2022, scenarios SCE1-SCE6), as bars relative to native."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import empty, legend_above, looks, offsets, one_app_panels, select, title_of, varying
from tare.measurements import BASELINE, Study, rows_of
from tare.tables import granularity

ROW = ["app", "userland", "toolchain", "flags", "nodes", "ranks"]


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per setting, scenarios across, a bar per backend; the line at 1 is native."""
    table = granularity.build(measurements, study)
    table = table[(table["backend"] != BASELINE) & table["ratio_to_native"].notna()]
    several = table.groupby(ROW, dropna=False)["containers_per_node"].transform("nunique") > 1
    table = table[several.astype(bool)]
    if table.empty:
        return empty("the number of containers per node is not varied in this study")
    settings = table[ROW].drop_duplicates()
    figure, grid, places = one_app_panels(len(settings))
    for axes, setting in zip(places, rows_of(settings), strict=True):
        panel(axes, select(table, setting), list(dict.fromkeys(table["backend"])))
        axes.set_title(title_of(setting, varying(settings, ROW[1:])))
    for axes in grid[:, 0]:
        axes.set_ylabel("time [times native's]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, backends: list[str]) -> None:
    """Draw one setting's bars."""
    counts = sorted({int(count) for count in rows["containers_per_node"]})
    width = 0.8 / len(backends)
    for name, shift in zip(backends, offsets(len(backends), 0.8 - width), strict=True):
        mine = rows[rows["backend"] == name]
        places = [counts.index(int(count)) + shift for count in mine["containers_per_node"]]
        axes.bar(places, mine["ratio_to_native"], width * 0.95, color=looks([BASELINE, *backends])[name][0], label=name)
    axes.axhline(1, color="black", lw=0.8)
    labels = [f"{granularity.SCENARIOS.get(count, '')}\n{count}".strip() for count in counts]
    axes.set_xticks(range(len(counts)), labels)
    axes.set_xlabel("containers per node")
