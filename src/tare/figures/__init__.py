"""Figures: one file each, with ``draw(measurements, study) -> Figure``; the file's name is the figure's name.

The first paragraph of a file's docstring is the caption. What all figures share (colours, markers, panels) is in
``_style.py`` and ``tare.mplstyle``.
"""

import io
import sys

import pandas as pd
from matplotlib.figure import Figure

from tare import analysis, figures
from tare.figures._style import backends_of, styled
from tare.files import save
from tare.measurements import Study, read_pair

FORMATS = (".svg", ".png")


def names() -> list[str]:
    """Return the names of all figures."""
    return analysis.module_names(figures)


def draw(name: str, measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one figure by name, in the project's style."""
    module = analysis.load_module(figures, name, "figure")
    with styled():
        figure: Figure = module.draw(measurements, study)
        if study["site"].get("simulated"):
            figure.text(0.5, 0.5, "simulated", color="#999999", alpha=0.35, fontsize=40, ha="center", va="center", rotation=20)
        figure.draw_without_rendering()  # the layout is worked out once, for every format
        figure.set_layout_engine("none")
    return figure


def caption(name: str) -> str:
    """Return a figure's caption: its docstring."""
    return " ".join((analysis.load_module(figures, name, "figure").__doc__ or "").split())


def image(figure: Figure, suffix: str) -> bytes:
    """Return a figure as an SVG or PNG file; the same data give the same bytes."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
    with styled():
        figure.savefig(buffer, format=suffix[1:], metadata=metadata)
    return buffer.getvalue()


def write(argv: list[str]) -> None:
    """Write one figure; the output's suffix says the format: .svg or .png."""
    arguments = analysis.parse("tare.figures", write.__doc__ or "", argv, "figure")
    for path in arguments.output:
        analysis.check_suffix(path, FORMATS)
    analysis.load_module(figures, arguments.name, "figure")
    figure = draw(arguments.name, *read_pair(arguments.measurements, arguments.study))
    for path in arguments.output:
        save(path, image(figure, path.suffix))


def main(argv: list[str] | None = None) -> int:
    """Run ``python -m tare.figures NAME --measurements … --study … -o …``."""
    return analysis.guarded(write, sys.argv[1:] if argv is None else argv)


__all__ = ["backends_of", "caption", "draw", "image", "main", "names"]
