"""Processor and kernel counters of one profiled launch, sums over the ranks; what cannot be counted has a reason instead.

No rows for a study without profile: [perf].
"""

import pandas as pd

from tare.measurements import Study
from tare.profiles import counters

DECIMALS = {"value": 0}


def build(_: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return ``tare.profiles.counters``."""
    return counters(study)
