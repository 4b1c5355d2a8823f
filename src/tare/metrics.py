"""An app's further numbers as rows of ``metrics.csv``: one per repeat, metric and message size."""

import re
from typing import Any

from tare.measurements import METRIC_COLUMNS

SIZED = re.compile(r"(?P<what>.+)_(?P<bytes>\d+)B_(?P<unit>.+)")
"""``half_round_trip_8B_s``: what, message size, unit, as src/apps/sweep.h writes them."""


def split_size(name: str) -> tuple[str, int | None]:
    """Return a metric's name without its message size, and the size in bytes (None: it has none)."""
    found = SIZED.fullmatch(name)
    return (f"{found['what']}_{found['unit']}", int(found["bytes"])) if found else (name, None)


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
