"""From study and site to settings, cells, blocks and the shuffled order. Pure: nothing is run here."""

import random
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

from tare.affinity import Host, check_level
from tare.arms import BASELINE, NOISE_FLOOR, OF_SETTING, Arm, arm_document, arm_from_document, plan_arms, with_baselines
from tare.backends import Backend, load_backends
from tare.config import FLAGS, Mapping, Repeats, complete_options
from tare.errors import TareError
from tare.packaged import PACKAGED, placeholders
from tare.userlands import HOST, check_has, check_userland, modules_of, userland_of
from tare.yamlio import suggestion

__all__ = ["BASELINE", "NOISE_FLOOR", "Arm", "Block", "Setting"]


@dataclass(frozen=True)
class Setting:
    """Everything but the arm: what one block holds still. What the study compares reads like ``gcc9+gcc14``."""

    kind: str  # "app", or "probe" for what runs beside the apps and is not counted among the cells
    app: str
    userland: str
    toolchain: str
    flags: str
    nodes: int
    ranks: int
    processes: int
    interconnect: str
    binding: str
    options: Mapping = field(hash=False)
    threads: int = 1  # of each rank, and the cores that a bound one gets
    program: Mapping | None = field(default=None, hash=False)  # of a packaged app

    @property
    def id(self) -> str:
        """The setting as a path: directory of its records, wildcard of its rule, column ``block``."""
        threads = f"t{self.threads}" if self.threads > 1 else ""
        return f"{self.app}/{self.toolchain}/{self.flags}/n{self.nodes}r{self.ranks}{threads}"

    @property
    def slots(self) -> tuple[int, ...]:
        """Processes on each used node, in rank order, as even as possible, the first nodes taking the rest."""
        used = min(self.nodes, self.processes)
        share, rest = divmod(self.processes, used)
        return tuple(share + (index < rest) for index in range(used))

    def slots_in(self, containers: int) -> tuple[int, ...]:
        """Processes in each container, in rank order, where every node has so many of them."""
        return tuple(slots // containers for slots in self.slots for _ in range(containers))

    @property
    def binary(self) -> str:
        """Where the app's program is built, relative to the checkout."""
        return f"build/{self.userland}/{self.toolchain}/{self.flags}/{self.app}"

    @property
    def built(self) -> str:
        """What the workflow makes of the app: its program, or of a packaged one the note that says which one the nodes have."""
        return self.binary if self.program is None else f"{self.binary}.json"

    @property
    def placeholders(self) -> Mapping:
        """The values of a packaged program's placeholders."""
        return placeholders(self.options, self.ranks, self.nodes)

    @property
    def profiler(self) -> str:
        """Where the library for profiled launches is built, relative to the checkout."""
        return f"build/{self.userland}/{self.toolchain}/profile.so"

    def of(self, arm: Arm) -> "Setting":
        """Return the setting as one of its arms has it: with its own toolchain, flags, userland and interconnect."""
        own = {name: getattr(arm, name) for name in OF_SETTING if getattr(arm, name) is not None}
        return replace(self, **own)


@dataclass(frozen=True)
class Block:
    """One Slurm allocation: a setting, its arms, and which of them the site cannot run."""

    setting: Setting
    arms: tuple[Arm, ...]
    skipped: Mapping = field(hash=False)  # arm name → reason
    oversubscribed: bool = False

    @property
    def runnable(self) -> tuple[Arm, ...]:
        """The arms that the site can run."""
        return tuple(arm for arm in self.arms if arm.name not in self.skipped)

    def arm(self, name: str) -> Arm:
        """Return one arm by name."""
        return next(arm for arm in self.arms if arm.name == name)


def plan_blocks(study: Mapping, site: Mapping, manifests: Mapping, toolchains: Mapping) -> tuple[Block, ...]:
    """Expand a study on a site into blocks; whatever cannot be planned is a one-line TareError."""
    where = study["where"]
    check_names(where, "toolchains", study["toolchains"], sorted(toolchains), "toolchain")
    check_names(where, "flags", study["flags"], sorted(FLAGS), "flag set")
    backends = load_backends()
    check_names(where, "backends", study["backends"], sorted(backends), "backend")
    if BASELINE not in study["backends"]:
        raise TareError(f"{where}: backends: {BASELINE!r} is missing; every overhead is measured against it; add it")
    check_compared(study, site, toolchains)
    study = with_usual(study, site)
    arms = plan_arms(study, backends)
    settings = (in_its_userland(setting, toolchains) for setting in plan_settings(study, site, manifests))
    return tuple(
        plan_block(setting, arms_in_userlands(arms, setting, backends, site, toolchains), backends, site) for setting in settings
    )


def plan_block(setting: Setting, arms: tuple[Arm, ...], backends: dict[str, Backend], site: Mapping) -> Block:
    """Return one block: what it cannot run, and each arm's native partner."""
    skipped = skipped_arms(setting, arms, backends, site)
    oversubscribed = max(setting.slots) * setting.threads > site["cpus_per_node"]
    return Block(setting, with_baselines(arms, skipped), skipped, oversubscribed)


def check_compared(study: Mapping, site: Mapping, toolchains: Mapping) -> None:
    """Raise when a compared interconnect is not the site's, or a compared userland lacks a toolchain of the study."""
    for name in study["compare"].get("interconnects", []):
        check_interconnect(study, site, name, "compare.interconnects")
    for userland in study["compare"].get("userlands", []):
        check_userland(userland, f"{study['where']}: compare.userlands")
        for name in study["toolchains"]:
            check_has(name, toolchains[name], userland, f"{study['where']}: compare.userlands")


def check_interconnect(study: Mapping, site: Mapping, name: str, key: str) -> None:
    """Raise when the site has no such interconnect."""
    if name not in site["interconnects"]:
        known = sorted(site["interconnects"])
        raise TareError(f"{study['where']}: {key}: site {site['name']!r} has no {name!r}; {suggestion(name, known)}")


def with_usual(study: Mapping, site: Mapping) -> Mapping:
    """Return the study with its interconnect: the one it names, else the first compared, else the site's first."""
    known = [*study["compare"].get("interconnects", []), *site["interconnects"]]
    interconnect = study["interconnect"] or known[0]
    check_interconnect(study, site, interconnect, "interconnect")
    return {**study, "interconnect": interconnect}


def in_its_userland(setting: Setting, toolchains: Mapping) -> Setting:
    """Return the setting in the userland that has its toolchain: the study's, where that has it."""
    if setting.toolchain not in toolchains:  # compared: each arm has its own
        return setting
    return replace(setting, userland=userland_of(setting.toolchain, toolchains[setting.toolchain], setting.userland))


def arms_in_userlands(
    arms: tuple[Arm, ...], setting: Setting, backends: dict[str, Backend], site: Mapping, toolchains: Mapping
) -> tuple[Arm, ...]:
    """Return the arms, each in the userland that has its toolchain; native ones with modules in the host's."""
    return tuple(replace(arm, userland=own_userland(arm, setting, backends, site, toolchains)) for arm in arms)


def own_userland(arm: Arm, setting: Setting, backends: dict[str, Backend], site: Mapping, toolchains: Mapping) -> str | None:
    """Return the userland of an arm where it is not the setting's."""
    name = arm.toolchain or setting.toolchain
    if backends[arm.backend].runtime == BASELINE and modules_of(site, name, toolchains[name]):
        return HOST
    if arm.toolchain is None:
        return arm.userland
    return userland_of(name, toolchains[name], arm.userland or setting.userland)


def check_names(where: str, key: str, found: list[str] | Mapping, known: list[str], what: str) -> None:
    """Raise when a list or mapping in the study names something that does not exist."""
    for index, name in enumerate(found):
        if name not in known:
            at = f"{key}.{name}" if isinstance(found, dict) else f"{key}[{index}]"
            raise TareError(f"{where}: {at}: unknown {what} {name!r}; {suggestion(name, known)}")


def skipped_arms(setting: Setting, arms: tuple[Arm, ...], backends: dict[str, Backend], site: Mapping) -> dict[str, str]:
    """Return the arms that the site or the number of ranks rules out, each with its reason."""
    reasons = {arm.name: why_not(setting.of(arm), arm, backends[arm.backend], site) for arm in arms}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def why_not(setting: Setting, arm: Arm, backend: Backend, site: Mapping) -> str | None:
    """Return why an arm cannot be run with this setting, or None; an affinity that no site could give is a TareError."""
    missing = backend.unavailable(site) or backend.lacks(site, arm.factors, setting.interconnect)
    if missing is not None:
        return missing
    if arm.ranks_on == "threads" and site["threads_per_core"] == 1:
        return f"site {site['name']!r} has one hardware thread per core (threads_per_core)"
    containers = arm.containers_per_node or 1
    for slots in setting.slots:
        if slots % containers:
            return f"{slots} ranks of a node cannot be divided evenly over {containers} containers"
    return why_not_bound(setting, arm, containers, site)


def why_not_bound(setting: Setting, arm: Arm, containers: int, site: Mapping) -> str | None:
    """Return why an arm's affinity cannot be had on the site, or None."""
    if arm.affinity in (None, "any"):
        return None
    threads_counted = 1 if arm.ranks_on == "threads" else site["threads_per_core"]
    host = Host(site["sockets_per_node"], site["cpus_per_node"] // site["sockets_per_node"] // threads_counted)
    for slots in setting.slots:
        wanted, cores = slots * setting.threads, host.sockets * host.cores
        if wanted > cores:
            whose = f"{slots} ranks" if setting.threads == 1 else f"{slots} ranks' {wanted} threads"
            return f"affinity {arm.affinity} needs a core for each of a node's {whose}; it has {cores}"
        check_level(str(arm.affinity), host, wanted, containers)
    return None


def plan_settings(study: Mapping, site: Mapping, manifests: Mapping) -> list[Setting]:
    """Expand apps and probes over toolchains, flags, nodes and ranks."""
    where = study["where"]
    settings = []
    for kind, key in (("app", "apps"), ("probe", "probes")):
        check_names(where, key, study[key], sorted(manifests), "app")
        for app, entry in study[key].items():
            settings += app_settings(study, site, manifests[app], kind, entry, f"{where}: {key}.{app}")
    return settings


def app_settings(study: Mapping, site: Mapping, manifest: Mapping, kind: str, entry: Mapping, where: str) -> list[Setting]:
    """Expand one app of the study."""
    options = complete_options(manifest, entry.get("options", {}), f"{where}.options")
    ranks_of_all = [2] if manifest["ranks"] == "exactly-two" else study["ranks"]
    nodes_planned: list[int] = (study | entry)["nodes"]
    ranks_planned: list[int] = ({"ranks": ranks_of_all} | entry)["ranks"]
    for nodes in nodes_planned:
        check_nodes(nodes, site, where)
    for ranks in ranks_planned:
        check_ranks(ranks, manifest, where)
    check_threads(entry.get("threads", 1), manifest, where)
    return [
        Setting(
            kind=kind,
            app=manifest["app"],
            userland=study["userland"],
            toolchain=toolchain,
            flags=flags,
            nodes=nodes,
            ranks=ranks,
            processes=ranks + manifest["extra_processes"],
            interconnect=study["interconnect"],
            binding=study["binding"],
            options=options,
            threads=entry.get("threads", 1),
            program=manifest["program"],
        )
        for toolchain, flags, nodes, ranks in product(
            settled(study, "toolchains"), flags_of(study, manifest, where), nodes_planned, ranks_planned
        )
    ]


def flags_of(study: Mapping, manifest: Mapping, where: str) -> list[str]:
    """Return the flag sets that an app is built with; what a packaged one was built with cannot be compared."""
    if manifest["program"] is None:
        return settled(study, "flags")
    compared = [key for key in ("toolchains", "flags", "userlands") if key in study["compare"]]
    if compared:
        raise TareError(f"{where}: compare.{compared[0]}: a packaged program is built already; give it a study without that key")
    return [PACKAGED]


def settled(study: Mapping, key: str) -> list[str]:
    """Return the values that make settings of their own; compared ones share a setting, whose id joins them."""
    values: list[str] = study[key]
    return ["+".join(values)] if key in study["compare"] else values


def check_nodes(nodes: int, site: Mapping, where: str) -> None:
    """Raise when a study wants more nodes than the site has."""
    if nodes > site["nodes"]:
        raise TareError(
            f"{where}: nodes: found {nodes}; site {site['name']!r} has {site['nodes']}; ask for fewer or choose another site"
        )


def check_ranks(ranks: int, manifest: Mapping, where: str) -> None:
    """Raise when an app cannot run on that number of ranks."""
    if manifest["ranks"] == "power-of-two" and ranks & (ranks - 1):
        raise TareError(f"{where}: ranks: found {ranks}; {manifest['app']} needs a power of two: 1, 2, 4, 8, …")
    if manifest["ranks"] == "exactly-two" and ranks != 2:
        raise TareError(f"{where}: ranks: found {ranks}; {manifest['app']} runs on exactly 2")
    if manifest["ranks"] == "even" and ranks % 2:
        raise TareError(f"{where}: ranks: found {ranks}; {manifest['app']} needs an even number: 2, 4, 6, …")


def check_threads(threads: int, manifest: Mapping, where: str) -> None:
    """Raise when threads are asked of an app that has none: their cores would idle."""
    if threads > 1 and not manifest["threads"]:
        raise TareError(f"{where}: threads: found {threads}; {manifest['app']} has no threads; leave the key out")


def round_order(seed: int, setting_id: str, round_number: int, arms: list[str]) -> list[str]:
    """Return the arms of one round in the order fixed by the study's seed.

    ``arms`` are all of the block's: a round that runs fewer keeps to the order planned for all.
    """
    shuffled = sorted(arms)
    random.Random(f"{seed}/{setting_id}/{round_number}").shuffle(shuffled)
    return shuffled


def plan_document(study: Mapping, site: Mapping, manifests: Mapping, toolchains: Mapping) -> dict[str, Any]:
    """Return the plan as it is written down before anything runs: study, site, blocks with order and cells."""
    blocks = plan_blocks(study, site, manifests, toolchains)
    return {
        "study": study,
        "site": site,
        "toolchains": {name: toolchains[name] for name in study["toolchains"]},
        "blocks": {block.setting.id: block_document(block, study) for block in blocks},
    }


def block_document(block: Block, study: Mapping) -> dict[str, Any]:
    """Return one block of the plan as plain data."""
    names = [arm.name for arm in block.arms]
    rounds = Repeats.of(study["repeats"]).most
    orders = [round_order(study["seed"], block.setting.id, number, names) for number in range(1, rounds + 1)]
    return {
        "setting": asdict(block.setting),
        "slots": block.setting.slots,
        "arms": {arm.name: arm_document(arm) for arm in block.arms},
        "skipped": block.skipped,
        "oversubscribed": block.oversubscribed,
        "order": orders,
    }


def block_from_document(document: Mapping) -> Block:
    """Return the block that ``block_document`` wrote."""
    return Block(
        setting=Setting(**document["setting"]),
        arms=tuple(arm_from_document(arm) for arm in document["arms"].values()),
        skipped=document["skipped"],
        oversubscribed=document["oversubscribed"],
    )
