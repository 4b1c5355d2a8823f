"""Speed-up against one rank of the same backend, and Sf, the container's speed-up over native's.

Kononowicz & Czarnul 2022, Tables 7 and 8: speed-up = median time on 1 rank / median time on p ranks, from unrounded medians;
Sf = speed-up(container) / speed-up(host), below 1 where the container scales worse. Empty where there is no run on one rank.
"""

import pandas as pd

from tare.measurements import BASELINE, Study
from tare.methods import SETTING, centres
from tare.stats import TIMES

GROUP = ["app", "userland", "toolchain", "flags", "backend"]
DECIMALS = {"speedup": 2, "efficiency": 3, "speedup_native": 2, "Sf": 4}


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per cell and time (``wall_s``, ``app_s``); of several node counts the speed-up is within each."""
    tables = [speedups(centres(measurements, study, metric), metric) for metric in TIMES]
    return pd.concat(tables, ignore_index=True)


def speedups(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the speed-ups of one time."""
    table = cells[[*GROUP, "nodes", "ranks", "n", "centre"]].rename(columns={"centre": "median_s"})
    table.insert(len(GROUP) + 2, "metric", metric)
    table = table.merge(one_rank(table), on=[*GROUP, "nodes"], how="left")
    table["speedup"] = table.pop("one_rank_s") / table["median_s"]
    table["efficiency"] = table["speedup"] / table["ranks"].astype("float64")
    native = table.loc[table["backend"] == BASELINE, [*SETTING, "speedup"]].rename(columns={"speedup": "speedup_native"})
    table = table.merge(native, on=SETTING, how="left")
    table["Sf"] = table["speedup"] / table["speedup_native"]
    return table.sort_values([*GROUP, "nodes", "ranks"], ignore_index=True)


def one_rank(table: pd.DataFrame) -> pd.DataFrame:
    """Return the one-rank median that each group and node count starts from.

    A study that adds nodes with the ranks has one rank on one node only: that run then serves every node count.
    """
    alone = table[table["ranks"] == 1].sort_values("nodes")
    wanted = table[[*GROUP, "nodes"]].drop_duplicates()
    same = wanted.merge(alone[[*GROUP, "nodes", "median_s"]], on=[*GROUP, "nodes"], how="left")
    fewest = alone.drop_duplicates(GROUP)[[*GROUP, "median_s"]].rename(columns={"median_s": "fewest"})
    both = same.merge(fewest, on=GROUP, how="left")
    both["one_rank_s"] = both["median_s"].fillna(both["fewest"])
    return both[[*GROUP, "nodes", "one_rank_s"]]
