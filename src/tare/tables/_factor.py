"""What tables of a factor inside the blocks share (Liu & Guitart 2022): each level against the first, and against native."""

from typing import Any

import pandas as pd

from tare.measurements import BASELINE, NOISE_FLOOR, Study, measured
from tare.methods import method_of

KEYS = ["app", "userland", "toolchain", "flags", "nodes", "ranks", "backend"]


def compare_levels(
    measurements: pd.DataFrame, study: Study, factor: str, suffix: str, levels: list[Any] | None = None
) -> pd.DataFrame:
    """Return each level of a factor per cell: its time, the ratio to the first level there is, and the ratio to native.

    ``suffix`` is how a level looks in the column ``backend`` (a regular expression): it is taken off there, so that all levels
    of one backend, alike in every other factor, stand together. ``levels`` gives their order, else they are sorted. No rows
    where the measurements have no such column.
    """
    columns = [*KEYS, factor, "n", "median_s", "ratio_to_first", "ratio_to_native"]
    rows = measured(measurements)
    if factor not in rows.columns or rows[factor].isna().all():
        return pd.DataFrame(columns=columns)
    rows = rows.assign(backend=rows["backend"].str.replace(rf"\+({suffix})(?=\+|$)", "", regex=True))
    middle = method_of(study)
    rows = rows[(rows["wall_s"] > 0) & (rows["backend"] != NOISE_FLOOR)]
    groups = rows.groupby([*KEYS, factor], dropna=False, sort=False)["wall_s"]
    table = groups.agg(n="count", median_s=lambda times: middle.middle(middle.keep(times.to_numpy(float)))).reset_index()
    known = table[factor].dropna().unique().tolist()
    order = [level for level in levels if level in known] if levels else sorted(known)
    native = table.loc[table["backend"] == BASELINE].drop_duplicates(KEYS[:-1]).set_index(KEYS[:-1])["median_s"]
    table = table[table[factor].isin(order)]
    table = table.sort_values([*KEYS, factor], key=lambda column: column.map(order.index) if column.name == factor else column)
    table["ratio_to_first"] = table["median_s"] / table.groupby(KEYS, dropna=False)["median_s"].transform("first")
    table = table.merge(native.rename("native").reset_index(), on=KEYS[:-1], how="left")
    table["ratio_to_native"] = table["median_s"] / table["native"]
    return table[columns].reset_index(drop=True)
