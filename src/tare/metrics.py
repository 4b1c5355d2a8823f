"""What a metric is (its unit, and whether more of it is better), and an app's further numbers as rows of ``metrics.csv``."""

import re
from dataclasses import dataclass
from typing import Any

from tare.measurements import METRIC_COLUMNS, Study

LOWER, HIGHER = "lower", "higher"

SIZED = re.compile(r"(?P<what>.+)_(?P<bytes>\d+)B_(?P<unit>.+)")
"""``half_round_trip_8B_s``: what, message size, unit, as src/apps/sweep.h writes them."""


def split_size(name: str) -> tuple[str, int | None]:
    """Return a metric's name without its message size, and the size in bytes (None: it has none)."""
    found = SIZED.fullmatch(name)
    return (f"{found['what']}_{found['unit']}", int(found["bytes"])) if found else (name, None)


@dataclass(frozen=True)
class Scale:
    """A metric's unit, and which of two values is the better one."""

    unit: str
    better: str

    @property
    def sign(self) -> int:
        """The exponent that turns a ratio of values into one that is above 1 where it is worse."""
        return -1 if self.better == HIGHER else 1


def scale_of(metric: str, cell: Study) -> Scale:
    """Return a metric's scale: as the app's manifest says (in the cell of study.json), else as the metric's name says."""
    if metric == cell.get("metric") and cell.get("unit"):
        return Scale(cell["unit"], cell["better"])
    for declared in cell.get("metrics") or []:
        if declared["name"] == metric:
            return Scale(declared["unit"], declared["better"])
    return scale_by_name(metric)


def scale_by_name(metric: str) -> Scale:
    """Return the scale that a name tells: ``half_round_trip_s`` → s, ``sent_bytes_per_s`` → bytes/s, and a rate."""
    name, _, rate = metric.partition("_per_")
    unit = name.rpartition("_")[2]
    return Scale(f"{unit}/{rate}", HIGHER) if rate else Scale(unit, LOWER)


def scales(study: Study) -> dict[tuple[str, str], Scale]:
    """Return the scales that a study's manifests declare, by app and metric."""
    found = {}
    for cell in study["cells"]:
        for metric in (cell.get("metric"), *(declared["name"] for declared in cell.get("metrics") or [])):
            if metric:
                found[cell["app"], metric] = scale_of(metric, cell)
    return found


def further_rows(measured_row: dict[str, Any], metrics: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of one repeat: every number of ``metrics`` but the one that measurements.csv has already.

    ``measured_row`` is the repeat's row of measurements.csv.
    """
    rows = []
    for name, value in metrics.items():
        if name == measured_row["metric"] or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        metric, size = split_size(name)
        values = {**measured_row, "metric": metric, "size": size, "value": value}
        rows.append({column: values.get(column) for column in METRIC_COLUMNS})
    return rows
