"""What the report says of how, where and with what it was measured, and how far to trust it."""

from typing import Any

import pandas as pd

from tare import facts, quality
from tare.audit import MATCH, audit
from tare.measurements import BASELINE, Study, measured, rows_of
from tare.methods import method_of
from tare.rounding import number
from tare.verdicts import rank_test_needs


def part(measurements: pd.DataFrame, study: Study, table: pd.DataFrame) -> dict[str, Any]:
    """Return what the page says of how and where it was measured."""
    counted = table[table["counted"].astype(bool)]
    return {
        "has_records": "import" not in study,
        "records": {(cell["block"], cell["backend"]): cell.get("records") for cell in study["cells"]},
        "span": span(measurements),
        "hosts": hosts(measurements),
        "machines": told(study, "cpu_model", "kernel"),
        "software": sorted({line for cell in study["cells"] for line in cell.get("software") or []}),
        "settings": settings(study),
        "commands": commands(study),
        "skipped": facts.skipped(study),
        "failures": facts.failures(measurements),
        "rank_needs": rank_test_needs(int((counted["metric"] == "wall_s").sum())),
        "methods": sorted(set(table["method"].dropna())),
        "method": method_of(study),
        "again": again(study),
        "adaptive": adaptive(table, study),
        "digests": digests(study),
        "startups": startups(study),
        "parts": parts_used(study),
        "unlike": unlike_native(study),
    }


def told(study: Study, *keys: str) -> list[str]:
    """Return what the cells say under these keys, each once."""
    return sorted({str(cell[key]) for cell in study["cells"] for key in keys if cell.get(key)})


def digests(study: Study) -> dict[str, str]:
    """Return which binaries and images the numbers belong to: what → digest, each once."""
    found: dict[str, str] = {}
    for cell in study["cells"]:
        known = cell.get("digests") or {}
        if known.get("binary"):
            found[f"binary of {cell['app']}, {cell['toolchain']} {cell['flags']}"] = f"sha256:{known['binary']}"
        for runtime, image in (known.get("images") or {}).items():
            found[f"image of {runtime}"] = str(image)
    return found


PARTS = ("compiler", "mpi", "libc")


def parts_used(study: Study) -> list[dict[str, Any]]:
    """Return, for each toolchain and backend, what its cells were compiled by and ran with, as the records prove it."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in study["cells"]:
        known = cell.get("with") or {}
        if known.get("mpi"):
            line = {name: cell[name] for name in ("toolchain", "userland", "backend")} | {name: known[name] for name in PARTS}
            entry = found.setdefault(tuple(line.values()), {**line, "compiled_for": []})
            if known["compiled_for"] and known["compiled_for"] not in entry["compiled_for"]:
                entry["compiled_for"].append(known["compiled_for"])
    return list(found.values())


def unlike_native(study: Study) -> list[str]:
    """Return, in words, in what containers differ from the native runs of the same toolchain beyond being containers."""
    native: dict[str, dict[str, Any]] = {}
    sentences = []
    for line in parts_used(study):
        if line["backend"] == BASELINE:
            native.setdefault(line["toolchain"], line)
    for line in parts_used(study):
        partner = native.get(line["toolchain"])
        unlike = [name for name in PARTS if partner and partner[name] != line[name]]
        if unlike and partner:
            parts = ", ".join(f"{name} {line[name]} (native: {partner[name]})" for name in unlike)
            sentences.append(f"{line['toolchain']}, {line['backend']}: {parts}")
    return sentences


def adaptive(table: pd.DataFrame, study: Study) -> dict[str, Any] | None:
    """Return how many blocks of a study with adaptive repeats became precise enough; None where repeats are fixed."""
    repeats = study["study"].get("repeats")
    if not isinstance(repeats, dict):
        return None
    wall = table[(table["metric"] == "wall_s") & table["skipped"].isna()]
    widths = ((wall["high"] - wall["low"]) / 2).groupby(wall["block"]).max()
    reached = widths <= repeats["until"]
    return {**repeats, "blocks": len(widths), "reached": int(reached.sum()), "at_maximum": list(widths.index[~reached])}


def again(study: Study) -> str | None:
    """Return the command that repeats the study, where its file is known."""
    where = study["study"].get("where")
    if where is None or str(where).startswith("-"):
        return None
    if "import" in study:
        return "make replay"
    profile = "slurm" if study["site"].get("scheduler") else "profiles/local"
    return f"snakemake --profile {profile} --config study={where}"


def startups(study: Study) -> list[dict[str, Any]]:
    """Return each backend's preparation: median over blocks of image and containers, outside every time above."""
    found: dict[str, list[Study]] = {}
    for cell in study["cells"]:
        if cell.get("startup"):
            found.setdefault(cell["backend"], []).append(cell["startup"])
    lines = []
    for backend, parts in found.items():
        medians = {key: middle([part.get(key) for part in parts]) for key in ("image_s", "containers_s")}
        if any(value is not None for value in medians.values()):
            lines.append({"backend": backend, "blocks": len(parts), **medians})
    return lines


def middle(values: list[Any]) -> float | None:
    """Return the median of the values that are there."""
    return number(pd.Series([value for value in values if value is not None], dtype="float64").median())


def commands(study: Study) -> list[dict[str, Any]]:
    """Return each backend's command lines: how its container is started, and the launch of every block."""
    found: dict[str, dict[str, Any]] = {}
    for cell in study["cells"]:
        if cell.get("argv"):
            entry = found.setdefault(cell["backend"], {"backend": cell["backend"], "container": None, "launches": []})
            entry["container"] = entry["container"] or cell.get("container_argv")
            entry["launches"].append((cell["block"], cell["argv"]))
    return list(found.values())


def settings(study: Study) -> list[Study]:
    """Return what was run: one entry per block with its options and repeats."""
    blocks: dict[str, Study] = {}
    for cell in study["cells"]:
        entry = blocks.setdefault(cell["block"], {**cell, "backends": []})
        entry["backends"].append(cell["backend"])
    return list(blocks.values())


def span(measurements: pd.DataFrame) -> tuple[str, str] | None:
    """Return when the first and the last repeat began."""
    times = sorted(measurements["started"].dropna())
    return (times[0][:19], times[-1][:19]) if times else None


def hosts(measurements: pd.DataFrame) -> list[str]:
    """Return the nodes that measured repeats ran on."""
    return sorted({name for names in measured(measurements)["hosts"].dropna() for name in names.split()})


def trust(measurements: pd.DataFrame, study: Study) -> dict[str, Any]:
    """Return outliers (cells that have any, with and without them) and drift."""
    flagged = [row for row in rows_of(quality.outliers(measurements, study)) if row["flagged"] and row["backend"] != BASELINE]
    for row in flagged:
        row["without"] = {"low": row["low_without"], "high": row["high_without"]}
        row["oversubscribed"] = False
    drift = rows_of(quality.drift(measurements, study))
    return {"outliers": flagged, "drift": drift, "drifting": [row for row in drift if row["verdict"] == "drift"]}


def audited(measurements: pd.DataFrame, study: Study) -> dict[str, Any] | None:
    """Return the audit of a published study's printed tables, or None where there are none."""
    table = audit(measurements, study)
    if table.empty:
        return None
    others = rows_of(table[table["status"] != MATCH])
    return {"total": len(table), "matched": len(table) - len(others), "others": others}
