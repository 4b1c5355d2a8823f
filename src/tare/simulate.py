"""A study of made-up data: times drawn from a seeded model with planted overheads, drift, outliers and failures.

What comes out has the form of a measured study and is stamped ``simulated``. It serves to rehearse the analysis, and to test that
what was planted is found and what was not is not.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from tare.measurements import NOISE_FLOOR, Study, with_known_columns
from tare.precision import precise_enough
from tare.yamlio import check, read_yaml, shown

DEFAULTS: Study = {
    "flags": {"O3_native": 1.0},
    "toolchain": "simulated",
    "nodes": 2,
    "skipped": {},
    "drift_per_round": 0.0,
    "launch_s": 0.0,
    "outliers": {"share": 0.0, "factor": 1.0},
    "failures": 0.0,
    "method": "tare",
}
SESSION = "simulated"


def load(path: Path) -> Study:
    """Return a checked study of made-up data."""
    study = read_yaml(path)
    check(study, "simulation", shown(path))
    return {**DEFAULTS, **study, "where": shown(path)}


@dataclass(frozen=True)
class Place:
    """One block: a program at one flag set and rank count, and its native time in seconds."""

    app: str
    flags: str
    ranks: int
    seconds: float
    study: Study

    @property
    def block(self) -> str:
        """The block's id."""
        return f"{self.app}/{self.study['toolchain']}/{self.flags}/n{self.study['nodes']}r{self.ranks}"


def places(study: Study) -> Iterator[Place]:
    """Yield the study's blocks; a program on p ranks takes a p-th of its time."""
    for (app, seconds), (flags, factor), ranks in product(study["programs"].items(), study["flags"].items(), study["ranks"]):
        yield Place(app, flags, ranks, seconds * factor / ranks, study)


def draw(place: Place, backend: str, number: int, dice: random.Random) -> float | None:
    """Return one repeat's own time, None where it failed."""
    study = place.study
    noise = dice.gauss(0, study["noise"])
    failed, outlying = dice.random() < study["failures"], dice.random() < study["outliers"]["share"]
    if failed:
        return None
    drift = (1 + study["drift_per_round"]) ** number
    return float(place.seconds * study["backends"][backend] * drift * math.exp(noise)) * (
        study["outliers"]["factor"] if outlying else 1.0
    )


def rounds_of(place: Place) -> list[dict[str, Any]]:
    """Return one block's repeats, round by round, until they are precise enough or the maximum is reached."""
    study = place.study
    dice = random.Random(f"{study['seed']}/{place.block}")
    plan = (
        study["repeats"] if isinstance(study["repeats"], dict) else {"min": study["repeats"], "max": study["repeats"], "until": 0}
    )
    rows: list[dict[str, Any]] = []
    times: dict[str, dict[tuple[str, int], float]] = {name: {} for name in study["backends"]}
    for number in range(1, plan["max"] + 1):
        arms = sorted(study["backends"])
        dice.shuffle(arms)
        for order, backend in enumerate(arms, start=1):
            seconds = draw(place, backend, number, dice)
            rows.append(row(place, backend, number, order, seconds))
            if seconds is not None:
                times[backend][SESSION, number] = seconds + study["launch_s"]
        if number >= plan["min"] and precise_enough(times, plan["until"]):
            break
    return rows


def row(place: Place, backend: str, number: int, order: int, seconds: float | None) -> dict[str, Any]:
    """Return one repeat as a row of measurements.csv."""
    return {
        **{"app": place.app, "userland": None, "toolchain": place.study["toolchain"], "flags": place.flags, "backend": backend},
        **{"ranks": place.ranks, "rep": number, "nodes": place.study["nodes"], "block": place.block, "round": number},
        **{"wall_s": None if seconds is None else seconds + place.study["launch_s"], "app_s": seconds, "order": order},
        **{"session": SESSION, "status": "failed" if seconds is None else "ok", "metric": "app_s", "value": seconds},
        **{"reason": "planted failure" if seconds is None else None, "simulated": True},
    }


def simulated(study: Study) -> tuple[pd.DataFrame, Study]:
    """Return measurements and facts of a study of made-up data."""
    rows: list[dict[str, Any]] = []
    cells: list[Study] = []
    for place in places(study):
        here = rounds_of(place)
        rows += here
        rounds = max(line["round"] for line in here)
        cells += [cell(place, name, rounds, here, None) for name in study["backends"]]
        cells += [cell(place, name, rounds, [], reason) for name, reason in study["skipped"].items()]
    facts = {
        "study": {key: value for key, value in study.items() if key not in ("programs", "backends", "skipped")},
        "planted": study["backends"],
        "site": {"name": "simulated", "virtual": False, "simulated": True, "nodes": study["nodes"]},
        "seed": study["seed"],
        "cells": cells,
        "provenance": {"source": f"drawn from the model in {study['where']}, seed {study['seed']}"},
    }
    return with_known_columns(pd.DataFrame(rows)), facts


def cell(place: Place, backend: str, rounds: int, rows: list[dict[str, Any]], skipped: str | None) -> Study:
    """Return one cell as it stands in study.json."""
    mine = [line for line in rows if line["backend"] == backend]
    failed = sum(line["status"] == "failed" for line in mine)
    return {
        **{"block": place.block, "kind": "app", "app": place.app, "userland": None, "toolchain": place.study["toolchain"]},
        **{"flags": place.flags, "backend": backend, "nodes": place.study["nodes"], "ranks": place.ranks},
        **{"processes": place.ranks, "oversubscribed": False, "counted": backend != NOISE_FLOOR, "planned": rounds},
        **{"measured": len(mine) - failed, "failed": failed, "pairs": len(mine) - failed, "skipped": skipped},
        **{"argv": None, "container_argv": None, "startup": None, "options": None},
    }
