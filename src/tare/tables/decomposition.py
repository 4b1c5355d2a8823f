"""Decomposition: where the seconds of one profiled launch went, from launch to exit; and what profiling cost it.

The parts are means over the ranks and add up to wall_s; system_s (time in the kernel) is in them already. cost is the profiled
launch's wall_s over the median of the timed repeats (timed_s). No rows for a study without profile: [mpi].
"""

import pandas as pd

from tare.measurements import Study
from tare.profiles import PARTS, decompositions

DECIMALS = dict.fromkeys(("wall_s", *PARTS, "system_s", "timed_s", "cost"), 3)


def build(_: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return ``tare.profiles.decompositions``."""
    return decompositions(study)
