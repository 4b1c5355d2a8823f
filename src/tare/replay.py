"""``python -m tare.replay STUDY.yaml …``: every table, figure and the report of published data (``import:``), with no cluster."""

import argparse
import os
import sys
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from tare import analysis, figures, importing, report, tables
from tare.files import save
from tare.measurements import Study, read_pair
from tare.summary import summary
from tare.yamlio import ROOT


@dataclass(frozen=True)
class Files:
    """Where one study's results stand."""

    folder: Path

    @property
    def measurements(self) -> Path:
        """Its measurements."""
        return self.folder / "measurements.csv"

    @property
    def study(self) -> Path:
        """Its facts."""
        return self.folder / "study.json"

    def read(self) -> tuple[pd.DataFrame, Study]:
        """Read both, once per process."""
        return _read(self.measurements, self.study)


@cache
def _read(measurements: Path, study: Path) -> tuple[pd.DataFrame, Study]:
    return read_pair(measurements, study)


def write_tables(files: Files) -> None:
    """Write every table in every format."""
    for name in tables.names():
        table = tables.build(name, *files.read())
        for suffix in tables.FORMATS:
            save(files.folder / "tables" / f"{name}{suffix}", tables.text(name, table, suffix).encode())


def write_figure(files: Files, name: str) -> bytes | None:
    """Write one figure in every format; return it as SVG, None where it has nothing to show."""
    figure = figures.draw(name, *files.read())
    content = {suffix: figures.image(figure, suffix) for suffix in figures.FORMATS}
    for suffix, image in content.items():
        save(files.folder / "figures" / f"{name}{suffix}", image)
    return content[".svg"] if figure.axes else None


def replay(studyfile: Path, results: Path, pool: Executor) -> Path:
    """Write ``results/<study>/``, the same files as a measured study has; return the report."""
    made = importing.imported(importing.load(studyfile))
    files = Files(results / made[2]["study"]["name"])
    importing.write_files(made, files.measurements, files.measurements.with_name("metrics.csv"), files.study)
    jobs = {name: pool.submit(write_figure, files, name) for name in figures.names()}
    done = pool.submit(write_tables, files)
    done.result()
    page = report.render(*files.read(), {name: job.result() for name, job in jobs.items()})
    save(files.folder / "report.html", page.encode())
    print(summary(*files.read()))
    return files.folder / "report.html"


def write(argv: list[str]) -> None:
    """Make every table, figure and the report of studies of published data."""
    parser = argparse.ArgumentParser(prog="python -m tare.replay", description=write.__doc__)
    parser.add_argument("studyfiles", type=Path, nargs="+", metavar="STUDY.yaml")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    arguments = parser.parse_args(argv)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for studyfile in arguments.studyfiles:
            print(f"{replay(studyfile, arguments.results.resolve(), pool)}\n")


def main(argv: list[str] | None = None) -> int:
    """Run ``python -m tare.replay STUDY.yaml … [--results FOLDER]``."""
    return analysis.guarded(write, sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
