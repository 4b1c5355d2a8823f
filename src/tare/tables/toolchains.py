"""Toolchain against toolchain: which is faster, and by how many percent of the slower (Kononowicz & Czarnul 2022, Table 9)."""

from itertools import combinations

import pandas as pd

from tare.measurements import Study
from tare.methods import centres

DECIMALS = {"percent": 2}
GROUP = ["app", "userland", "flags", "backend", "nodes", "ranks"]


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per pair of toolchains and cell that both have: (1 − fast/slow) · 100."""
    rows = []
    for key, group in centres(measurements, study).groupby(GROUP, dropna=False):
        times = dict(zip(group["toolchain"], group["centre"], strict=True))
        for pair in combinations(sorted(times), 2):
            fast, slow = sorted(pair, key=lambda name: times[name])
            equal = times[fast] == times[slow]
            rows.append([*key, *pair, "equal" if equal else fast, (1 - times[fast] / times[slow]) * 100])
    return pd.DataFrame(rows, columns=[*GROUP, "toolchain_a", "toolchain_b", "faster_toolchain", "percent"])
