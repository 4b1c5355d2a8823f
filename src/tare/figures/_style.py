"""What all figures share: one look, one colour and marker per backend, grids of panels, and an honest empty figure."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from tare.measurements import BASELINE, NOISE_FLOOR, Study

STYLE = Path(__file__).with_name("tare.mplstyle")
GREY = "#777777"
FLOOR = "#d9d9d9"
COLOURS = {
    "native": "#000000",
    "native-aa": GREY,
    "singularity": "#0072B2",
    "docker-host": "#E69F00",
    "docker-macvlan": "#009E73",
    "docker-overlay": "#D55E00",
}
"""Palette of Okabe & Ito (2008): told apart by colour-blind people; markers tell the same apart in grey."""
SPARE_COLOURS = ("#CC79A7", "#56B4E9", "#8C6D1F", "#44AA99", "#882255")
MANY = 12
MARKERS = "osD^vP*X<>hp"


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw in the project's style, with a backend that needs no screen."""
    with mpl.rc_context({"backend": "agg"}), style.context(STYLE):
        yield


def backends_of(study: Study, floor: bool = False) -> list[str]:
    """Return a study's backends in the order of its plan, native first; the noise-floor arm only on request."""
    found = dict.fromkeys(cell["backend"] for cell in study["cells"])
    others = [name for name in found if name not in (BASELINE, NOISE_FLOOR)]
    last = [NOISE_FLOOR] if floor and NOISE_FLOOR in found else []
    return [name for name in (BASELINE,) if name in found] + others + last


def one_app_panels(count: int, width: float = 3.3, height: float = 2.6) -> tuple[Figure, Any, list[Axes]]:
    """Return a figure with so many panels, at most three in a row: the figure, its grid, and the panels to draw in."""
    columns = min(3, max(count, 1))
    figure, grid = panels(-(-max(count, 1) // columns), columns, width, height)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    return figure, grid, list(grid.flat[:count])


def size_text(size: float) -> str:
    """Return a message size with a binary unit: 1 B, 4 KiB, 1 MiB."""
    for factor, unit in ((2**20, "MiB"), (2**10, "KiB")):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def looks(backends: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return colour and marker of each backend; the same backend looks the same in every figure of a study."""
    spare = iter(SPARE_COLOURS * 4)
    return {name: (COLOURS.get(name) or next(spare), MARKERS[index % len(MARKERS)]) for index, name in enumerate(backends)}


def panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, Any]:
    """Return a figure with a grid of panels (always a two-dimensional array), each so many inches wide and high."""
    figure = Figure(figsize=(max(4.5, width * columns + 0.8), height * rows + 0.9), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def empty(reason: str) -> Figure:
    """Return a figure that says why there is nothing to see."""
    figure = Figure(figsize=(6, 1.2))
    figure.text(0.5, 0.5, reason, ha="center", va="center", color=GREY)
    return figure


def hide(axes: Axes, note: str = "not in the study") -> None:
    """Leave a panel of the grid empty, with a word why."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, note, ha="center", va="center", color=GREY, transform=axes.transAxes)


def counts_on_x(axes: Axes, counts: list[int], label: str = "ranks") -> None:
    """Put rank counts at even steps of the x axis, each with its own tick."""
    axes.set_xticks(range(len(counts)), [str(count) for count in counts])
    if len(counts) > MANY:
        axes.tick_params(axis="x", labelsize=7, rotation=90)
    axes.set_xlim(-0.5, len(counts) - 0.5)
    axes.set_xlabel(label)


def offsets(count: int, width: float = 0.5) -> list[float]:
    """Return where so many backends stand side by side around one tick."""
    return [0.0] if count == 1 else [float(value) for value in np.linspace(-width / 2, width / 2, count)]


def select(rows: pd.DataFrame, keys: dict[str, Any]) -> pd.DataFrame:
    """Return the rows with these values, absent ones included."""
    for name, value in keys.items():
        rows = rows[rows[name].isna() if pd.isna(value) else rows[name] == value]
    return rows


def varying(table: pd.DataFrame, keys: list[str]) -> list[str]:
    """Return the keys that differ between rows: a title names only what tells a panel from the others."""
    return [key for key in keys if table[key].nunique(dropna=False) > 1]


def title_of(row: Study, keys: list[str]) -> str:
    """Return a panel's title: the app, then what varies."""
    words = [counted(row[key], key) if key in ("nodes", "ranks") else str(row[key]) for key in keys if not pd.isna(row[key])]
    return " ".join([str(row["app"]), *words])


def counted(count: float, things: str) -> str:
    """Return ``1 rank``, ``2 ranks``."""
    return f"{count:g} {things.removesuffix('s') if count == 1 else things}"


def legend_above(figure: Figure, grid: Any) -> None:
    """Put one legend above all panels, each entry once."""
    every = [pair for axes in grid.flat for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles = {label: handle for handle, label in every}
    if handles:
        inches = 0.55 + 0.075 * max(len(label) for label in handles)
        across = max(1, int(figure.get_figwidth() / inches))
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=min(across, len(handles)))


def plain_log(axis: Axis) -> None:
    """Give a logarithmic axis ticks written as plain numbers: 1, 2, 5, 10, … or even steps where its range is short."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if high > 8 * low else MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
