"""Toolchains × flag sets: the time of every pair over the fastest pair of the same program, backend and rank count.

1.00 is the fastest; darker is slower. One map per program and backend; rows are toolchains with flags, columns rank counts.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import cm
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from tare.figures._style import backends_of, empty, panels
from tare.measurements import Study
from tare.methods import centres
from tare.tables.flag_factors import in_order

END = 3.0
"""Where the colours end: three times the fastest."""


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return programs down, backends across."""
    table = centres(measurements, study)
    pairs = [
        (toolchain, flags)
        for toolchain in sorted(table["toolchain"].unique())
        for flags in in_order(list(table["flags"].unique()))
        if ((table["toolchain"] == toolchain) & (table["flags"] == flags)).any()
    ]
    if len(pairs) < 2:
        return empty("one toolchain with one flag set: nothing to compare")
    apps, backends = list(dict.fromkeys(table["app"])), [name for name in backends_of(study) if (table["backend"] == name).any()]
    counts = sorted({int(ranks) for ranks in table["ranks"]})
    figure, grid = panels(len(apps), len(backends), max(2.2, 0.55 * len(counts) + 0.6), max(1.2, 0.3 * len(pairs)), sharey=True)
    for line, app in zip(grid, apps, strict=True):
        for axes, backend in zip(line, backends, strict=True):
            panel(axes, table[(table["app"] == app) & (table["backend"] == backend)], pairs, counts)
            axes.set_title(f"{app} {backend}")
        line[0].set_yticks(np.arange(len(pairs)) + 0.5, [" ".join(pair) for pair in pairs], rotation=0)
    scale = cm.ScalarMappable(norm=Normalize(1, END), cmap="Blues")
    figure.colorbar(scale, ax=list(grid.flat), label="time [times the fastest]", shrink=0.9, aspect=15, pad=0.01)
    return figure


def panel(axes: Axes, cells: pd.DataFrame, pairs: list[tuple[str, str]], counts: list[int]) -> None:
    """Draw one program's map on one backend."""
    times = cells.groupby(["toolchain", "flags", "ranks"])["centre"].min()
    found = np.array([[times.get((*pair, count), np.nan) for count in counts] for pair in pairs], dtype=float)
    fastest = np.nanmin(np.where(np.isnan(found), np.inf, found), axis=0)
    ratios = found / fastest
    texts = np.where(np.isnan(ratios), "", np.char.mod("%.2f", np.nan_to_num(ratios)))
    sns.heatmap(
        ratios, ax=axes, annot=texts, fmt="", vmin=1, vmax=END, cmap="Blues", cbar=False, annot_kws={"size": 7}, linewidths=0.5
    )
    axes.set_xticks(np.arange(len(counts)) + 0.5, [str(count) for count in counts], rotation=0)
    axes.set_xlabel("ranks")
    axes.grid(False)
