"""Latency and bandwidth against message size, one line per backend, with the overhead against native below each.

Half round trips give the latency, and bandwidth where no bandwidth was measured (message bytes / half round trip). Lines are
medians; above 0 % always means worse than native: a longer time or a lower rate.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import backends_of, empty, legend_above, looks, panels, select, size_text, title_of, varying
from tare.measurements import BASELINE, NOISE_FLOOR, Study, rows_of
from tare.metrics import HIGHER, Scale, scale_by_name, scales

ROW = ["app", "userland", "toolchain", "flags", "ranks"]


def draw(_: pd.DataFrame, study: Study) -> Figure:
    """Return a column of two panels per app (and userland, toolchain, flags), rank count and metric that knows message sizes."""
    rows = sized(study)
    if rows.empty:
        return empty("no message sizes in this study")
    known = scales(study)
    settings = rows[[*ROW, "metric"]].drop_duplicates()
    figure, grid = panels(2, len(settings), 3.8, 2.3)
    for column, setting in zip(grid.T, rows_of(settings), strict=True):
        metric = setting["metric"]
        scale = known.get((setting["app"], metric)) or scale_by_name(metric)
        here = select(rows, setting)
        lines(column[0], column[1], here.groupby(["backend", "size"])["value"].median(), scale, backends_of(study))
        column[0].set_title(title_of(setting, [*varying(settings, ROW[1:-1]), "ranks"]))
        column[0].set_ylabel(f"{metric} [{scale.unit}]")
    grid[1, 0].set_ylabel("overhead [%]")
    legend_above(figure, grid)
    return figure


def sized(study: Study) -> pd.DataFrame:
    """Return the further metrics that have a message size, and bandwidths worked out from half round trips."""
    rows = study.get("metrics", pd.DataFrame(columns=[*ROW, "metric", "size", "value", "backend"]))
    rows = rows[(rows["size"] > 0) & (rows["value"] > 0) & (rows["backend"] != NOISE_FLOOR)]
    trips = rows[rows["metric"] == "half_round_trip_s"]
    rates = trips.assign(metric="bandwidth_bytes_per_s", value=trips["size"] / trips["value"])
    measured_already = rates["app"].isin(rows.loc[rows["metric"].map(is_rate).astype(bool), "app"])
    return pd.concat([rows, rates[~measured_already]], ignore_index=True)


def is_rate(metric: str) -> bool:
    """Tell a bandwidth from a latency by its name."""
    return scale_by_name(metric).better == HIGHER


def lines(above: Axes, below: Axes, medians: Any, scale: Scale, backends: list[str]) -> None:
    """Draw one metric: values above, overhead below."""
    native = medians.get(BASELINE)
    for name in backends:
        values = medians.get(name)
        if values is None:
            continue
        colour, marker = looks(backends)[name]
        above.plot(values.index, values, color=colour, marker=marker, ms=3.5, label=name)
        if native is not None and name != BASELINE:
            ratio = (values / native).dropna() ** scale.sign
            below.plot(ratio.index, (ratio - 1) * 100, color=colour, marker=marker, ms=3.5)
    below.axhline(0, color="black", lw=0.8)
    above.set_yscale("log")
    sizes = sorted(set(medians.index.get_level_values("size")))
    shown = sizes[:: -(-len(sizes) // 6)]
    for axes in (above, below):
        axes.set_xscale("log", base=2)
        axes.set_xticks(shown, [size_text(size) for size in shown], rotation=30, ha="right", rotation_mode="anchor")
    below.set_xlabel("message size [bytes]")
