"""Bytes that each rank sent to each other one in one profiled launch, natively (sends, puts and all-to-alls)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tare.figures._style import empty, one_app_panels, title_of, varying
from tare.measurements import BASELINE, Study
from tare.profiles import profiled

PANEL = ["toolchain", "flags", "nodes", "ranks"]


def draw(_: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per native cell with more than one rank: senders down, receivers across."""
    found = [(keys, profile) for keys, profile in profiled(study, "mpi") if keys["backend"] == BASELINE]
    found = [(keys, profile) for keys, profile in found if len(profile["matrix"]) > 1]
    if not found:
        return empty("no MPI profile of several ranks in this study (profile: [mpi])")
    told = varying(pd.DataFrame([keys for keys, _ in found]), PANEL)
    figure, grid, places = one_app_panels(len(found), 2.9, 2.4)
    for axes, (keys, profile) in zip(places, found, strict=True):
        image = axes.imshow(np.array(profile["matrix"]) / 1e6, cmap="cividis_r", vmin=0)
        figure.colorbar(image, ax=axes, shrink=0.8).set_label("MB")
        count = len(profile["matrix"])
        axes.set_xticks(range(0, count, -(-count // 8)))
        axes.set_yticks(range(0, count, -(-count // 8)))
        axes.set_title(title_of(keys, told))
        axes.set_xlabel("receiver [rank]")
    for axes in grid[:, 0]:
        axes.set_ylabel("sender [rank]")
    return figure
