"""What each cell costs against native of the same block: ratios above 1 mean worse than native.

One row per cell and metric; ``ratio`` is the median of the paired ratios, ``low`` and ``high`` bound its confidence
interval, and the floor columns say what a second native arm showed in the same block.
"""

import pandas as pd

from tare.measurements import Study
from tare.verdicts import judged


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return ``tare.verdicts.judged``."""
    return judged(measurements, study)
