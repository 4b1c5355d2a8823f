"""When a block has been measured often enough: adaptive repeats (``repeats: {min: 5, max: 50, until: 0.01}``)."""

from collections.abc import Mapping

import numpy as np

from tare.cases import BASELINE
from tare.ratios import CONFIDENCE, log_ratio_paired

Round = tuple[str, int]
"""Session and round of a repeat."""


def half_width(cell: Mapping[Round, float], native: Mapping[Round, float], confidence: float = CONFIDENCE) -> float | None:
    """Return half the width of a cell's overhead interval (0.01: ±1 %), from wall_s by round; None where it cannot be told."""
    rounds = sorted(cell.keys() & native.keys(), key=lambda key: key[1])
    logs = log_ratio_paired(np.array([cell[key] / native[key] for key in rounds]))
    interval = logs.interval(confidence) if logs else None
    return None if interval is None else (interval[1] - interval[0]) / 2


def widest(times: Mapping[str, Mapping[Round, float]], confidence: float = CONFIDENCE) -> float | None:
    """Return the widest half-width of a block's cells, None as long as one of them cannot be told.

    ``times``: arm → round → wall_s of the measured repeats; native-aa counts as a cell, so the noise floor is known as well.
    """
    native = times.get(BASELINE, {})
    found = [half_width(rounds, native, confidence) for arm, rounds in times.items() if arm != BASELINE]
    known = [width for width in found if width is not None]
    return max(known) if known and len(known) == len(found) else None


def precise_enough(times: Mapping[str, Mapping[Round, float]], until: float, confidence: float = CONFIDENCE) -> bool:
    """Tell whether a block may stop: every cell's half-width is below ``until`` now and was without the last round as well.

    Stopping at the first round that looks precise favours rounds that look so by chance: of 95 % intervals about 92 % then cover
    the truth. Asking two rounds running brings them back to 94 % (tests/unit/test_stats_precision.py repeats the trial).
    """
    rounds = sorted({key for arm in times.values() for key in arm}, key=lambda key: key[1])
    if len(rounds) < 3:
        return False
    before = {arm: {key: time for key, time in found.items() if key != rounds[-1]} for arm, found in times.items()}
    widths = widest(times, confidence), widest(before, confidence)
    return all(width is not None and width <= until for width in widths)


def may_stop(times: Mapping[str, Mapping[Round, float]], until: float, confidence: float) -> bool:
    """Tell whether another round would be of no use: the block is precise enough, or there is nothing that could become so.

    An arm of which every repeat has failed is left out; were it waited for, every other cell would be run up to the maximum.
    """
    known = {arm: rounds for arm, rounds in times.items() if rounds}
    return BASELINE not in known or len(known) == 1 or precise_enough(known, until, confidence)
