"""The same cells by every named method: each method's time (half width where it gives one) and overhead against native.

kononowicz2022: median of the 10 smallest. alles2018: mean ± 3 standard errors. liu2022: median ± deviation without values beyond
1.5 IQR. tare: median of all repeats; its intervals and verdicts stand in the overhead table.
"""

import pandas as pd

from tare.measurements import Study
from tare.methods import METHODS, SETTING, beside_native, centres

DECIMALS = {"centre": 3, "half_width": 3, "overhead_percent": 2}


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per method, setting and backend other than native (seconds, percent)."""
    parts = [beside_native(centres(measurements, study, method=method)).assign(method=name) for name, method in METHODS.items()]
    table = pd.concat(parts, ignore_index=True)
    table["overhead_percent"] = (table["centre"] / table["native"] - 1) * 100
    columns = ["method", *SETTING, "backend", "n", "kept", "centre", "half_width", "native", "overhead_percent"]
    return table[columns]
