"""The printed tables of a published study, each number beside what its raw data give, and what explains a mismatch.

``status``: match, known slip (listed with its reason), MISMATCH, or no data. ``other_rule`` names the rules that would have
given the printed digits.
"""

import pandas as pd

from tare.audit import audit
from tare.measurements import Study


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per printed number; no rows for a study that names no printed tables."""
    return audit(measurements, study)
