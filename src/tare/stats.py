"""What a cell costs against native: paired within (block, session, round), with an interval, and how sure one can be."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, get_type_hints

import numpy as np
import pandas as pd

from tare.measurements import BASELINE, NOISE_FLOOR, PAIR, Study, measured
from tare.metrics import Scale, scale_of
from tare.ratios import CONFIDENCE, Floats, log_ratio_paired, log_ratio_unpaired
from tare.rounding import number

TIMES = ("wall_s", "app_s")
CELL_FACTS = ("block", "app", "userland", "toolchain", "flags", "nodes", "ranks", "backend")


@dataclass(frozen=True)
class Spread:
    """A cell's values by themselves: middle, and three measures of how far they scatter."""

    n: int
    median: float | None
    mean: float | None
    iqr: float | None  # upper minus lower quartile, linear interpolation (Hyndman & Fan 1996, type 7)
    mad: float | None  # median absolute deviation from the median, unscaled
    cv: float | None  # standard deviation (n − 1) over mean


def spread(values: Floats) -> Spread:
    """Describe one cell's values; what needs two values is None with one."""
    if not len(values):
        return Spread(0, None, None, None, None, None)
    median, mean = float(np.median(values)), float(np.mean(values))
    if len(values) == 1:
        return Spread(1, median, mean, None, None, None)
    lower, upper = np.percentile(values, [25, 75])
    mad = float(np.median(np.abs(values - median)))
    return Spread(len(values), median, mean, float(upper - lower), mad, float(np.std(values, ddof=1)) / mean)


LONG = ["block", "metric", "size", "backend", *PAIR, "number"]


def metric_values(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return measured repeats in long form: one row per repeat, metric and message size, the number in column ``number``.

    ``wall_s`` and ``app_s`` are metrics of every app; an app's own metric joins them where it is another, and so do the further
    metrics of metrics.csv.
    """
    rows = measured(measurements).assign(size=np.nan)
    parts = [rows.assign(metric=name, number=rows[name])[LONG] for name in TIMES]
    own = rows[rows["metric"].notna() & ~rows["metric"].isin(TIMES)]
    parts.append(own.assign(number=own["value"])[LONG])
    further = study.get("metrics")
    if further is not None and len(further):
        parts.append(further.assign(number=further["value"])[LONG])
    long = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    return long[long["number"] > 0]


@dataclass(frozen=True)
class Sample:
    """One arm's measured repeats in one metric, and the round of each (None where the data know no rounds)."""

    values: Floats
    rounds: tuple[tuple[str, float] | None, ...]

    @property
    def has_rounds(self) -> bool:
        """Tell data with no rounds at all (published tables) from a block whose native partner failed."""
        return any(key is not None for key in self.rounds)


NOTHING = Sample(np.empty(0), ())
Measure = tuple[str, float | None]
"""A metric and the message size it was taken at (None: it knows no sizes)."""
Samples = dict[str, dict[Measure, dict[str, Sample]]]


def samples(long: pd.DataFrame) -> Samples:
    """Return the long form of ``metric_values`` as block → metric and size → backend → sample."""
    found: Samples = {}
    for (block, metric, size, backend), rows in long.groupby(["block", "metric", "size", "backend"], sort=False, dropna=False):
        keys = zip(*(rows[name] for name in PAIR), strict=True)
        rounds = tuple(None if math.isnan(place) else (str(session), float(place)) for session, place in keys)
        measure = (str(metric), number(size))
        sample = Sample(rows["number"].to_numpy(float), rounds)
        found.setdefault(str(block), {}).setdefault(measure, {})[str(backend)] = sample
    return found


def pairs(cell: Sample, native: Sample) -> tuple[Floats, Floats]:
    """Return the repeats of a cell and of native that share session and round, in the same order."""
    partners = {key: value for key, value in zip(native.rounds, native.values, strict=True) if key is not None}
    both = [(value, partners[key]) for key, value in zip(cell.rounds, cell.values, strict=True) if key in partners]
    return np.array([own for own, _ in both]), np.array([base for _, base in both])


@dataclass(frozen=True)
class Comparison:
    """One cell and metric against native of the same block. Ratios above 1 always mean: worse than native."""

    metric: str
    unit: str
    better: str  # lower, or higher for a rate
    size: float | None  # bytes of a message
    n: int
    n_native: int
    n_pairs: int
    median: float | None
    median_native: float | None
    difference: float | None  # cell minus native, in the metric's unit: median of pairs, else of medians
    ratio_of_medians: float | None
    ratio: float | None  # median of the paired ratios; of unpaired data the ratio of medians
    ratio_mean: float | None  # geometric mean, the centre of the interval
    low: float | None
    high: float | None
    method: str | None
    error: float | None  # standard error of the mean log ratio, and its degrees of freedom
    freedom: float | None
    p_difference: float | None
    p_equivalence: float | None
    iqr: float | None
    mad: float | None
    cv: float | None


def compare(measure: Measure, scale: Scale, cell: Sample, native: Sample, confidence: float, delta: float) -> Comparison:
    """Compare one cell's repeats with native's in one metric (at one message size)."""
    metric, size = measure
    mine, partners = pairs(cell, native)
    unpaired = not cell.has_rounds and not native.has_rounds
    ratios = (mine / partners) ** scale.sign
    logs = log_ratio_unpaired(cell.values**scale.sign, native.values**scale.sign) if unpaired else log_ratio_paired(ratios)
    own, other = spread(cell.values), spread(native.values)
    of_medians = (own.median / other.median) ** scale.sign if own.median and other.median else None
    difference = median_or_none(mine - partners)
    if unpaired and own.median is not None and other.median is not None:
        difference = own.median - other.median
    interval = logs.interval(confidence) if logs else None
    return Comparison(
        metric=metric,
        unit=scale.unit,
        better=scale.better,
        size=size,
        n=own.n,
        n_native=other.n,
        n_pairs=len(ratios),
        median=own.median,
        median_native=other.median,
        difference=difference,
        ratio_of_medians=of_medians,
        ratio=of_medians if unpaired else median_or_none(ratios),
        ratio_mean=math.exp(logs.mean) if logs else None,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        method=logs.method if logs else None,
        error=logs.error if logs else None,
        freedom=logs.freedom if logs else None,
        p_difference=logs.p_difference() if logs else None,
        p_equivalence=logs.p_equivalence(delta) if logs else None,
        iqr=own.iqr,
        mad=own.mad,
        cv=own.cv,
    )


def median_or_none(values: Floats) -> float | None:
    """Return the median, or None of nothing."""
    return float(np.median(values)) if len(values) else None


def settings_of(study: Study) -> tuple[float, float]:
    """Return a study's confidence level and equivalence margin δ."""
    config = study.get("study", {})
    return float(config.get("confidence", CONFIDENCE)), float(config.get("equivalence", 0.01))


def overheads(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return every planned cell but native against native: one row per cell, metric and message size.

    Columns: the cell's facts, ``counted`` (native-aa and probes are not), ``planned``, ``failed``, ``skipped`` (reason or
    None), the fields of ``Comparison``, and ``floor_ratio``/``floor_low``/``floor_high``: the same for native-aa of the
    same block, which is what no difference at all looks like there. A cell without a measured repeat has empty numbers.
    """
    blocks = samples(metric_values(measurements, study))
    rows = [row for cell in study["cells"] for row in cell_rows(cell, blocks.get(cell["block"], {}), study)]
    table = pd.DataFrame(rows, columns=overhead_columns())
    table = table.astype({name: "float64" for name, kind in get_type_hints(Comparison).items() if kind == float | None})
    return with_floor(table)


def overhead_columns() -> list[str]:
    """Return the columns of ``overheads`` before the floor."""
    facts = [*CELL_FACTS, "counted", "oversubscribed", "planned", "failed", "skipped"]
    return facts + list(Comparison.__dataclass_fields__)


def cell_rows(cell: Study, block: dict[Measure, dict[str, Sample]], study: Study) -> Iterator[dict[str, Any]]:
    """Yield one row per metric for a cell of study.json; none for native itself."""
    partner = cell.get("native", BASELINE)
    if cell["backend"] == partner:
        return
    confidence, delta = settings_of(study)
    facts = {key: cell.get(key) for key in (*CELL_FACTS, "counted", "oversubscribed", "planned", "failed", "skipped")}
    times: list[Measure] = [(name, None) for name in TIMES]
    for measure in (*times, *sorted(set(block) - set(times), key=lambda found: (found[0], found[1] or 0.0))):
        arms = block.get(measure, {})
        own, native = arms.get(cell["backend"], NOTHING), arms.get(partner, NOTHING)
        yield facts | asdict(compare(measure, scale_of(measure[0], cell), own, native, confidence, delta))


def with_floor(table: pd.DataFrame) -> pd.DataFrame:
    """Put each block's native-aa ratio and interval beside its other cells."""
    names = {"ratio": "floor_ratio", "low": "floor_low", "high": "floor_high"}
    floor = table.loc[table["backend"] == NOISE_FLOOR, ["block", "metric", "size", *names]].rename(columns=names)
    return table.merge(floor, on=["block", "metric", "size"], how="left")
