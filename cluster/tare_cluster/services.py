"""What runs in the nodes: each node looks after itself (tare-node ensure); here is what takes several nodes."""

from __future__ import annotations

import subprocess
import time
from ipaddress import IPv4Network

from . import argv, images
from .layout import Node
from .plan import Plan
from .shell import lines, parallel, run, say, succeeds, wait_for, wait_until

READY_SECONDS = 60.0
SETTLED_SECONDS = 20.0
IN_SERVICE = ("idle", "allocated", "mixed", "completing")


def ensure(plan: Plan) -> bool:
    """Says whether anything had to be done."""
    did = ensure_nodes(plan)
    # Independent of each other, and each mostly waits.
    return any(parallel(lambda step: step(plan), (ensure_docker_networks, ensure_registry, ensure_slurm))) or did


def in_node(node: Node, command: list[str]) -> str:
    return run(argv.node_exec(node.container, command))


def works_in_node(node: Node, command: list[str]) -> bool:
    return succeeds(argv.node_exec(node.container, command))


def ensure_nodes(plan: Plan) -> bool:
    return any(parallel(ensure_node, plan.layout.nodes))


def ensure_node(node: Node) -> bool:
    did = lines(argv.node_exec(node.container, ["tare-node", "ensure", node.role]))
    if did:
        say(f"{node.name}: {', '.join(did)}")
    return bool(did)


def ensure_docker_networks(plan: Plan) -> bool:
    joined = ensure_swarm(plan)
    return ensure_overlays(plan) or joined


# --- the swarm: the first compute node manages, the others are members of that very swarm


def ensure_swarm(plan: Plan) -> bool:
    manager, *workers = plan.layout.compute
    states = parallel(membership, plan.layout.compute)
    new = states[0][0] != "active"
    if new:
        works_in_node(manager, ["docker", "swarm", "leave", "--force"])
        in_node(manager, ["docker", "swarm", "init", "--advertise-addr", manager.addresses[0]])
        say(f"swarm made, managed by {manager.name}")
    members = swarm_members(manager)
    joining = [node for node, (_, number) in zip(workers, states[1:], strict=True) if number not in members]
    if joining:
        token = in_node(manager, ["docker", "swarm", "join-token", "--quiet", "worker"]).strip()
        parallel(lambda node: join(node, token, manager.addresses[0]), joining)
    if new or joining or len(members) > len(plan.layout.compute):
        forget_lost_members(plan)
    return new or bool(joining)


def membership(node: Node) -> tuple[str, str]:
    """A node's state in a swarm and its number there. An engine that has just started needs a moment to know; one that the
    swarm has forgotten asks forever, and stays 'pending'."""
    end = time.monotonic() + SETTLED_SECONDS
    while True:
        state, *number = in_node(node, ["docker", "info", "--format", "{{.Swarm.LocalNodeState}} {{.Swarm.NodeID}}"]).split()
        if state != "pending" or time.monotonic() > end:
            return state, "".join(number)
        time.sleep(0.1)


def swarm_members(manager: Node) -> set[str]:
    """Asked until the manager, which may have just started, is its own leader again."""
    command = ["docker", "node", "ls", "--quiet"]

    def ask() -> set[str] | None:
        done = subprocess.run(argv.node_exec(manager.container, command), capture_output=True, text=True, check=False)
        return set(done.stdout.split()) if done.returncode == 0 else None

    return wait_for("the swarm has a leader", SETTLED_SECONDS, ask, "see make status")


def join(node: Node, token: str, manager: str) -> None:
    works_in_node(node, ["docker", "swarm", "leave", "--force"])  # a swarm that is no more
    in_node(node, ["docker", "swarm", "join", "--token", token, "--advertise-addr", node.addresses[0], f"{manager}:2377"])
    say(f"{node.name} joined the swarm")


def forget_lost_members(plan: Plan) -> None:
    manager = plan.layout.compute[0]
    now = {number for _, number in parallel(membership, plan.layout.compute)}
    for number in swarm_members(manager) - now:
        in_node(manager, ["docker", "node", "rm", "--force", number])


VXLAN_HEADER_BYTES = 50


def ensure_overlays(plan: Plan) -> bool:
    site, manager = plan.site, plan.layout.compute[0]
    did = [ensure_overlay(manager, site.overlay_name, site.overlay_subnet, [])]
    for overlay in site.further_overlays:
        # Docker takes what its VXLAN header needs from the number it is given.
        options = ["--opt", f"com.docker.network.driver.mtu={overlay.mtu + VXLAN_HEADER_BYTES}"]
        did.append(ensure_overlay(manager, overlay.name, overlay.subnet, options))
    return any(did)


def ensure_overlay(manager: Node, name: str, subnet: IPv4Network, options: list[str]) -> bool:
    inspect = ["docker", "network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", name]
    if works_in_node(manager, inspect):
        if IPv4Network(in_node(manager, inspect).strip()) == subnet:
            return False
        in_node(manager, ["docker", "network", "rm", name])
    create = ["docker", "network", "create", "--driver", "overlay", "--attachable"]
    in_node(manager, [*create, *options, "--subnet", str(subnet), name])
    say(f"network {name}: {subnet}")
    return True


# --- the registry and Slurm


def ensure_registry(plan: Plan) -> bool:
    login, registry = plan.layout.login.container, plan.site.registry
    pushed = [images.push(image, login, registry) for image in images.runtime_images(plan.checkout)]
    return any(pushed)


def ensure_slurm(plan: Plan) -> bool:
    """All nodes able to take jobs. A node that a crash left down is taken back."""
    login = plan.layout.login
    unusable = out_of_service(in_node(login, NODE_STATES))
    if not unusable:
        return False
    say(f"waiting for Slurm: {', '.join(f'{name} is {state}' for name, state in unusable.items())}")
    wait_until("all nodes in Slurm", READY_SECONDS, lambda: take_back(login), "see make status, and /var/log/tare in the nodes")
    return True


NODE_STATES = ["sinfo", "--noheader", "--Node", "--format", "%N %T"]


def out_of_service(states: str) -> dict[str, str]:
    """From sinfo's lines `node state`; a star (does not answer) is part of the state."""
    pairs = dict(line.split() for line in states.splitlines())
    return {name: state for name, state in pairs.items() if state not in IN_SERVICE}


def take_back(login: Node) -> bool:
    unusable = out_of_service(in_node(login, NODE_STATES))
    for name in (name for name, state in unusable.items() if state in ("down", "drained")):
        works_in_node(login, ["scontrol", "update", f"NodeName={name}", "State=RESUME"])
    return not unusable
