"""Outliers are flagged and stay: each cell's overhead of wall_s with all repeats, and without the flagged ones beside it.

``beyond_iqr`` lie more than 1.5 interquartile ranges beyond the quartiles, as in box plots; ``beyond_mad`` have a modified
z-score above 3.5; ``flagged`` is either.
"""

import pandas as pd

from tare.measurements import Study
from tare.quality import outliers

DECIMALS = dict.fromkeys(("ratio", "low", "high", "ratio_without", "low_without", "high_without"), 4)


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return ``tare.quality.outliers``."""
    return outliers(measurements, study)
