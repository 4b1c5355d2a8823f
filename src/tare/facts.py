"""What was planned and what became of it: counts that add up, failures and skipped cells with their reasons."""

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from tare.measurements import NOISE_FLOOR, Study, rows_of

SUM = "planned + extra = measured + failed + skipped + missing"


@dataclass(frozen=True)
class Account:
    """Repeats (or cells) of one kind: ``planned + extra = measured + failed + skipped + missing``.

    ``extra`` are repeats beyond the plan (native partners of another arm's re-measured rounds); ``missing`` were planned,
    could have run and did not.
    """

    what: str
    planned: int = 0
    measured: int = 0
    failed: int = 0
    skipped: int = 0
    missing: int = 0
    extra: int = 0

    @property
    def adds_up(self) -> bool:
        """Tell whether nothing was dropped silently."""
        return self.planned + self.extra == self.measured + self.failed + self.skipped + self.missing


def repeats_of(cell: Study) -> Account:
    """Return one cell's account in repeats."""
    left = cell["planned"] - cell["measured"] - cell["failed"]
    gone = "skipped" if cell["skipped"] else "missing"
    return Account("", cell["planned"], cell["measured"], cell["failed"], **{gone: max(left, 0)}, extra=max(-left, 0))


def fate_of(cell: Study) -> str:
    """Return what became of a cell: measured (at least one repeat has a time), failed, skipped or missing."""
    if cell["measured"]:
        return "measured"
    if cell["failed"]:
        return "failed"
    return "skipped" if cell["skipped"] else "missing"


def cells_account(what: str, cells: list[Study]) -> Account:
    """Return an account in cells."""
    return Account(what, planned=len(cells), **Counter(fate_of(cell) for cell in cells))


def repeats_account(what: str, cells: list[Study]) -> Account:
    """Return an account in repeats."""
    parts = [repeats_of(cell) for cell in cells]
    names = ("planned", "measured", "failed", "skipped", "missing", "extra")
    return Account(what, **{name: sum(getattr(part, name) for part in parts) for name in names})


def accounts(study: Study) -> list[Account]:
    """Return the report's first table: cells, then repeats, of the study itself and of what runs beside it."""
    counted = [cell for cell in study["cells"] if cell["counted"]]
    floor = [cell for cell in study["cells"] if not cell["counted"] and cell["backend"] == NOISE_FLOOR]
    probes = [cell for cell in study["cells"] if not cell["counted"] and cell["backend"] != NOISE_FLOOR]
    lines = [cells_account("cells", counted), repeats_account("repeats in these cells", counted)]
    if probes:
        lines.append(repeats_account("repeats of probes, beside the cells", probes))
    if floor:
        lines.append(repeats_account("repeats of the second native arm (noise floor)", floor))
    return lines


def skipped(study: Study) -> list[tuple[str, str, list[str]]]:
    """Return skipped cells by backend and reason, with their blocks."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell in study["cells"]:
        if cell["skipped"]:
            found.setdefault((cell["backend"], str(cell["skipped"])), []).append(cell["block"])
    return [(backend, reason, blocks) for (backend, reason), blocks in found.items()]


def failures(measurements: pd.DataFrame) -> list[Study]:
    """Return every failed repeat: block, backend, round, exit code, reason, when it began."""
    return rows_of(measurements[measurements["status"] == "failed"])
