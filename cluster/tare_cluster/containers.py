"""Containers, networks and volumes: what is there is compared with the plan; what is missing or different is made anew."""

from __future__ import annotations

import io
import secrets
import tarfile
import time
from dataclasses import dataclass

from . import argv
from .configs import describe_cpus
from .errors import ClusterError
from .layout import Link, Node
from .plan import Plan
from .shell import lines, parallel, run, say, succeeds

LOGIN = "tare-login"
_LABEL = '{{.Label "%s"}}'
_LABELS = [_LABEL % name for name in (argv.LABEL, argv.SPEC_LABEL, argv.NODES_LABEL)]
_FORMAT = "\t".join(["{{.Names}}", "{{.State}}", *_LABELS, "{{.Networks}}"])


@dataclass(frozen=True)
class Found:
    """A container of Tare's, as Docker lists it."""

    name: str
    state: str  # created, running, exited, …
    checkout: str
    spec: str
    nodes: int  # of the cluster it was made for
    networks: frozenset[str]


def present() -> list[Found]:
    rows = lines(["docker", "ps", "--all", "--filter", f"label={argv.LABEL}", "--format", _FORMAT])
    return [parse_row(row) for row in rows]


def parse_row(row: str) -> Found:
    name, state, checkout, spec, nodes, networks = row.split("\t")
    return Found(name, state, checkout, spec, int(nodes or 0), frozenset(networks.split(",")))


def ensure(plan: Plan) -> bool:
    """Says whether anything had to be done."""
    found = present()
    new_links = [link for link in plan.site.links if not has_network(link)]
    stale = sorted(it.name for it in found if new_links or not is_as_planned(plan, it))
    if stale:
        refuse_while_jobs_run(stale, found)
        remove(stale, plan)
    for link in new_links:
        make_network(link, plan)
    kept = {it.name for it in found} - set(stale)
    missing = [node for node in plan.layout.nodes if node.container not in kept]
    if missing:
        say(describe_cpus(plan.layout))
        make_containers(plan, missing)
    return start_all(plan) or bool(stale)


def is_as_planned(plan: Plan, found: Found) -> bool:
    """A container that was made but never started comes from an `up` that was cut short: its files may be missing."""
    networks = frozenset(argv.network_name(link) for link in plan.site.links)
    return plan.specs.get(found.name) == found.spec and found.networks == networks and found.state != "created"


def remove(names: list[str], plan: Plan) -> None:
    """What a node keeps beyond its container goes only when the node is no longer planned."""
    say(f"to be made anew or removed: {', '.join(names)}")
    if LOGIN in names:
        succeeds(argv.node_exec(LOGIN, ["tare-node", "retire"]))
    run(["docker", "rm", "--force", *names])
    gone = [argv.state_volume(name) for name in names if name not in plan.specs]
    if gone:
        run(["docker", "volume", "rm", "--force", *gone])


def refuse_while_jobs_run(stale: list[str], found: list[Found]) -> None:
    if not any(it.name == LOGIN and it.state == "running" for it in found):
        return
    queue = argv.node_exec(LOGIN, ["squeue", "--noheader"])
    if succeeds(queue) and (jobs := lines(queue)):
        raise ClusterError(
            f"cluster: {', '.join(stale)}: to be made anew (nodes, images or the site file have changed), but jobs are in the "
            f"queue: {len(jobs)}; wait for them, or run make down first"
        )


def has_network(link: Link) -> bool:
    form = '{{index .Labels "' + argv.SPEC_LABEL + '"}}'
    inspect = ["docker", "network", "inspect", "--format", form, argv.network_name(link)]
    return succeeds(inspect) and run(inspect).strip() == str(link.subnet)


def make_network(link: Link, plan: Plan) -> None:
    succeeds(["docker", "network", "rm", argv.network_name(link)])  # one with another subnet
    run(argv.network_create(link, str(plan.checkout.root)))
    say(f"network {argv.network_name(link)}: {link.subnet}")


def make_containers(plan: Plan, nodes: list[Node]) -> None:
    volumes = [argv.CONFIG_VOLUME, argv.HOME_VOLUME, *(argv.state_volume(node.container) for node in nodes)]
    parallel(lambda name: run(argv.volume_create(name, str(plan.checkout.root))), volumes)
    parallel(lambda node: make_container(plan, node), nodes)
    if plan.layout.login in nodes:
        write_files(plan)


def make_container(plan: Plan, node: Node) -> None:
    run(plan.creates[node.container])
    for link, address in list(zip(plan.site.links, node.addresses, strict=True))[1:]:
        run(argv.network_connect(node, link, address))


def write_files(plan: Plan) -> None:
    """The nodes' /etc/tare: one volume, filled through the login node before it starts. Secrets are made once, and stay there."""
    files = {name: (text.encode(), 0o644) for name, text in plan.files.items()}
    if not succeeds(["docker", "cp", f"{LOGIN}:/etc/tare/munge.key", "-"]):
        files["munge.key"] = (secrets.token_bytes(128), 0o600)
        files["first_job.conf"] = (f"FirstJobId={first_job(time.time())}\n".encode(), 0o644)
    run(["docker", "cp", "-", f"{LOGIN}:/etc/tare"], stdin=as_tar(files))


def first_job(now: float) -> int:
    """Half-minutes since 2025: job numbers begin beyond those of the clusters before, and below Slurm's 67 million."""
    return int(now - 1_735_689_600) // 30


def as_tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def start_all(plan: Plan) -> bool:
    running = {it.name for it in present() if it.state == "running"}
    stopped = [node.container for node in plan.layout.nodes if node.container not in running]
    if stopped:
        say(f"starting {', '.join(stopped)}")
        parallel(lambda name: run(["docker", "start", name]), stopped)
    return bool(stopped)
