"""`make up`: what should be there is compared with what is there; what is missing or different is made, the rest left alone."""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import tarfile
import time
from dataclasses import dataclass
from ipaddress import IPv4Network

from . import apparmor, argv, configs, engine, images, machine, sitefile
from .checkout import Checkout
from .errors import ClusterError
from .layout import Layout, Link, Node, Site, make_layout
from .shell import lines, parallel, run, say, succeeds, wait_until

READY_SECONDS = 60.0


@dataclass(frozen=True)
class Plan:
    """Everything `up` wants to be true."""

    checkout: Checkout
    site: Site
    layout: Layout
    files: dict[str, str]  # in the nodes' /etc/tare
    creates: dict[str, list[str]]  # container → docker create …, with its spec as a label


def up(checkout: Checkout, nodes: int | None) -> None:
    engine.ensure(checkout)
    refuse_another_checkout(checkout)
    images.ensure(checkout)
    plan = make_plan(checkout, nodes)
    changed = ensure_containers(plan)
    changed |= ensure_services(plan)
    checkout.write("site.yaml", configs.site_yaml(plan.layout))
    names = f"login and {len(plan.layout.compute)} compute nodes"
    say(f"the cluster is up: {names}" if changed else f"the cluster is up already: {names}; nothing to do")


def refuse_another_checkout(checkout: Checkout) -> None:
    """Names and addresses are this machine's: it has one embedded cluster at a time."""
    others = {owner for owner in running_checkouts().values() if owner != str(checkout.root)}
    if others:
        other = sorted(others)[0]
        raise ClusterError(f"cluster: another checkout's cluster is on this machine: {other}; one is possible; run make down there")


def running_checkouts() -> dict[str, str]:
    """Container name → checkout, of all Tare's containers."""
    form = '{{.Names}}\t{{.Label "' + argv.LABEL + '"}}'
    rows = lines(["docker", "ps", "--all", "--filter", f"label={argv.LABEL}", "--format", form])
    return dict(row.split("\t", 1) for row in rows)


def make_plan(checkout: Checkout, nodes: int | None) -> Plan:
    image = images.node_image(checkout).tag
    site = sitefile.read(checkout, image)
    present = sum(name.startswith("tare-node") for name in running_checkouts())
    layout = make_layout(site, machine.usable_cpus(), nodes or present or site.nodes)
    files = {
        "slurm.conf": configs.slurm_conf(site, layout, machine.memory_mb()),
        "hosts": configs.hosts(layout),
        "node.env": configs.node_env(site, layout, checkout.job_user, checkout.root_owned),
    }
    creates = node_creates(checkout, site, layout, files)
    return Plan(checkout, site, layout, files, creates)


def node_creates(checkout: Checkout, site: Site, layout: Layout, files: dict[str, str]) -> dict[str, list[str]]:
    """A container's spec is the digest of all that it depends on: command line, image, files. Another spec: another container."""
    tag = images.node_image(checkout).tag
    image_id = images.inspect(tag, "{{.Id}}")
    profile = apparmor.ensure_profile()
    creates = {}
    for node in layout.nodes:
        create = argv.node_create(node, site.links, tag, str(checkout.root), profile)
        text = json.dumps([create, node.addresses, image_id, files])
        creates[node.container] = argv.with_spec(create, hashlib.sha256(text.encode()).hexdigest()[:16])
    return creates


# --- containers, networks, volumes


def ensure_containers(plan: Plan) -> bool:
    wanted = {name: create[create.index("--label") + 1].split("=", 1)[1] for name, create in plan.creates.items()}
    found = present_specs()
    stale_links = [link for link in plan.site.links if not has_network(link)]
    # A container cannot be moved to a network made anew.
    stale = [name for name, spec in found.items() if stale_links or wanted.get(name) != spec]
    missing = [node for node in plan.layout.nodes if node.container in stale or node.container not in found]
    if stale and found:
        refuse_while_jobs_run(stale)
        say(f"the cluster is to change: {', '.join(sorted(stale))} made anew")
        run(["docker", "rm", "--force", *stale])
    for link in stale_links:
        make_network(link, plan.checkout)
    if missing:
        say(configs.describe_cpus(plan.layout))
        make_containers(plan, missing)
    stopped = not_running(plan)
    if stopped:
        say(f"starting {', '.join(stopped)}")
        parallel(lambda name: run(["docker", "start", name]), stopped)
    return bool(missing or stopped)


def present_specs() -> dict[str, str]:
    form = '{{.Names}}\t{{.Label "' + argv.SPEC_LABEL + '"}}'
    rows = lines(["docker", "ps", "--all", "--filter", f"label={argv.LABEL}", "--format", form])
    return dict(row.split("\t", 1) for row in rows)


def refuse_while_jobs_run(stale: list[str]) -> None:
    login = "tare-login"
    queue = argv.node_exec(login, ["squeue", "--noheader"])
    if succeeds(queue) and (jobs := lines(queue)):
        raise ClusterError(
            f"cluster: {', '.join(sorted(stale))} would have to be made anew, and jobs are running: {len(jobs)}; "
            "wait for them, or run make down first"
        )


def has_network(link: Link) -> bool:
    form = '{{index .Labels "' + argv.SPEC_LABEL + '"}}'
    name = argv.network_name(link)
    return succeeds(["docker", "network", "inspect", name]) and run(
        ["docker", "network", "inspect", "--format", form, name]
    ).strip() == str(link.subnet)


def make_network(link: Link, checkout: Checkout) -> None:
    succeeds(["docker", "network", "rm", argv.network_name(link)])  # another subnet's
    run(argv.network_create(link, str(checkout.root)))
    say(f"network {argv.network_name(link)}: {link.subnet}")


def make_containers(plan: Plan, nodes: list[Node]) -> None:
    checkout = str(plan.checkout.root)
    volumes = [argv.CONFIG_VOLUME, argv.HOME_VOLUME, *(argv.state_volume(node) for node in nodes)]
    parallel(lambda name: run(argv.volume_create(name, checkout)), volumes)
    parallel(lambda node: make_container(plan, node), nodes)
    if plan.layout.login in nodes:
        write_files(plan)


def make_container(plan: Plan, node: Node) -> None:
    run(plan.creates[node.container])
    for link, address in list(zip(plan.site.links, node.addresses, strict=True))[1:]:
        run(argv.network_connect(node, link, address))


def write_files(plan: Plan) -> None:
    """The nodes' /etc/tare: one volume, filled through the login node before it starts."""
    login = plan.layout.login.container
    files = {name: (text.encode(), 0o644) for name, text in plan.files.items()}
    if not succeeds(["docker", "cp", f"{login}:/etc/tare/munge.key", "-"]):
        files["munge.key"] = (secrets.token_bytes(128), 0o600)
        files["first_job.conf"] = (f"FirstJobId={first_job()}\n".encode(), 0o644)
    run(["docker", "cp", "-", f"{login}:/etc/tare"], stdin=as_tar(files))


def first_job() -> int:
    """Half-minutes since 2025: each cluster's job numbers begin beyond those of the clusters before, below Slurm's 67 million."""
    return int(time.time() - 1_735_689_600) // 30


def as_tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def not_running(plan: Plan) -> list[str]:
    running = lines(["docker", "ps", "--filter", f"label={argv.LABEL}", "--format", "{{.Names}}"])
    return [node.container for node in plan.layout.nodes if node.container not in running]


# --- what runs in the nodes


def ensure_services(plan: Plan) -> bool:
    said = [line for text in parallel(ensure_node, plan.layout.nodes) for line in text]
    changed = bool(said) | ensure_swarm(plan)
    changed |= ensure_overlay(plan)
    changed |= ensure_registry(plan)
    return changed | ensure_idle(plan)


def ensure_node(node: Node) -> list[str]:
    did = lines(argv.node_exec(node.container, ["tare-node", "ensure", node.role]))
    if did:
        say(f"{node.name}: {', '.join(did)}")
    return did


def ensure_swarm(plan: Plan) -> bool:
    """The first compute node manages; the others are members of that very swarm."""
    manager, *workers = plan.layout.compute
    changed = False
    if swarm_member(manager)[0] != "active":
        in_node(manager, ["docker", "swarm", "leave", "--force"], may_fail=True)
        in_node(manager, ["docker", "swarm", "init", "--advertise-addr", manager.addresses[0]])
        say(f"swarm made, managed by {manager.name}")
        changed = True
    members = swarm_members(manager)
    joining = [node for node, (_, number) in zip(workers, parallel(swarm_member, workers), strict=True) if number not in members]
    if joining:
        token = in_node(manager, ["docker", "swarm", "join-token", "--quiet", "worker"]).strip()
        parallel(lambda node: join(node, token, manager.addresses[0]), joining)
        changed = True
    if changed:
        forget_lost_members(plan)
    return changed


def in_node(node: Node, command: list[str], may_fail: bool = False) -> str:
    argument = argv.node_exec(node.container, command)
    if may_fail:
        return str(succeeds(argument))
    return run(argument)


def swarm_member(node: Node) -> tuple[str, str]:
    """Its state and its number in the swarm."""
    state = in_node(node, ["docker", "info", "--format", "{{.Swarm.LocalNodeState}} {{.Swarm.NodeID}}"]).split()
    return state[0], state[1] if len(state) > 1 else ""


def swarm_members(manager: Node) -> set[str]:
    return set(in_node(manager, ["docker", "node", "ls", "--quiet"]).split())


def join(node: Node, token: str, manager: str) -> None:
    in_node(node, ["docker", "swarm", "leave", "--force"], may_fail=True)  # of a swarm that is no more
    in_node(node, ["docker", "swarm", "join", "--token", token, "--advertise-addr", node.addresses[0], f"{manager}:2377"])
    say(f"{node.name} joined the swarm")


def forget_lost_members(plan: Plan) -> None:
    manager = plan.layout.compute[0]
    now = {number for _, number in parallel(swarm_member, plan.layout.compute)}
    for number in swarm_members(manager) - now:
        in_node(manager, ["docker", "node", "rm", "--force", number], may_fail=True)


def ensure_overlay(plan: Plan) -> bool:
    manager, name, subnet = plan.layout.compute[0], plan.site.overlay_name, plan.site.overlay_subnet
    form = "{{(index .IPAM.Config 0).Subnet}}"
    if in_node(manager, ["docker", "network", "inspect", name], may_fail=True) == "True":
        found = IPv4Network(in_node(manager, ["docker", "network", "inspect", "--format", form, name]).strip())
        if found == subnet:
            return False
        in_node(manager, ["docker", "network", "rm", name])
    in_node(manager, ["docker", "network", "create", "--driver", "overlay", "--attachable", "--subnet", str(subnet), name])
    say(f"network {name}: {subnet}")
    return True


def ensure_registry(plan: Plan) -> bool:
    login = plan.layout.login.container
    return any([images.push(image, login, plan.site.registry) for image in images.runtime_images(plan.checkout)])


def ensure_idle(plan: Plan) -> bool:
    """All nodes known to Slurm and able to take jobs. A node that a crash left 'down' is taken back."""
    login = plan.layout.login
    unusable = nodes_not_usable(login)
    if not unusable:
        return False
    say(f"waiting for Slurm: {', '.join(sorted(unusable))}")
    wait_until("all nodes in Slurm", READY_SECONDS, lambda: take_back(login), "see make status and /var/log/tare in the nodes")
    return True


def nodes_not_usable(login: Node) -> dict[str, str]:
    rows = in_node(login, ["sinfo", "--noheader", "--Node", "--format", "%N %T"])
    states = dict(row.split() for row in rows.splitlines())
    return {name: state for name, state in states.items() if state not in ("idle", "allocated", "mixed", "completing")}


def take_back(login: Node) -> bool:
    unusable = nodes_not_usable(login)
    for name, state in unusable.items():
        if state in ("down", "drained"):
            in_node(login, ["scontrol", "update", f"NodeName={name}", "State=RESUME"], may_fail=True)
    return not unusable
