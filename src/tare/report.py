"""``report.html``: one file that opens from disk, with the answer first and everything it rests on behind it."""

import base64
import math
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from tare import analysis, answers, figures, report_answer, report_how
from tare.files import save
from tare.measurements import Study, read_pair
from tare.methods import DEFAULT, METHODS
from tare.rounding import ABSENT, MINUS, duration, half_up, overhead_percent, significant
from tare.verdicts import judged
from tare.yamlio import ROOT

Images = dict[str, bytes | None]

TEMPLATES = ROOT / "workflow" / "report"
FIRST_FIGURE = "overhead_heatmap"


def environment() -> jinja2.Environment:
    """Return the template engine: undefined names are errors, text is escaped."""
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.filters |= {
        "overhead": overhead_percent,
        "duration": signed(duration),
        "in_unit": in_unit,
        "interval": answers.interval,
        "argv": shlex.join,
        "half_up": signed(half_up),
        "known": known,
    }
    return engine


def signed(form: Callable[..., str]) -> Callable[..., str]:
    """Return a formatter that writes a true minus sign."""
    return lambda *values: form(*values).replace("-", MINUS)


def known(value: Any) -> Any:
    """Return a value for the page, absent ones as a dash."""
    return ABSENT if number_is_absent(value) else value


def number_is_absent(value: Any) -> bool:
    """Tell None and NaN from values."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def in_unit(value: Any, unit: str) -> str:
    """Return a metric's value: seconds with a suitable unit, others with their own."""
    return signed(duration)(value) if unit == "s" else f"{signed(significant)(value)} {unit}"


def render(measurements: pd.DataFrame, study: Study, images: Images | None = None) -> str:
    """Return the report as one HTML text; ``images`` are its figures as SVG where they were drawn before."""
    table = judged(measurements, study)
    images = drawn(measurements, study) if images is None else images
    pictures = [picture(name, image) for name, image in images.items() if image is not None]
    words = (
        report_answer.part(measurements, table, study)
        | report_how.part(measurements, study, table)
        | report_how.trust(measurements, study)
    )
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            study=study,
            config={"title": None, "citation": None, "method": METHODS[DEFAULT].name, **study["study"]},
            site={"simulated": False, **study["site"]},
            css=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
            js=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
            absent=ABSENT,
            heatmap=next((found for found in pictures if found["name"] == FIRST_FIGURE), None),
            figures=[found for found in pictures if found["name"] != FIRST_FIGURE],
            left_out=[name for name, image in images.items() if image is None],
            audit=report_how.audited(measurements, study),
            **words,
        )
    )


def drawn(measurements: pd.DataFrame, study: Study) -> Images:
    """Return every figure as SVG, None where it has nothing to show in this study."""
    found: Images = {}
    for name in figures.names():
        figure = figures.draw(name, measurements, study)
        found[name] = figures.image(figure, ".svg") if figure.axes else None
    return found


def picture(name: str, image: bytes) -> dict[str, str]:
    """Return a figure for the page; as an image of its own, its SVG ids cannot clash with another's."""
    source = f"data:image/svg+xml;base64,{base64.b64encode(image).decode()}"
    return {"name": name, "caption": figures.caption(name), "source": source}


def write(argv: list[str]) -> None:
    """Write the report of one study."""
    arguments = analysis.parse("tare.report", write.__doc__ or "", argv, None)
    for path in arguments.output:
        analysis.check_suffix(path, (".html",))
    page = render(*read_pair(arguments.measurements, arguments.study))
    for path in arguments.output:
        save(Path(path), page.encode())


def main(argv: list[str] | None = None) -> int:
    """Run ``python -m tare.report --measurements … --study … -o report.html``."""
    return analysis.guarded(write, sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
