"""Drift: how wall_s moved from round to round within each block, all backends together.

Paired ratios are not touched by a drift that all backends share. No rows for data that know no rounds.
"""

import pandas as pd

from tare.measurements import Study
from tare.quality import drift

DECIMALS = {"percent_per_round": 3, "p": 4, "p_holm": 4}


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return ``tare.quality.drift``."""
    return drift(measurements, study)
