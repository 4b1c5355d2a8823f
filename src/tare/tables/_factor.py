"""What tables of a factor inside the blocks share (Liu & Guitart 2022): each level against the first, and against native."""

from typing import Any

import numpy as np
import pandas as pd

from tare.measurements import BASELINE, NOISE_FLOOR, Study, measured
from tare.methods import method_of

COLUMNS = [f"{own}{name}" for own in ("", "app_") for name in ("median_s", "ratio_to_first", "ratio_to_native")]
KEYS = ["app", "userland", "toolchain", "flags", "nodes", "ranks", "backend"]


def compare_levels(
    measurements: pd.DataFrame, study: Study, factor: str, suffix: str, levels: list[Any] | None = None
) -> pd.DataFrame:
    """Return each level of a factor per cell: its time, the ratio to the first level there is, and the ratio to native.

    Of wall_s (launch to exit of mpirun: more containers are more daemons to start), and with ``app_`` of the program's own time.
    ``suffix`` is how a level looks in the column ``backend`` (a regular expression): it is taken off there, so that all levels
    of one backend, alike in every other factor, stand together. ``levels`` gives their order, else they are sorted. No rows
    where the measurements have no such column.
    """
    columns = [*KEYS, factor, "n", *COLUMNS]
    rows = measured(measurements)
    if factor not in rows.columns or rows[factor].isna().all():
        return pd.DataFrame(columns=columns)
    middle = method_of(study)
    rows = rows[(rows["wall_s"] > 0) & (rows["backend"] != NOISE_FLOOR)]
    rows = rows.assign(backend=rows["backend"].str.replace(rf"\+({suffix})(?=\+|$)", "", regex=True))
    groups = rows.groupby([*KEYS, factor], dropna=False, sort=False)

    def centre(times: "pd.Series[float]") -> float:
        known = np.asarray(times.dropna(), dtype=np.float64)
        return middle.middle(middle.keep(known)) if len(known) else float("nan")

    table = groups.agg(n=("wall_s", "count"), median_s=("wall_s", centre), app_median_s=("app_s", centre)).reset_index()
    known = table[factor].dropna().unique().tolist()
    order = [level for level in levels if level in known] if levels else sorted(known)
    natives = table.loc[table["backend"] == BASELINE].drop_duplicates(KEYS[:-1]).set_index(KEYS[:-1])
    table = table[table[factor].isin(order)]
    table = table.sort_values([*KEYS, factor], key=lambda column: column.map(order.index) if column.name == factor else column)
    for own in ("", "app_"):
        time = table[f"{own}median_s"]
        native = table[KEYS[:-1]].merge(natives[f"{own}median_s"].rename("native").reset_index(), on=KEYS[:-1], how="left")
        table[f"{own}ratio_to_first"] = time / table.groupby(KEYS, dropna=False)[f"{own}median_s"].transform("first")
        table[f"{own}ratio_to_native"] = time / native["native"].to_numpy()
    return table[columns].reset_index(drop=True)
