"""What all figures share: one look, one colour and marker per backend, grids of panels, and an honest empty figure."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
    axes.set_xlim(-0.5, len(counts) - 0.5)
    axes.set_xlabel(label)


def offsets(count: int, width: float = 0.5) -> list[float]:
    """Return where so many backends stand side by side around one tick."""
    return [0.0] if count == 1 else [float(value) for value in np.linspace(-width / 2, width / 2, count)]


def titles(table: Any, keys: list[str]) -> dict[str, bool]:
    """Tell which of the keys vary, so that a panel's title names only what tells it from the others."""
    return {key: table[key].nunique(dropna=False) > 1 for key in keys}
