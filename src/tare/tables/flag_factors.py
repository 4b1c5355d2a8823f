"""How one flag set's times compare with another's: the factor p, below 1 where the first is faster.

Kononowicz & Czarnul 2022, Table 5. Equation (5): p = sum over ranks of the first's times / sum over ranks of the second's, of the
better backend. Equation (6), ``p_mean``: the mean over ranks of the ratios, which every rank count enters with equal weight.
"""

from itertools import combinations

import pandas as pd

from tare.measurements import Study
from tare.tables import better_backend

DECIMALS = {"p": 4, "p_mean": 4}
GROUP = ["app", "userland", "toolchain"]
ORDER = ("O0", "O2", "O3", "O3_native")


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per pair of flag sets; ``over_ranks`` says which rank counts both have (or the study's ``factor_ranks``)."""
    times = best_times(measurements, study)
    rows = []
    for key, group in times.groupby(GROUP, dropna=False, sort=False):
        wide = group.pivot_table(index=["nodes", "ranks"], columns="flags", values="median_s", dropna=False)
        for first, second in combinations(in_order(list(wide.columns)), 2):
            both = wide[[first, second]].dropna()
            ranks = " ".join(str(int(count)) for count in both.index.get_level_values("ranks"))
            total = both[first].sum() / both[second].sum() if len(both) else None
            each = (both[first] / both[second]).mean() if len(both) else None
            rows.append([*key, first, second, ranks, total, each])
    return pd.DataFrame(rows, columns=[*GROUP, "param_a", "param_b", "over_ranks", "p", "p_mean"])


def best_times(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return the better backend's times at the rank counts that a study compares flags over."""
    times = better_backend.build(measurements, study)
    chosen = study.get("study", {}).get("factor_ranks")
    times = times[times["ranks"].isin(chosen)] if chosen else times
    return times.assign(nodes=times["nodes"].fillna(0))


def in_order(flags: list[str]) -> list[str]:
    """Return flag sets from the least to the most optimised, unknown ones last."""
    return sorted(flags, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
