"""What the nodes counted during a repeat: bytes sent by the busiest interface, and whether that is the labelled one.

Medians over the repeats of sums over the nodes: softirq, steal and throttled CPU seconds; load is the highest node's.
"""

import pandas as pd

from tare.measurements import Study
from tare.profiles import system

DECIMALS = {"sent_MB": 3, "softirq_s": 3, "steal_s": 3, "throttled_s": 3, "load": 2}


def build(_: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return ``tare.profiles.system``."""
    return system(study)
