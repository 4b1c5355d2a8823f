"""Records (append-only JSON lines), stamps over them, and the lease that keeps a second writer out."""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.cases import BASELINE, Arm, Block
from tare.config import Mapping
from tare.errors import TareError
from tare.files import save

Record = dict[str, Any]


@dataclass(frozen=True)
class Store:
    """Where one study's records and stamps stand."""

    root: Path  # results/<study>

    def directory(self, setting_id: str) -> Path:
        """Return the directory of a block's records."""
        return self.root / "records" / setting_id

    def records(self, setting_id: str, arm: str) -> Path:
        """Return the file of a cell's records."""
        return self.directory(setting_id) / f"{arm}.jsonl"

    def profiles(self, setting_id: str, arm: str) -> Path:
        """Return the file of a cell's profiled launches, which are no repeats."""
        return self.directory(setting_id) / f"{arm}.profile.jsonl"

    def stamp(self, setting_id: str, arm: str) -> Path:
        """Return the file of a cell's stamp."""
        return self.root / "cells" / setting_id / f"{arm}.json"


def plan_digest(block: Block, arm: Arm, digests: Mapping) -> str:
    """Return what a record must share to count for a cell: ``<what is planned>.<what was built for it>``, 12 digits each.

    The first part covers the arm's setting (app, size, flags, ranks, nodes …), its backend and factors, the second the binary's
    digest and, for a container, the image's. Left out is what a study may change without measuring anew: repeats, other arms,
    the seed.
    """
    own = block.setting.of(arm)
    setting = {key: getattr(own, key) for key in own.__dataclass_fields__ if key not in ("kind", "program")}
    if own.program is not None:
        setting["program"] = own.program
    factors = {"factors": arm.factors} if arm.factors else {}
    planned = short_digest({"setting": setting, "arm": arm.name, "backend": arm.backend, **factors})
    built = {"binary": digests["binary"], "image": digests["images"].get(arm.backend.split("-", maxsplit=1)[0])}
    return f"{planned}.{short_digest(built)}"


def short_digest(value: Mapping) -> str:
    """Return 12 hexadecimal digits that differ when a value differs."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def same_plan(stamped: Any, planned: str, built: bool) -> bool:
    """Say whether a stamp has the present plan; before anything is built, whether it has the present setting."""
    return stamped == planned if built else str(stamped).partition(".")[0] == planned.partition(".")[0]


def plan_digests(block: Block, digests: Mapping) -> dict[str, str]:
    """Return every arm's plan digest; ``digests``: arm → what is built for it (``prepare.block_digests``)."""
    return {arm.name: plan_digest(block, arm, digests[arm.name]) for arm in block.arms}


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def append_record(path: Path, record: Record) -> None:
    """Append one record and see it safely on disk; a line that a killed writer left torn is closed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, b"\n" + line if torn else line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_records(path: Path) -> list[Record]:
    """Return a cell's records in the order written; a torn line (killed while writing) is not one."""
    if not path.is_file():
        return []
    records = []
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict):
                records.append(record)
    return records


def counted(records: list[Record], plan: str) -> list[Record]:
    """Return the records that count: no warm-ups, and only those of the present plan."""
    return [record for record in records if record["plan"] == plan and not record["warmup"]]


def paired_rounds(records: list[Record], baseline: list[Record]) -> set[tuple[str, int]]:
    """Return the (session, round) pairs in which both a cell and its native partner have a record."""
    return {(r["session"], r["round"]) for r in records} & {(r["session"], r["round"]) for r in baseline}


@dataclass(frozen=True)
class Missing:
    """What a block still has to run."""

    rounds: dict[str, int]  # arm → rounds it lacks, only arms that lack some
    first_round: int  # the first round number not used by any record of the block
    baselines: Mapping = field(default_factory=dict, compare=False)  # arm → its native partner, where that is not "native"
    profiles: tuple[tuple[str, str], ...] = ()  # arm and kind of every profiled launch that is not on record

    @property
    def anything(self) -> bool:
        """Whether there is something to launch."""
        return bool(self.rounds or self.profiles)

    @property
    def arms(self) -> set[str]:
        """The arms that will be launched."""
        return self.arms_of_round(0) | {arm for arm, _ in self.profiles}

    def arms_of_round(self, index: int) -> set[str]:
        """Return the arms of the index-th coming round: those still short, and their native partners."""
        short = {arm for arm, lacking in self.rounds.items() if lacking > index}
        return short | {self.baselines.get(arm, BASELINE) for arm in short}


def find_missing(store: Store, block: Block, plans: dict[str, str], repeats: int) -> Missing:
    """Return what is missing for every runnable arm to have ``repeats`` rounds paired with native ones.

    A pair needs the same session and round (same nodes, same minutes), so an arm that lost its records is measured again
    together with a new native partner, and no round number is ever used twice.
    """
    everything = {arm.name: read_records(store.records(block.setting.id, arm.name)) for arm in block.arms}
    valid = {arm: counted(records, plans[arm]) for arm, records in everything.items()}
    lacking = {}
    for arm in block.runnable:
        pairs = paired_rounds(valid[arm.name], valid[arm.baseline])
        if len(pairs) < repeats:
            lacking[arm.name] = repeats - len(pairs)
    used = [record["round"] for records in everything.values() for record in records if record["round"] is not None]
    return Missing(lacking, 1 + max(used, default=0), {arm.name: arm.baseline for arm in block.arms})


def find_unprofiled(store: Store, block: Block, plans: dict[str, str], kinds: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return arm and kind of every profile that a runnable arm lacks; one that failed is on record and not tried again."""
    return tuple(
        (arm.name, kind)
        for kind in kinds
        for arm in block.runnable
        if kind not in profiled(store, block.setting.id, arm.name, plans[arm.name])
    )


def profiled(store: Store, setting_id: str, arm: str, plan: str) -> set[str]:
    """Return the kinds of profile that are on record of a cell under a plan."""
    return {record["profile"]["kind"] for record in counted(read_records(store.profiles(setting_id, arm)), plan)}


def make_stamp(store: Store, block: Block, arm: str, plan: str, baseline_plan: str, repeats: int, skipped: str | None) -> Record:
    """Return a cell's stamp: what its records hold, so that a contradiction can be seen without reading them."""
    path = store.records(block.setting.id, arm)
    valid = counted(read_records(path), plan)
    baseline = counted(read_records(store.records(block.setting.id, block.arm(arm).baseline)), baseline_plan)
    content = path.read_bytes() if path.is_file() else b""
    return {
        "block": block.setting.id,
        "arm": arm,
        "plan": plan,
        "planned": repeats,
        "measured": sum(record["status"] == "ok" for record in valid),
        "failed": sum(record["status"] == "failed" for record in valid),
        "pairs": len(paired_rounds(valid, baseline)),
        "skipped": skipped,
        "skipped_by": None if skipped is None else "plan" if arm in block.skipped else "run",
        "records": {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()},
    }


def contradiction(stamp: Record, store: Store, block: Block, arm: str, plan: str, built: bool, repeats: int) -> str | None:
    """Return how a stamp contradicts its records or its plan, or None."""
    path = store.records(block.setting.id, arm)
    content = path.read_bytes() if path.is_file() else b""
    if stamp.get("records") != {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}:
        return "its records have changed"
    if not same_plan(stamp.get("plan"), plan, built):
        return "another size, binary or image is planned"
    if stamp.get("skipped_by") == "run":
        return "it could not run last time"
    if (stamp.get("skipped_by") == "plan") != (arm in block.skipped):
        return "what the site can run has changed"
    if arm not in block.skipped and stamp.get("pairs", 0) < repeats:
        return f"{repeats} paired repeats are planned, {stamp.get('pairs')} are there"
    return None


def drop_contradicted(store: Store, block: Block, digests: Mapping, repeats: int, profiles: Sequence[str] = ()) -> list[str]:
    """Remove the stamps of a block that contradict their records or plan; return one line for each."""
    plans = plan_digests(block, digests)
    unprofiled = dict(find_unprofiled(store, block, plans, profiles))
    dropped = []
    for arm in block.arms:
        path = store.stamp(block.setting.id, arm.name)
        if not path.is_file():
            continue
        stamps = read_records(path)
        reason = "it is not readable"
        if stamps:
            built = digests[arm.name]["binary"] is not None
            reason = contradiction(stamps[0], store, block, arm.name, plans[arm.name], built, repeats) or ""
            if not reason and built and arm.name in unprofiled:
                reason = f"its profile {unprofiled[arm.name]} is not there"
        if reason:
            path.unlink()
            dropped.append(f"{block.setting.id}/{arm.name}: measured again: {reason}")
    return dropped


@dataclass(frozen=True)
class Holder:
    """Who holds a block's lease."""

    session: str
    job: str | None
    host: str
    pid: int


@contextlib.contextmanager
def guarded(directory: Path) -> Iterator[None]:
    """Hold the short lock under which a lease changes hands."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lease.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read_lease(directory: Path) -> Holder | None:
    """Return the present holder; an unreadable lease (killed while writing) is none."""
    path = directory / "lease"
    if not path.is_file():
        return None
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        return None


def try_lease(directory: Path, mine: Holder, alive: Any) -> Holder | None:
    """Take the lease unless another holder is alive; return that holder, or None when the lease is mine."""
    with guarded(directory):
        holder = read_lease(directory)
        if holder is not None and holder != mine and alive(holder):
            return holder
        save(directory / "lease", json.dumps(vars(mine)))
        return None


def release_lease(directory: Path, mine: Holder) -> None:
    """Give the lease back if it is still mine."""
    with guarded(directory):
        if read_lease(directory) == mine:
            (directory / "lease").unlink()


def validated(record: Record, where: str) -> Record:
    """Return a record of which the analysis can rely on the main fields, or raise the TareError that names the damage."""
    times = [record.get("wall_s"), record.get("app_s")]
    if record.get("status") == "ok" and not all(isinstance(time, int | float) and time > 0 for time in times):
        raise TareError(f"{where}: a record with status ok has no time: found {times}; remove that line and run again")
    if record.get("status") == "failed" and any(time is not None for time in times):
        raise TareError(f"{where}: a failed record has a time: found {times}; remove that line and run again")
    return record
