"""How a cell's repeats become one number: the project's own way, and those of the published studies, by name.

A study names its method (``method: kononowicz2022``; default ``tare``). Under every method all repeats stay in the data; a method
only says which of them its number is made from.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tare.errors import TareError
from tare.measurements import NOISE_FLOOR, Study, measured
from tare.ratios import Floats
from tare.yamlio import suggestion

DEFAULT = "tare"
SETTING = ["app", "userland", "toolchain", "flags", "nodes", "ranks"]
"""What makes two cells of different backends comparable."""


@dataclass(frozen=True)
class Method:
    """A named way from repeats to one number and, where the method has one, an interval."""

    name: str
    source: str
    rule: str
    keep: Callable[[Floats], Floats]
    middle: Callable[[Floats], float]
    half_width: Callable[[Floats], float | None]


def everything(values: Floats) -> Floats:
    """Keep all repeats."""
    return values


def ten_smallest(values: Floats) -> Floats:
    """Keep the ten smallest repeats."""
    return np.sort(values)[:10]


def within_whiskers(values: Floats) -> Floats:
    """Keep what lies within 1.5 interquartile ranges of the quartiles (Tukey 1977)."""
    return values[~beyond_whiskers(values)]


def beyond_whiskers(values: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Mark what lies beyond 1.5 interquartile ranges of the quartiles, as box plots do."""
    if not len(values):
        return np.zeros(0, dtype=bool)
    lower, upper = np.percentile(values, [25, 75])
    reach = 1.5 * (upper - lower)
    outside: np.ndarray[tuple[int], np.dtype[np.bool_]] = (values < lower - reach) | (values > upper + reach)
    return outside


def median(values: Floats) -> float:
    """Return the median."""
    return float(np.median(values))


def mean(values: Floats) -> float:
    """Return the mean."""
    return float(np.mean(values))


def no_interval(_: Floats) -> None:
    """Return nothing: the method gives no interval for a single cell."""


def three_sigma(values: Floats) -> float | None:
    """Return half the 99.7 % Gaussian interval of the mean: 3 · s/√n, s with n − 1."""
    return 3 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None


def deviation(values: Floats) -> float | None:
    """Return the standard deviation (n − 1)."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


METHODS = {
    method.name: method
    for method in (
        Method(DEFAULT, "this project", "median of all repeats", everything, median, no_interval),
        Method(
            "kononowicz2022",
            "Kononowicz & Czarnul, Appl. Sci. 2022, 12(16), 8305",
            "median of the 10 smallest values",
            ten_smallest,
            median,
            no_interval,
        ),
        Method(
            "alles2018",
            "Alles, Carissimi & Schnorr, WSCAD 2018",
            "mean ± 3 standard errors (99.7 %)",
            everything,
            mean,
            three_sigma,
        ),
        Method(
            "liu2022",
            "Liu & Guitart, 2022",
            "median ± standard deviation, values beyond 1.5 IQR left out",
            within_whiskers,
            median,
            deviation,
        ),
    )
}


def method_of(study: Study) -> Method:
    """Return the method that a study names."""
    name = study.get("study", {}).get("method", DEFAULT)
    if name not in METHODS:
        raise TareError(f"study: method: unknown method {name!r}; {suggestion(str(name), sorted(METHODS))}")
    return METHODS[name]


def timed_cells(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the measured repeats of the study's own cells: no probes, no second native arm."""
    apps = {cell["app"] for cell in study["cells"] if cell["counted"]}
    rows = measured(measurements)
    return rows[rows["app"].isin(apps) & (rows["backend"] != NOISE_FLOOR) & (rows["wall_s"] > 0)]


def centres(measurements: pd.DataFrame, study: Study, metric: str = "wall_s", method: Method | None = None) -> pd.DataFrame:
    """Return each cell's number by the study's method: SETTING, backend, n, kept, centre, half_width (seconds)."""
    chosen = method or method_of(study)
    rows = timed_cells(measurements, study)
    rows = rows[rows[metric] > 0]
    lines = []
    for key, cell in rows.groupby([*SETTING, "backend"], dropna=False, sort=False):
        values = cell[metric].to_numpy(float)
        kept = chosen.keep(values)
        lines.append([*key, len(values), len(kept), chosen.middle(kept), chosen.half_width(kept)])
    table = pd.DataFrame(lines, columns=[*SETTING, "backend", "n", "kept", "centre", "half_width"])
    table["ranks"] = table["ranks"].astype("Int64")
    return table.astype({"centre": "float64", "half_width": "float64"})


def beside_native(table: pd.DataFrame) -> pd.DataFrame:
    """Put native's number (column ``native``) beside that of every other backend of the same setting."""
    native = table.loc[table["backend"] == "native", [*SETTING, "centre"]].rename(columns={"centre": "native"})
    return table[table["backend"] != "native"].merge(native, on=SETTING, how="left")
