"""Measuring one block: the one module that launches what is timed."""

import contextlib
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tare import images, packaged, profile
from tare.affinity import Enclosure, enclosures
from tare.allocation import Allocation, NodeLink, agent_argv, ask_all, find_allocation, is_alive
from tare.backends import Context, load_backends
from tare.build import built_with
from tare.cases import Arm, Block, Setting, block_from_document, round_order
from tare.config import Mapping
from tare.errors import TareError
from tare.files import save
from tare.fit import check_fit
from tare.launch import ENVIRONMENT, Program, launch_argv, mpirun_argv, run_directory
from tare.packaged import Command, command_of
from tare.prepare import (
    LIMIT_FILES,
    Prepared,
    block_digests,
    cpu_list,
    find_adapters,
    node_places,
    prepare_arm,
    write_block_files,
)
from tare.proof import Label, Place, contradictions, read_answer
from tare.records import (
    Missing,
    Record,
    Store,
    append_record,
    file_sha256,
    find_missing,
    find_unprofiled,
    make_stamp,
    plan_digests,
    read_lease,
    release_lease,
    try_lease,
)
from tare.repeats import rounds_wanted
from tare.system import difference
from tare.userlands import modules_of
from tare.yamlio import ROOT

STDERR_KEPT = 2000
LEASE_POLL_S = 5.0


@dataclass(frozen=True)
class Loaded:
    """What a launch loads into its ranks beside the program."""

    libraries: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()


NOTHING = Loaded()


@dataclass(frozen=True)
class Job:
    """One block, measured by one job."""

    plan: Mapping
    block: Block
    store: Store
    allocation: Allocation

    @property
    def study(self) -> Mapping:
        """The study as planned."""
        study: Mapping = self.plan["study"]
        return study

    @property
    def site(self) -> Mapping:
        """The site as planned."""
        site: Mapping = self.plan["site"]
        return site

    @property
    def work(self) -> Path:
        """The session's directory, seen by all nodes and containers; gone when the job ends."""
        return self.store.root / "work" / self.allocation.session


def say(text: str) -> None:
    """Tell whoever reads the job's log."""
    print(text, file=sys.stderr, flush=True)


def leave(signal_number: int, _frame: object) -> None:
    """Turn SIGTERM (scancel, time-out) into an exit that cleans up."""
    raise SystemExit(128 + signal_number)


def measure_block(plan_path: Path, setting_id: str, sessions: "dict[str, type[Session]]") -> None:
    """Run what is missing of one block and write its stamps; ``sessions`` are those of sites with a launch of another kind."""
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    block = block_from_document(plan["blocks"][setting_id])
    signal.signal(signal.SIGTERM, leave)
    allocation = find_allocation(plan["site"], len(block.setting.slots))
    job = Job(plan, block, Store(plan_path.parent), allocation)
    with leased(job):
        skipped = {**block.skipped, **run_missing(job, sessions.get(job.site["launch"], Session))}
        write_stamps(job, skipped)


@contextlib.contextmanager
def leased(job: Job) -> Iterator[None]:
    """Hold the block's lease; wait for another job that still measures it."""
    directory = job.store.directory(job.block.setting.id)
    mine = job.allocation.holder()
    told, before = False, read_lease(directory)
    while (holder := try_lease(directory, mine, is_alive)) is not None:
        if not told:
            say(f"{job.block.setting.id}: {holder.session} on {holder.host} is measuring this block; waiting for its end")
            told = True
        time.sleep(LEASE_POLL_S)
        before = read_lease(directory)
    if before is not None:  # killed: it could not remove its directory, in which keys are
        shutil.rmtree(job.store.root / "work" / before.session, ignore_errors=True)
    try:
        yield
    finally:
        release_lease(directory, mine)


def run_missing(job: Job, session_type: "type[Session]") -> dict[str, str]:
    """Measure what is missing; return the arms that could not be made ready, with the reason."""
    digests = block_digests(job.block, job.site)
    for arm in job.block.runnable:
        if digests[arm.name]["binary"] is None:
            raise TareError(f"{job.block.setting.of(arm).binary}: not built; run the workflow's rule build_app first")
    plans = plan_digests(job.block, digests)
    missing = missing_now(job, plans, job.block.runnable)
    if not missing.anything:
        say(f"{job.block.setting.id}: nothing is missing")
        return {}
    session = session_type(job, plans, digests)
    with session.opened():
        reasons = session.prepare(missing)
        session.run_all()
    return reasons


def missing_now(job: Job, plans: dict[str, str], arms: tuple[Arm, ...]) -> Missing:
    """Return what these arms of a block lack by what is on record; with adaptive repeats there may be more when it is done."""
    missing = find_missing(job.store, job.block, plans, rounds_wanted(job.store, job.block, arms, plans, job.study))
    names = {arm.name for arm in arms}
    rounds = {arm: lacking for arm, lacking in missing.rounds.items() if arm in names}
    kinds = () if job.site["launch"] == "simulated" else job.study["profile"]
    profiles = tuple(pair for pair in find_unprofiled(job.store, job.block, plans, kinds) if pair[0] in names)
    return Missing(rounds, missing.first_round, missing.baselines, profiles)


def write_stamps(job: Job, skipped: dict[str, str]) -> None:
    """Write the stamp of every cell of the block."""
    plans = plan_digests(job.block, block_digests(job.block, job.site))
    ran = tuple(arm for arm in job.block.arms if arm.name not in skipped)
    rounds = rounds_wanted(job.store, job.block, ran, plans, job.study)
    for arm in job.block.arms:
        stamp = make_stamp(
            job.store,
            job.block,
            arm.name,
            plans[arm.name],
            plans[arm.baseline],
            rounds,
            skipped.get(arm.name),
        )
        save(job.store.stamp(job.block.setting.id, arm.name), json.dumps(stamp, sort_keys=True) + "\n")


class Session:
    """One run of a block: its agents, its prepared arms, its launches."""

    def __init__(self, job: Job, plans: dict[str, str], digests: Mapping) -> None:
        self.job = job
        self.plans = plans
        self.digests = digests
        self.links: list[NodeLink] = []
        self.prepared: dict[str, Prepared] = {}
        self.hellos: list[dict[str, Any]] = []
        self.done = 0
        self.planned = 0
        self.begin = 0.0

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Start an agent on every node; let all go at the end, whatever happens."""
        allocation = self.job.allocation
        try:
            self.links = [NodeLink(node, agent_argv(self.job.site, allocation, node)) for node in allocation.nodes]
            self.hellos = ask_all(self.links, "hello")
            yield
        finally:
            for link in self.links:
                link.close()
            shutil.rmtree(self.job.work, ignore_errors=True)

    def bound(self, arm: Arm) -> bool:
        """Whether each rank gets cores of its own: as arm or study say, where the nodes have one for each thread."""
        if arm.affinity is not None:
            return arm.affinity == "cpumempin"
        setting = self.job.block.setting
        needed = [slots * setting.threads for slots in setting.slots]
        enough = all(cores <= len(hello["cores"]) for cores, hello in zip(needed, self.hellos, strict=True))
        return setting.binding == "core" and enough

    def program(self, arm: Arm) -> Program:
        """What is launched for an arm."""
        block, setting = self.job.block, self.job.block.setting.of(arm)
        mpirun = self.job.plan["toolchains"][setting.toolchain]["mpirun"]
        slots = setting.slots_in(arm.containers_per_node or 1)
        command = None if setting.program is None else command_of(setting.program, setting.placeholders)
        layout = (slots, self.bound(arm), block.oversubscribed, setting.threads)
        return Program(mpirun, setting.binary, setting.options, *layout, command, arm.ranks_on or "cores")

    def enclosures(self, arm: Arm) -> list[Enclosure]:
        """Return what each of an arm's containers may use, node by node."""
        setting, containers = self.job.block.setting, arm.containers_per_node or 1
        cores = [ranks * setting.threads for ranks in setting.slots]
        return [
            found
            for count, hello in zip(cores, self.hellos, strict=True)
            for found in enclosures(arm.affinity, counted_cores(arm, hello), count, containers, self.bound(arm))
        ]

    def context(self, arm: Arm) -> Context:
        """Return what an arm's backend needs to know."""
        block, setting = self.job.block, self.job.block.setting.of(arm)
        images_built = self.digests[arm.name]["images"]
        found = self.enclosures(arm)
        return Context(
            site=self.job.site,
            interconnect=setting.interconnect,
            session=self.job.allocation.session,
            root=str(ROOT),
            block_dir=str(self.job.work),
            nodes=self.job.allocation.nodes,
            cpus=tuple(cpu_list(hello["cpus"]) for hello in self.hellos),
            user=self.hellos[0]["user"],
            tools=str(ROOT / "build" / setting.userland),
            image=images_built["docker"],
            sif=str(images.sif_path(setting.userland)),
            place=None if arm.name == arm.backend else f"{arm.backend}-arm{block.arms.index(arm)}",
            port_offset=0 if arm.name == arm.backend else 1 + block.arms.index(arm),
            containers_per_node=arm.containers_per_node or 1,
            cpusets=tuple(cpu_list(list(enclosure.cpus)) for enclosure in found),
            mems=tuple(cpu_list(list(enclosure.mems)) if enclosure.mems else None for enclosure in found),
            factors=arm.factors,
            modules=self.modules(arm, setting),
        )

    def modules(self, arm: Arm, setting: Setting) -> tuple[str, ...]:
        """Return the environment modules that an arm's launcher and ranks are to have: none inside containers."""
        if load_backends()[arm.backend].runtime != "native":
            return ()
        return modules_of(self.job.site, setting.toolchain, self.job.plan["toolchains"][setting.toolchain])

    def prepare(self, missing: Missing) -> dict[str, str]:
        """Make every arm ready that has something missing; return the reasons of those that cannot be."""
        arms, wanted = self.job.block.runnable, missing.arms
        write_block_files(self.context(arms[0]), self.job.site, self.job.allocation.job)
        self.prepared, reasons = prepare_all([arm for arm in arms if arm.name in wanted], self.prepare_arm)
        return reasons

    def prepare_arm(self, arm: Arm) -> Prepared:
        """Make one arm ready; a TareError says why it cannot be."""
        block, backend = self.job.block, load_backends()[arm.backend]
        block = replace(block, setting=block.setting.of(arm))
        if self.context(arm).fabric.get("transport") == "rdma":
            find_adapters(self.links)
        context, mpirun = self.context(arm), self.program(arm).mpirun
        prepared = prepare_arm(block, mpirun, backend, context, self.links, node_places(self.hellos))
        check_fit(block.setting, mpirun, prepared, context, self.links, self.hellos)
        return prepared

    def run_all(self) -> None:
        """Run what the arms that are ready lack until they lack nothing; with adaptive repeats the records say when."""
        ready = tuple(arm for arm in self.job.block.runnable if arm.name in self.prepared)
        missing = missing_now(self.job, self.plans, ready)
        self.begin = time.monotonic()
        if missing.rounds:
            self.warm_up(missing.arms_of_round(0) & set(self.prepared))
        while missing.rounds:
            self.run_rounds(missing)
            missing = missing_now(self.job, self.plans, ready)
        self.run_profiles(missing)

    def run_profiles(self, missing: Missing) -> None:
        """Launch the profiles that are missing, after all that is timed."""
        arms = {arm.name: arm for arm in self.job.block.arms}
        self.planned += len(missing.profiles)
        for order, (name, kind) in enumerate(missing.profiles):
            self.run_profile(arms[name], kind, order)

    def run_profile(self, arm: Arm, kind: str, order: int) -> None:
        """Launch an arm once more with the profiling library in its ranks; its record stands apart from the timed ones."""
        setting = self.job.block.setting.of(arm)
        library, directory = ROOT / setting.profiler, self.job.work / f"profile-{order}"
        directory.mkdir()
        loaded = Loaded((str(library),), profile.environment(kind, directory))
        record = self.blank_record(arm, None, order) | {"warmup": False, "argv": self.mpirun(arm, loaded)}
        record |= self.launch(arm, loaded)
        record |= self.judge(arm, record)
        ranks: list[Record] = []
        if record["status"] == "ok":
            try:
                ranks = profile.read_ranks(directory, setting.processes)
            except TareError as error:
                record |= {"status": "failed", "reason": str(error), "wall_s": None, "app_s": None, "metrics": {}}
        nodes = profile.homes(setting.slots)
        record["profile"] = {"kind": kind, "library": file_sha256(library), "nodes": nodes, "ranks": ranks}
        append_record(self.job.store.profiles(self.job.block.setting.id, arm.name), record)
        self.report_progress(record)

    def warm_up(self, names: set[str]) -> None:
        """Launch every arm that will be run, before the first round."""
        study, block = self.job.study, self.job.block
        self.planned = study["warmup"] * len(names)
        for _ in range(study["warmup"]):
            for order, name in enumerate(round_order(study["seed"], block.setting.id, 0, list(names))):
                self.run_repeat(next(arm for arm in block.arms if arm.name == name), None, order)

    def run_rounds(self, missing: Missing) -> None:
        """Run the missing rounds in the planned order."""
        study, block = self.job.study, self.job.block
        arms = {arm.name: arm for arm in block.arms}
        coming = [missing.arms_of_round(index) & set(self.prepared) for index in range(max(missing.rounds.values()))]
        self.planned += sum(map(len, coming))
        for index, wanted in enumerate(coming):
            number = missing.first_round + index
            planned = round_order(study["seed"], block.setting.id, number, list(arms))
            for order, name in enumerate(name for name in planned if name in wanted):
                self.run_repeat(arms[name], number, order)

    def run_repeat(self, arm: Arm, round_number: int | None, order: int) -> None:
        """Launch once, hold the proof against the label, append the record."""
        record = self.blank_record(arm, round_number, order)
        self.complete(arm, record)
        append_record(self.job.store.records(self.job.block.setting.id, arm.name), record)
        self.report_progress(record)

    def complete(self, arm: Arm, record: Record) -> None:
        """Launch once and hold the proof against the label."""
        record |= self.launch(arm)
        record |= self.judge(arm, record)

    def blank_record(self, arm: Arm, round_number: int | None, order: int) -> Record:
        """Return what is known of a repeat before it is launched."""
        block, setting = self.job.block, self.job.block.setting.of(arm)
        prepared = self.prepared[arm.name]
        return {
            "study": self.job.study["name"],
            "block": block.setting.id,
            "app": setting.app,
            "userland": setting.userland,
            "toolchain": setting.toolchain,
            "flags": setting.flags,
            "backend": arm.label,
            "arm": arm.name,
            "baseline": arm.baseline,
            "factors": arm.factors,
            "nodes": setting.nodes,
            "ranks": setting.ranks,
            "processes": setting.processes,
            "threads": setting.threads,
            "interconnect": setting.interconnect,
            "binding": setting.binding,
            "oversubscribed": block.oversubscribed,
            "bound": self.bound(arm),
            "virtual": self.job.site["virtual"],
            "options": setting.options,
            "plan": self.plans[arm.name],
            "digests": self.digests[arm.name],
            "session": self.job.allocation.session,
            "round": round_number,
            "order": order,
            "warmup": round_number is None,
            "hosts": list(self.job.allocation.nodes),
            "build": built_with(setting.binary),
            "cpu_model": self.hellos[0]["cpu_model"],
            "kernel": self.hellos[0]["kernel"],
            "startup": prepared.startup,
            **self.commands(arm),
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        }

    def commands(self, arm: Arm) -> Record:
        """Return the commands of an arm: how its containers are started, and what is timed."""
        containers = self.prepared[arm.name].backend.container_argv(self.context(arm), 0)
        return {"container_argv": containers, "argv": self.mpirun(arm)}

    def mpirun(self, arm: Arm, loaded: Loaded = NOTHING) -> list[str]:
        """Return the command of an arm that is timed."""
        prepared = self.prepared[arm.name]
        program = replace(self.program(arm), preload=loaded.libraries, environment=loaded.environment)
        return mpirun_argv(program, prepared.backend, self.context(arm), prepared.interfaces, prepared.mpi)

    def launch(self, arm: Arm, loaded: Loaded = NOTHING) -> Record:
        """Run one launch and return its raw outcome: times of the timer, exit code, output, what the nodes counted."""
        timeout_s = float(self.job.study["timeout_s"])
        result = self.job.work / "timed.json"
        result.unlink(missing_ok=True)
        prepared, command = self.prepared[arm.name], self.program(arm).packaged
        if command is not None:
            make_run_directory(self.run_directory(arm), command)
        argv = launch_argv(prepared.backend, self.context(arm), self.mpirun(arm, loaded), str(result), timeout_s)
        counted_before = ask_all(self.links, "system")
        before = ask_all(self.links, "busy")
        exit_code, stdout, stderr = run_killable(argv, timeout_s + 30)
        after = ask_all(self.links, "busy")
        counted_after = ask_all(self.links, "system")
        timed = json.loads(result.read_text()) if result.is_file() else {}
        return {
            "exit_code": exit_code,
            "timed_out": bool(timed.get("timed_out", False)),
            "stdout": stdout,
            "stderr_end": stderr[-STDERR_KEPT:],
            "timed": timed,
            "busy_s": sum(b["busy_s"] for b in after) - sum(b["busy_s"] for b in before),
            "system": dict(zip(self.job.allocation.nodes, map(difference, counted_before, counted_after), strict=True)),
        }

    def judge(self, arm: Arm, outcome: Record) -> Record:
        """Return status, reason and times: only a repeat that ended well, answered rightly and proved its label has times."""
        stdout, timed = outcome.pop("stdout"), outcome.pop("timed")
        busy_s = outcome.pop("busy_s")
        answer, problem = self.read_answer(arm, stdout)
        reason = self.failure(arm, outcome, timed, answer, problem)
        proof = answer["proof"] if answer else []
        ranks_s = sum(rank["cpu_s"] for rank in proof) if proof else None
        good = reason is None and answer is not None
        return {
            "status": "ok" if good else "failed",
            "reason": reason,
            "wall_s": timed["wall_s"] if good else None,
            "app_s": answer["app_s"] if good and answer else None,
            "metrics": answer.get("metrics", {}) if good and answer else {},
            "answer": answer.get("answer") if answer else None,
            "cpu": {
                "busy_s": busy_s,
                "ranks_s": ranks_s,
                "other_s": None if ranks_s is None else max(0.0, busy_s - ranks_s),
            },
            "proof": proof,
        }

    def run_directory(self, arm: Arm) -> Path:
        """Return where a packaged program runs."""
        return Path(run_directory(self.context(arm)))

    def read_answer(self, arm: Arm, stdout: str) -> tuple[Record | None, str | None]:
        """Return a repeat's answer and what is wrong with it: one JSON line, or what a packaged program wrote."""
        setting = self.job.block.setting
        if setting.program is None:
            return read_answer(stdout)
        return packaged.read_answer(setting.program, setting.placeholders, self.run_directory(arm), stdout)

    def failure(self, arm: Arm, outcome: Record, timed: Record, answer: Record | None, problem: str | None) -> str | None:
        """Return why a repeat is not a number, or None."""
        if outcome["timed_out"]:
            return f"no end after {self.job.study['timeout_s']:g} s (timeout_s)"
        if outcome["exit_code"] == 3 and self.job.block.setting.program is None:
            return f"wrong answer: {answer.get('answer') if answer else outcome['stderr_end'][-200:]}"
        if outcome["exit_code"] != 0:
            return f"exit {outcome['exit_code']}: {first_line(outcome['stderr_end'])}"
        if problem is not None or answer is None:
            return problem
        found = contradictions(self.label(arm), answer["proof"])
        return (
            f"proof contradicts label {arm.name}: {'; '.join(found)}" if found else None if timed else "the timer wrote nothing"
        )

    def label(self, arm: Arm) -> Label:
        """Return what the ranks of an arm must prove."""
        prepared, setting = self.prepared[arm.name], self.job.block.setting
        return Label(
            processes=setting.processes,
            slots=setting.slots_in(arm.containers_per_node or 1),
            places=tuple(counted_place(arm, place) for place in prepared.places),
            runtime=prepared.backend.runtime,
            network=prepared.backend.network,
            subnet=prepared.backend.subnet(self.context(arm)),
            bound=self.bound(arm),
            binary_sha256=self.digests[arm.name]["binary"],
            mpi=prepared.mpi,
            affinity=arm.affinity,
            rdma=self.context(arm).fabric.get("transport") == "rdma",
            limits={name: value for name, value in arm.factors.items() if name in LIMIT_FILES},
            threads=setting.threads,
        )

    def report_progress(self, record: Record) -> None:
        """Say what was measured and how long the rest will take."""
        self.done += 1
        left = (time.monotonic() - self.begin) / self.done * (self.planned - self.done)
        kind = record.get("profile", {}).get("kind")
        what = "warm-up" if record["warmup"] else f"profile {kind}" if kind else f"round {record['round']}"
        times = (
            f"wall {record['wall_s']:.3f} s, app {record['app_s']:.3f} s"
            if record["status"] == "ok"
            else f"failed: {record['reason']}"
        )
        say(f"[{self.done}/{self.planned}, about {left:.0f} s left] {record['block']} {record['arm']} {what}: {times}")


def make_run_directory(directory: Path, command: Command) -> None:
    """Make a packaged program's directory anew, with its input files."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    for name, text in command.inputs.items():
        (directory / name).write_text(text, encoding="utf-8")


def prepare_all(arms: list[Arm], prepare: Callable[[Arm], Prepared]) -> tuple[dict[str, Prepared], dict[str, str]]:
    """Return the arms that are ready, and of the others why they are not, native partners first.

    An arm whose partner is not ready would have nothing to be weighed against: it is not measured.
    """
    prepared: dict[str, Prepared] = {}
    reasons: dict[str, str] = {}
    for arm in sorted(arms, key=lambda arm: arm.baseline != arm.name):
        try:
            if arm.baseline in reasons:
                raise TareError(f"its native partner {arm.baseline} cannot run: {reasons[arm.baseline]}")
            prepared[arm.name] = prepare(arm)
            say(f"{arm.name}: ready {prepared[arm.name].startup}")
        except TareError as error:
            reasons[arm.name] = str(error)
            say(f"{arm.name}: skipped: {error}")
    return prepared, reasons


def counted_cores(arm: Arm, hello: Mapping) -> list[Mapping]:
    """Return a node's sockets as an arm counts cores: where ranks are put on threads, each hardware thread is one."""
    sockets: list[Mapping] = hello["sockets"]
    if arm.ranks_on != "threads":
        return sockets
    return [{**socket, "cores": sorted([cpu] for core in socket["cores"] for cpu in core)} for socket in sockets]


def counted_place(arm: Arm, place: Place) -> Place:
    """Return the same of a place."""
    if arm.ranks_on != "threads":
        return place
    return replace(place, cores=tuple(frozenset({cpu}) for cpu in sorted(place.cpus)))


def run_killable(argv: list[str], timeout_s: float) -> tuple[int, str, str]:
    """Run a launch with a clean environment; kill its whole group when it does not end or this job is told to leave.

    When this process is killed, the kernel tells the launch to leave (setpriv): Slurm does not find it in its own session.
    """
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise
    return process.returncode, stdout, stderr


def first_line(text: str) -> str:
    """Return the first line that says something (a launcher's message stands between lines of dashes)."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -")]
    return lines[0] if lines else "no message"
