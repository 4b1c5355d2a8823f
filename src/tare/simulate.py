"""A site where nothing is launched: times are drawn from a seeded model with planted overheads, drift, outliers and failures.

Everything else is the same as on a real site: the plan, the jobs, the records, the tables, figures and the report, all of them
stamped ``simulated``. It serves to rehearse a study, and to test that what was planted is found and what was not is not.
"""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tare.backends import load_backends
from tare.cases import Arm, Setting
from tare.config import Mapping
from tare.errors import TareError
from tare.metrics import scale_by_name
from tare.prepare import Prepared
from tare.ratios import Floats
from tare.records import Missing, Record
from tare.runner import Session


@dataclass(frozen=True)
class Model:
    """What the site's key ``simulation`` plants."""

    programs: Mapping  # app → {seconds: on one rank, metrics: {name: native's value}}
    flags: Mapping  # flag set → factor of every time
    ratios: Mapping  # backend → its program's time over native's; 1 where it is not named
    noise: float  # deviation of the logarithms
    drift_per_round: float  # 0.001: a round takes 0.1 % longer than the one before it
    launch_s: float  # launch to exit beside the program's own time
    outliers: Mapping  # {share, factor}
    failures: float  # share of the launches

    def factors(self, numbers: Floats, dice: np.random.Generator) -> Floats:
        """Return what each of so many repeats is slowed down by in the rounds of these numbers; NaN where it failed."""
        noise = np.exp(dice.normal(0, self.noise, numbers.shape))
        outlying = np.where(dice.random(numbers.shape) < self.outliers["share"], self.outliers["factor"], 1.0)
        failed = dice.random(numbers.shape) < self.failures
        drift = (1 + self.drift_per_round) ** numbers
        return np.where(failed, np.nan, noise * outlying * drift)

    def seconds(self, setting: Setting) -> float:
        """Return native's own time: a program on p ranks takes a p-th of what it takes on one."""
        if setting.app not in self.programs:
            known = ", ".join(sorted(self.programs))
            raise TareError(f"simulation: programs: no {setting.app!r}; known: {known}; add its seconds to the site")
        return float(self.programs[setting.app]["seconds"] * self.flags.get(setting.flags, 1.0) / setting.ranks)


class Rehearsal(Session):
    """One run of a block on the simulated site."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Pretend nodes: there is no agent to start."""
        self.hellos = [{"cpu_model": "simulated", "kernel": "simulated"} for _ in self.job.allocation.nodes]
        yield

    def bound(self, arm: Arm) -> bool:
        """No rank has a core."""
        del arm
        return False

    @property
    def model(self) -> Model:
        """The site's model."""
        return Model(**self.job.site["simulation"])

    def prepare(self, missing: Missing) -> dict[str, str]:
        """Make every arm ready at once."""
        backends = load_backends()
        self.model.seconds(self.job.block.setting)
        for arm in self.job.block.runnable:
            if arm.name in missing.arms:
                self.prepared[arm.name] = Prepared(backends[arm.backend], (), "simulated", ())
        return {}

    def commands(self, arm: Arm) -> Record:
        """Nothing is started and nothing launched."""
        del arm
        return {"container_argv": None, "argv": None}

    def complete(self, arm: Arm, record: Record) -> None:
        """Draw one repeat: the same round of the same block gives the same number, whatever was drawn before it."""
        setting, model = self.job.block.setting.of(arm), self.model
        number = record["round"] or 0
        words = [setting.id, arm.name, str(number)]
        dice = np.random.default_rng([self.job.study["seed"], *("/".join(words).encode())])
        planted: float = model.ratios.get(arm.label) or model.ratios.get(arm.backend) or 1.0
        factor = float(model.factors(np.array([float(number)]), dice)[0]) * planted
        record |= drawn(model, setting, None if math.isnan(factor) else factor)


def drawn(model: Model, setting: Setting, factor: float | None) -> Record:
    """Return what one launch came to: the program's time and numbers slowed down by a factor, or a failure (None)."""
    good = factor is not None
    app_s = model.seconds(setting) * factor if factor is not None else None
    metrics = model.programs[setting.app].get("metrics", {})
    return {
        "simulated": True,
        "exit_code": 0 if good else 1,
        "timed_out": False,
        "stderr_end": "",
        "status": "ok" if good else "failed",
        "reason": None if good else "a planted failure",
        "wall_s": app_s + model.launch_s if app_s is not None else None,
        "app_s": app_s,
        "metrics": {name: value * factor ** scale_by_name(name).sign for name, value in metrics.items()} if factor else {},
        "answer": {"ok": True} if good else None,
        "cpu": {"busy_s": None, "ranks_s": None, "other_s": None},
        "proof": [],
    }


SESSIONS: dict[str, Any] = {"simulated": Rehearsal}
"""The sites' ways to launch that are not the runner's own."""
