"""Userland against userland: the same program in containers with different distributions (Alles et al. 2018, Figure 4).

Each distribution brings its C library and, unless the toolchain is one of several there, its compiler and MPI. ``ratio`` is the
mean of b's time over a's in the same round, with its interval; the native host (``native``) stands for itself.
"""

import pandas as pd

from tare.measurements import BASELINE, Study
from tare.methods import timed_cells
from tare.tables._pairs import COLUMNS, log_ratio, pairs_of, percent_faster, with_intervals

DECIMALS = {"percent": 2, "ratio": 3, "low": 3, "high": 3}
GROUP = ["app", "toolchain", "flags", "nodes", "ranks", "backend"]
NAMES = ["userland_a", "userland_b", "faster_userland", "percent"]


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per backend, cell and pair of userlands, the native host among them; none where there is one userland."""
    cells = timed_cells(measurements, study).dropna(subset=["userland"])
    cells = cells.assign(backend=[plain(*names) for names in zip(cells["backend"], cells["userland"], strict=True)])
    contained, native = cells[cells["backend"] != BASELINE], cells[cells["backend"] == BASELINE]
    rows, logs = [], []
    for key, one, two in pairs_of(with_native(contained, native), GROUP, "userland"):
        rows.append([*key, one[0], two[0], *percent_faster(study, one, two)])
        logs.append(log_ratio(one[1], two[1]))
    table = pd.DataFrame(rows, columns=[*GROUP, *NAMES])
    judged = with_intervals(table.assign(a=table["userland_a"], b=table["userland_b"]), logs, study)
    return judged[[*GROUP, *NAMES, *COLUMNS]]


def plain(backend: str, userland: str) -> str:
    """Return a backend's label without the userland that it names."""
    return "+".join(word for word in backend.split("+") if word != userland)


def with_native(contained: pd.DataFrame, native: pd.DataFrame) -> pd.DataFrame:
    """Put the native rows beside each backend's, as a userland of that name, where a backend has several userlands."""
    several = contained.groupby(GROUP)["userland"].transform("nunique") > 1
    parts = [native.assign(backend=name, userland=BASELINE) for name in contained.loc[several, "backend"].unique()]
    return pd.concat([contained[several], *parts])
