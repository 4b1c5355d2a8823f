"""Arms: what varies inside a block: every backend, with the factors of a study's ``compare:`` where they make sense."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import Any

from tare.backends import Backend

Mapping = dict[str, Any]

BASELINE = "native"
NOISE_FLOOR = "native-aa"


@dataclass(frozen=True)
class Arm:
    """One way of running a block's setting; what is None is the setting's, or the runtime's own."""

    name: str  # file name of its records and stamp
    backend: str  # plain: runtime × network
    label: str  # what the column ``backend`` shows: the backend and what else tells it from its block's other arms
    baseline: str  # the arm that it is paired with, by name
    toolchain: str | None = None
    flags: str | None = None
    userland: str | None = None
    interconnect: str | None = None
    containers_per_node: int | None = None
    affinity: str | None = None
    mtu: int | None = None  # bytes, of the overlay network
    cpu_quota: float | None = None  # CPUs per container
    cpu_shares: int | None = None  # weight of a container; the kernel's own is 1024
    ranks_on: str | None = None  # cores, threads

    @property
    def factors(self) -> Mapping:
        """What the arm has of its own beyond the setting: only factors that are not None."""
        values = {name: getattr(self, name) for name in FACTOR_COLUMNS}
        return {name: value for name, value in values.items() if value is not None}


FACTOR_COLUMNS = ("containers_per_node", "affinity", "mtu", "cpu_quota", "cpu_shares", "ranks_on")
"""The factors that are columns at the end of measurements.csv; the others are the setting's and have columns already."""
OF_SETTING = ("toolchain", "flags", "userland", "interconnect")


@dataclass(frozen=True)
class Factor:
    """One key of ``compare:``."""

    key: str
    field: str  # of Arm
    suffix: Callable[[Any], str]  # how a value looks in an arm's name
    neutral: Any = None  # the value that an arm has anyway: it adds nothing to the name


FACTORS = (
    Factor("toolchains", "toolchain", str),
    Factor("flags", "flags", str),
    Factor("userlands", "userland", str),
    Factor("interconnects", "interconnect", str),
    Factor("containers_per_node", "containers_per_node", lambda count: f"{count}ctn", neutral=1),
    Factor("affinity", "affinity", str),
    Factor("mtu", "mtu", lambda size: f"mtu{size}"),
    Factor("cpu_quota", "cpu_quota", lambda cpus: f"{cpus:g}cpus"),
    Factor("cpu_shares", "cpu_shares", lambda weight: f"shares{weight}"),
    Factor("ranks_on", "ranks_on", str, neutral="cores"),
)
"""In the order in which they stand in an arm's name: the container's first, then what is compared of the program."""
OF_PROGRAM = ("toolchains", "flags")
"""Factors with a column and a place in the block's name of their own: two arms that differ in them have the same label."""


def plan_arms(study: Mapping, backends: dict[str, Backend]) -> tuple[Arm, ...]:
    """Return the arms of every block of a study, the second native arm (noise floor) last.

    A factor is crossed with the others for the backends that can have it (``Backend.factors``): containers_per_node has no
    meaning for native ranks or on a host's network, so those stay single arms. The userland of native arms is the nodes' own.
    """
    compare = study["compare"]
    arms = [arm for name in study["backends"] for arm in arms_of_backend(backends[name], compare, study)]
    if study["noise_floor"]:
        arms += [noise_floor(arm) for arm in arms if arm.label == BASELINE]
    return tuple(arms)


def noise_floor(native: Arm) -> Arm:
    """Return the second native arm beside a native one."""
    return replace(native, name=native.name.replace(BASELINE, NOISE_FLOOR, 1), label=NOISE_FLOOR)


def arms_of_backend(backend: Backend, compare: Mapping, study: Mapping) -> list[Arm]:
    """Return a backend's arms: the product of the compared factors that it can have."""
    factors = [factor for factor in FACTORS if factor.key in compare and factor.key in backend.factors]
    combinations = product(*(compare[factor.key] for factor in factors))
    return [make_arm(backend.name, factors, values, study) for values in combinations]


def make_arm(backend: str, factors: list[Factor], values: tuple[Any, ...], study: Mapping) -> Arm:
    """Return one arm with its name and label; its baseline is chosen when it is known what can run."""
    given = list(zip(factors, values, strict=True))
    program = [factor.suffix(value) for factor, value in given if factor.key in OF_PROGRAM]
    container = [factor.suffix(value) for factor, value in given if is_told(factor, value, study)]
    label = "+".join([backend, *container])
    return Arm("+".join([label, *program]), backend, label, BASELINE, **{factor.field: value for factor, value in given})


def is_told(factor: Factor, value: Any, study: Mapping) -> bool:
    """Say whether a value stands in the label: not what an arm would have anyway."""
    usual = {"userlands": study["userland"], "interconnects": study["interconnect"]}.get(factor.key, factor.neutral)
    return factor.key not in OF_PROGRAM and value not in (None, usual)


def with_baselines(arms: tuple[Arm, ...], skipped: Mapping) -> tuple[Arm, ...]:
    """Return the arms, each with the native arm that it is paired with: one that can run, and is as like it as there is.

    Where native lacks a compared toolchain, its container arms are paired with another toolchain's native; the analysis then has
    no native of the same toolchain and gives no overhead, but container against container.
    """
    natives = [arm for arm in arms if arm.backend == BASELINE and not arm.name.startswith(NOISE_FLOOR)]
    able = [arm for arm in natives if arm.name not in skipped] or natives
    return tuple(replace(arm, baseline=arm.name if arm in natives else nearest(arm, able).name) for arm in arms)


def nearest(arm: Arm, natives: list[Arm]) -> Arm:
    """Return the native arm that differs from an arm in least, the toolchain weighing most."""
    return min(natives, key=lambda native: [getattr(native, name) != getattr(arm, name) for name in (*OF_SETTING, "ranks_on")])


def arm_from_document(document: Mapping) -> Arm:
    """Return the arm that ``arm_document`` wrote."""
    return Arm(**document)


def arm_document(arm: Arm) -> Mapping:
    """Return an arm as plain data, without what is the setting's."""
    needed = {field.name for field in fields(Arm)[:4]}
    return {name: value for name, value in asdict(arm).items() if name in needed or value is not None}
