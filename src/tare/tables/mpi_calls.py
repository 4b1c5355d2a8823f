"""MPI calls of one profiled launch: how often, how many bytes, and seconds inside (mean and longest over the ranks).

No rows for a study without profile: [mpi].
"""

import pandas as pd

from tare.measurements import Study
from tare.profiles import mpi_calls

DECIMALS = {"seconds": 6, "longest_s": 6, "bytes": 0}


def build(_: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return ``tare.profiles.mpi_calls``."""
    return mpi_calls(study)
