"""Numbers as text: rounded half up as printed tables are, absent ones as a dash."""

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

ABSENT = "—"
MINUS = "−"


def number(value: Any) -> float | None:
    """Return a table's value as a number, or None where it is absent (None, NaN, NA)."""
    if value is None:
        return None
    try:
        converted = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(converted) else converted


def half_up(value: Any, digits: int) -> str:
    """Return ``value`` with ``digits`` decimals, ties away from zero.

    Python's own ``round`` and ``format`` round the binary value half to even: 2.675 gives 2.67. The decimal number that people
    see, and round by hand, is rounded here.
    """
    found = number(value)
    if found is None:
        return ABSENT
    if math.isinf(found):
        return "∞" if found > 0 else f"{MINUS}∞"
    # 15 significant digits, as spreadsheets keep: the mean of 149.457 and 149.458 is a tie, not 149.45749999999998
    return str(Decimal(f"{found:.15g}").quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def overhead_percent(ratio: Any, digits: int = 1) -> str:
    """Return a ratio to native as a signed overhead in percent: 1.032 → ``+3.2``."""
    found = number(ratio)
    if found is None:
        return ABSENT
    text = half_up((found - 1) * 100, digits)
    if float(text) == 0:
        return text.lstrip("-")
    return MINUS + text[1:] if text.startswith("-") else f"+{text}"


def significant(value: Any, digits: int = 3) -> str:
    """Return ``value`` with so many significant digits and no exponent where a reader expects none."""
    found = number(value)
    if found is None:
        return ABSENT
    if found == 0 or math.isinf(found):
        return half_up(found, 0)
    decimals = digits - 1 - math.floor(math.log10(abs(found)))
    return half_up(found, max(0, decimals))


def duration(seconds: Any) -> str:
    """Return a time with a unit that suits its size: 12 µs, 3.45 ms, 6.78 s."""
    found = number(seconds)
    if found is None:
        return ABSENT
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(found) >= factor:
            return f"{significant(found / factor)} {unit}"
    return f"{significant(found / 1e-9)} ns" if found else "0 s"
