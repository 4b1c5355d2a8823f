"""Messages inside a container, between containers of a node, and between nodes (Liu & Guitart 2022, Figs 20-22).

Sends, puts and all-to-alls, whose ends the program names; outside containers a node counts as one. No rows for a study without
profile: [mpi].
"""

import pandas as pd

from tare.measurements import Study
from tare.profiles import lanes

DECIMALS = {"bytes": 0}


def build(_: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return ``tare.profiles.lanes``."""
    return lanes(study)
