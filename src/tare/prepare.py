"""Preparing a block's arms: images on the nodes, containers up and reachable, namespaces noted; timed apart from the repeats."""

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare import images
from tare.allocation import NodeLink, ask_all, output_of
from tare.backends import Argv, Backend, Context
from tare.backends._held import Held, Inhabited
from tare.cases import Block, Setting
from tare.config import Mapping
from tare.errors import TareError
from tare.launch import interfaces_of, srun_agent
from tare.proof import Place, parse_list
from tare.records import file_sha256, short_digest
from tare.yamlio import ROOT

READY_WITHIN_S = 60.0
KINDS = ("net", "mnt", "uts", "pid")


@dataclass
class Prepared:
    """An arm that is ready to launch."""

    backend: Backend
    places: tuple[Place, ...]
    mpi: str
    interfaces: tuple[str, ...]  # by which the launcher's own messages go
    startup: dict[str, float | None] = field(default_factory=dict)  # image_s, containers_s


def write_block_files(context: Context, site: Mapping, job: str | None) -> None:
    """Make the session's directory and, where Slurm starts the launcher's daemons, the script that does it."""
    directory = Path(context.block_dir)
    directory.mkdir(parents=True, mode=0o700)
    if job is not None and site["launch"] == "slurm":
        agent = directory / "srun-agent"
        agent.write_text(srun_agent(job, site["cpus_per_node"]))
        agent.chmod(0o700)


def write_container_files(context: Context) -> None:
    """Make what the block's containers share: keys for this block only, and a passwd file that knows their user."""
    directory = Path(context.block_dir)
    if (directory / "passwd").is_file():
        return
    for name in ("key", "host_key"):
        output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tare block", "-f", str(directory / name)])
    (directory / "known_hosts").write_text(f"tare {(directory / 'host_key.pub').read_text()}")
    uid, gid = context.user.split(":")
    passwd = [
        "root:x:0:0:root:/root:/bin/sh",
        "sshd:x:101:65534::/run/sshd:/usr/sbin/nologin",
        f"tare:x:{uid}:{gid}::/tmp:/bin/sh",
    ]
    (directory / "passwd").write_text("\n".join(passwd) + "\n")


def sshd_config(context: Context, port: int) -> str:
    """Return the configuration of the sshd in a block's containers: key only, unprivileged, for this block."""
    lines = {
        "Port": port,
        "HostKey": f"{context.block_dir}/host_key",
        "AuthorizedKeysFile": f"{context.block_dir}/key.pub",
        "PidFile": "none",
        "UsePAM": "no",
        "StrictModes": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UseDNS": "no",
    }
    return "".join(f"{key} {value}\n" for key, value in lines.items())


def ssh_config(context: Context, port: int, addresses: dict[str, str]) -> str:
    """Return the ssh client's configuration of an arm: where its containers are, and whom to trust."""
    common = {
        "Port": port,
        "User": "tare",
        "IdentityFile": f"{context.block_dir}/key",
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": f"{context.block_dir}/known_hosts",
        "StrictHostKeyChecking": "yes",
        "HostKeyAlias": "tare",
        "BatchMode": "yes",
        "LogLevel": "ERROR",
    }
    hosts = "".join(f"Host {name}\n  HostName {address}\n" for name, address in addresses.items())
    return hosts + "Host *\n" + "".join(f"  {key} {value}\n" for key, value in common.items())


def write_daemon(context: Context) -> None:
    """Write what starts the launcher's daemon on another node with the modules loaded; ranks inherit its environment."""
    if context.daemon is None:
        return
    load = " ".join(map(shlex.quote, context.modules))
    find = 'for name in prted orted; do\n  if command -v "$name" >/dev/null; then exec "$name" "$@"; fi\ndone\n'
    script = Path(context.daemon)
    script.write_text(f"#!/bin/bash -l\nmodule load {load}\n{find}exit 127\n")
    script.chmod(0o700)


def expect_ok(answers: list[dict[str, Any]], links: list[NodeLink], what: str) -> list[str]:
    """Return every node's stdout, or raise with the first node's failure."""
    for answer, link in zip(answers, links, strict=True):
        if answer.get("error") or answer.get("exit_code", 0) != 0:
            said = (answer.get("error") or answer["stderr"]).strip().splitlines()
            raise TareError(f"{link.node}: {what}: exit {answer.get('exit_code')}: {said[-1] if said else 'no message'}")
    return [answer.get("stdout", "") for answer in answers]


def node_places(hellos: list[dict[str, Any]]) -> tuple[Place, ...]:
    """Return the nodes themselves as places."""
    return tuple(
        Place(
            hostname=hello["hostname"],
            node_ns=hello["ns"],
            container_ns=None,
            cpus=frozenset(hello["cpus"]),
            cores=tuple(frozenset(core) for core in hello["cores"]),
        )
        for hello in hellos
    )


def prepare_arm(
    block: Block,
    mpirun: str,
    backend: Backend,
    context: Context,
    links: list[NodeLink],
    places: tuple[Place, ...],
) -> Prepared:
    """Make one arm ready; a TareError says why it cannot be."""
    if isinstance(backend, Inhabited):
        return prepare_inhabited(block, mpirun, backend, context, links, places)
    startup: dict[str, float | None] = {"image_s": None, "containers_s": None}
    if isinstance(backend, Held):
        startup["containers_s"] = start_and_wait(backend, context, links)
        places = tuple(map(inside, [place.hostname for place in places], places, container_namespaces(backend, context, links)))
    elif backend.runtime == "singularity":
        startup["containers_s"] = try_singularity(backend, context, links)
    routes = expect_ok(ask_all(links, "run", argv=["cat", "/proc/net/route"], timeout_s=30), links, "cat /proc/net/route")
    interfaces = interfaces_of(routes, backend.subnet(context))
    return Prepared(backend, places, launcher_version(links[0], [*backend.enter(context), mpirun]), interfaces, startup)


def try_singularity(backend: Backend, context: Context, links: list[NodeLink]) -> float:
    """Start one empty container on every node; return how long that took."""
    begin = time.monotonic()
    expect_ok(
        ask_all(links, "run", argv=[*backend.wrap(context), "true"], timeout_s=READY_WITHIN_S),
        links,
        "apptainer exec",
    )
    return time.monotonic() - begin


def find_adapters(links: list[NodeLink]) -> None:
    """See that every node has an RDMA adapter that programs may use."""
    expect_ok(ask_all(links, "run", argv=["ls", "/dev/infiniband"], timeout_s=30), links, "rdma: ls /dev/infiniband")


def launcher_version(link: NodeLink, argv: list[str]) -> str:
    """Return what the launcher says of itself, such as ``mpirun (Open MPI) 5.0.7``."""
    said = expect_ok([link.ask("run", argv=[*argv, "--version"], timeout_s=30)], [link], f"{argv[-1]} --version")[0]
    return said.splitlines()[0].strip()


def inside(hostname: str, place: Place, namespaces: dict[str, str]) -> Place:
    """Return a node's container as a place."""
    return Place(hostname, place.node_ns, namespaces, place.cpus, place.cores)


def start_and_wait(backend: Held, context: Context, links: list[NodeLink]) -> float:
    """Start one container per node and wait until each can be entered; return how long that took."""
    begin = time.monotonic()
    start_containers(backend, context, links)
    for node, link in enumerate(links):
        ask_until_ok(backend, context, link, node, [*backend.into(context, node), "true"], lambda _said: True)
    return time.monotonic() - begin


def prepare_inhabited(
    block: Block,
    mpirun: str,
    backend: Inhabited,
    context: Context,
    links: list[NodeLink],
    places: tuple[Place, ...],
) -> Prepared:
    """Fetch the image, start the arm's containers, and wait until each reaches every other by ssh.

    From the start of the containers on ``links`` has one entry per container: the same link again where a node has several.
    """
    startup: dict[str, float | None] = {"image_s": fetch_image(block, context, links) if backend.runtime == "docker" else None}
    links = [links[context.node_of(container)] for container in context.containers]
    begin = time.monotonic()
    write_ssh_files(backend, context)
    start_containers(backend, context, links)
    addresses = wait_for_addresses(backend, context, links)
    spread_names(backend, context, links, addresses)
    wait_for_ssh(backend, context, links)
    startup["containers_s"] = time.monotonic() - begin
    namespaces = container_namespaces(backend, context, links)
    routes = in_containers(backend, context, links, ["cat", "/proc/net/route"])
    interfaces = interfaces_of(routes, backend.subnet(context))
    limits = found_limits(backend, context, links, interfaces)
    version = launcher_version(links[0], [*backend.enter(context), mpirun])
    boxes = tuple(
        container_place(backend, context, container, places[context.node_of(container)], namespaces[container], limits[container])
        for container in context.containers
    )
    return Prepared(backend, boxes, version, interfaces, startup)


def container_place(
    backend: Inhabited, context: Context, container: int, node: Place, namespaces: dict[str, str], limits: dict[str, Any]
) -> Place:
    """Return a container as a place: its own name and namespaces, and what of the node's CPUs and memory it was given."""
    cpus = parse_list(context.cpuset(container))
    memory = context.memory(container)
    return Place(
        hostname=node.hostname if backend.network == "host" else backend.host_names(context)[container],
        node_ns=node.node_ns,
        container_ns=namespaces,
        cpus=cpus,
        cores=tuple(core & cpus for core in node.cores if core & cpus),
        node=node.hostname,
        mems=None if memory is None else parse_list(memory),
        limits=limits,
    )


LIMIT_FILES = {
    "cpu_quota": ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
    "cpu_shares": ("/sys/fs/cgroup/cpu.weight", "/sys/fs/cgroup/cpu/cpu.shares"),
    "mtu": ("/sys/class/net/{interface}/mtu",),
}
"""Where a container sees a limit: under cgroup v2, else under v1."""


def found_limits(
    backend: Inhabited, context: Context, links: list[NodeLink], interfaces: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Return, for each container, what it sees of the limits that its arm sets; ``interfaces`` lead into its network."""
    found: list[dict[str, Any]] = [{} for _ in links]
    for name in LIMIT_FILES.keys() & context.factors.keys():
        files = [path.format(interface=interface) for path in LIMIT_FILES[name] for interface in interfaces[:1] or ("",)]
        script = 'for file; do if [ -r "$file" ]; then cat "$file"; fi; done'
        texts = in_containers(backend, context, links, ["sh", "-c", script, "sh", *files])
        for limits, text in zip(found, texts, strict=True):
            limits[name] = read_limit(name, text.split())
    return found


def read_limit(name: str, words: list[str]) -> float | None:
    """Return a limit from its files' words: quota over period as CPUs (``max`` or -1: none), else the number; None: no file."""
    numbers = [float(word) for word in words if word.lstrip("-").isdigit()]
    if name == "cpu_quota":
        return None if len(numbers) < 2 or numbers[0] < 0 else numbers[0] / numbers[1]
    return numbers[0] if numbers else None


def fetch_image(block: Block, context: Context, links: list[NodeLink]) -> float:
    """See that every node has the image; return how long that took."""
    begin = time.monotonic()
    docker = context.site["runtimes"]["docker"]["command"]
    there = ask_all(links, "run", argv=[docker, "image", "inspect", "--format", "there", str(context.image)], timeout_s=30)
    if any(answer["exit_code"] == 127 for answer in there):
        expect_ok(there, links, "docker")
    if any(answer["exit_code"] != 0 for answer in there):
        argv = images.fetch_argv(context.site, block.setting.userland, str(context.image))
        expect_ok(ask_all(links, "run", argv=argv, timeout_s=600), links, "docker image")
    return time.monotonic() - begin


def write_ssh_files(backend: Inhabited, context: Context) -> None:
    """Make what the sshd of an arm's containers needs."""
    write_container_files(context)
    directory = Path(backend.directory(context))
    directory.mkdir()
    (directory / "sshd_config").write_text(sshd_config(context, backend.port(context)))


def start_containers(backend: Held, context: Context, links: list[NodeLink]) -> None:
    """Start the arm's containers on all nodes at once, held by the nodes' agents."""
    directory = Path(backend.directory(context))
    directory.mkdir(exist_ok=True)
    for name, text in backend.files(context).items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o700 if text.startswith("#!") else 0o600)
    for index, link in enumerate(links):
        link.send(
            "hold",
            name=f"{directory}/{index}",
            argv=backend.container_argv(context, index),
            log=str(directory / f"container{index}.log"),
            before=backend.before(context, index),
            after=backend.after(context, index),
        )
    expect_ok([link.receive() for link in links], links, f"{backend.name}: start")


def wait_for_addresses(backend: Inhabited, context: Context, links: list[NodeLink]) -> dict[str, str]:
    """Wait until every container runs; return its host name and address (on the host network: none)."""
    addresses = {}
    for index, (link, host) in enumerate(zip(links, backend.host_names(context), strict=True)):
        argv = backend.state(context, index)
        said = ask_until_ok(backend, context, link, index, argv, lambda said: backend.address(context, said) is not None)
        address = backend.address(context, said)
        if address:
            addresses[host] = address
    return addresses


def ask_until_ok(
    backend: Held, context: Context, link: NodeLink, container: int, argv: list[str], good: Callable[[str], bool]
) -> str:
    """Run a command on a container's node until it succeeds and its stdout is good; the container's words explain a failure."""
    directory = Path(backend.directory(context))
    deadline = time.monotonic() + READY_WITHIN_S
    while True:
        answer = link.ask("run", argv=argv, timeout_s=30)
        if answer["exit_code"] == 0 and good(answer["stdout"]):
            return str(answer["stdout"])
        ended = link.ask("held_ended", name=f"{directory}/{container}")["exit_code"]
        if ended is not None or time.monotonic() > deadline:
            log = directory / f"container{container}.log"
            words = (log.read_text(errors="replace") + answer["stderr"]).strip().splitlines()
            reason = f"exit {ended}" if ended is not None else f"not ready after {READY_WITHIN_S:g} s"
            raise TareError(f"{link.node}: {backend.name}: container: {reason}: {words[-1] if words else 'no message'}")
        time.sleep(0.1)


def spread_names(backend: Inhabited, context: Context, links: list[NodeLink], addresses: dict[str, str]) -> None:
    """Tell every container all names, in its /etc/hosts and its ssh configuration."""
    config = ssh_config(context, backend.port(context), addresses)
    (Path(backend.directory(context)) / "ssh_config").write_text(config)
    if not addresses:
        return
    lines = "".join(f"{address}\t{name}\n" for name, address in addresses.items())
    for index, link in enumerate(links):
        link.send("run", argv=backend.learn_names(context, index), timeout_s=30, text=lines)
    expect_ok([link.receive() for link in links], links, f"{backend.name}: /etc/hosts")


def wait_for_ssh(backend: Inhabited, context: Context, links: list[NodeLink]) -> None:
    """Wait until the first container reaches every other by ssh."""
    config = str(Path(backend.directory(context)) / "ssh_config")
    for host in backend.host_names(context)[1:]:
        ask_until_ok(
            backend,
            context,
            links[0],
            0,
            [*backend.enter(context), "ssh", "-F", config, host, "true"],
            lambda _said: True,
        )


def in_containers(backend: Held, context: Context, links: list[NodeLink], argv: Argv) -> list[str]:
    """Run a command in every container of an arm; return what each said."""
    for index, link in enumerate(links):
        link.send("run", argv=[*backend.into(context, index), *argv], timeout_s=30)
    return expect_ok([link.receive() for link in links], links, f"{backend.name}: {argv[0]}")


def container_namespaces(backend: Held, context: Context, links: list[NodeLink]) -> list[dict[str, str]]:
    """Return the namespaces of the arm's containers, as seen by a process put into each."""
    texts = in_containers(backend, context, links, ["readlink", *(f"/proc/self/ns/{kind}" for kind in KINDS)])
    return [{kind: line.partition("[")[2].rstrip("]") for kind, line in zip(KINDS, text.split(), strict=True)} for text in texts]


def block_digests(block: Block, site: Mapping) -> dict[str, Any]:
    """Return arm → digests that its plan covers, of what is built by now (None where it is not).

    On a simulated site nothing is built; what its numbers come from is the model.
    """
    if "simulation" in site:
        model = {"binary": f"simulated-{short_digest(site['simulation'])}", "images": {}}
        return {arm.name: model for arm in block.arms}
    own = {arm.name: block.setting.of(arm) for arm in block.arms}
    binaries = {setting.binary: setting_digest(setting) for setting in own.values()}
    return {
        name: {"binary": binaries[setting.binary], "images": images.digests(setting.userland)} for name, setting in own.items()
    }


def setting_digest(setting: Setting) -> str | None:
    """Return the SHA-256 of what is launched: the program built here, or the packaged one of the nodes, as its note says."""
    if setting.program is None:
        return binary_digest(ROOT / setting.binary)
    return (images.read_note(ROOT / setting.built) or {}).get("sha256")


def binary_digest(path: Path) -> str | None:
    """Return a program's SHA-256, None while it is not built."""
    return file_sha256(path) if path.is_file() else None


def cpu_list(cpus: list[int]) -> str:
    """Return CPUs as a list that Docker takes."""
    return ",".join(map(str, cpus))
