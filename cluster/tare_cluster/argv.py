"""The exact docker command lines. Pure, so that they can be read and tested without a daemon."""

from __future__ import annotations

from .layout import Link, Node, cpu_list

# What a node needs to run its own Docker Engine, Slurm, sshd and Apptainer. A list, and not --privileged: that fails where
# root's own bounding set lacks a capability, and gives all devices of the host.
CAPABILITIES = (
    "SYS_ADMIN",  # mounts, namespaces, cgroups
    "NET_ADMIN",  # bridges, VXLAN, MACVLAN, tc
    "NET_RAW",
    "SYS_CHROOT",
    "MKNOD",
    "SYS_PTRACE",  # MPI's shared memory between processes (CMA), proofs from /proc
    "SETFCAP",
    "AUDIT_WRITE",
    "DAC_READ_SEARCH",
    "SYS_NICE",
    "IPC_LOCK",
    "SYSLOG",
)
LABEL = "tare.checkout"
SPEC_LABEL = "tare.spec"
NODES_LABEL = "tare.nodes"  # how many compute nodes the cluster has, on each container: some may be lost
CONFIG_VOLUME = "tare-config"
HOME_VOLUME = "tare-home"


def network_name(link: Link) -> str:
    return f"tare-{link.name}"


def state_volume(container: str) -> str:
    return f"{container}-state"


def state_folder(node: Node) -> str:
    """What of a node outlives its container."""
    return "/var/lib/tare" if node.role == "login" else "/var/lib/docker"


def network_create(link: Link, checkout: str) -> list[str]:
    # --internal: no way out, and no way in from other machines.
    options = ["--internal", "--driver", "bridge", "--subnet", str(link.subnet)]
    labels = ["--label", f"{LABEL}={checkout}", "--label", f"{SPEC_LABEL}={link.subnet}"]
    return ["docker", "network", "create", *options, *labels, network_name(link)]


def volume_create(name: str, checkout: str) -> list[str]:
    return ["docker", "volume", "create", "--label", f"{LABEL}={checkout}", name]


def node_create(node: Node, links: tuple[Link, ...], image: str, checkout: str, apparmor: str) -> list[str]:
    """`docker create` of one node, on its first network only: the others are connected before it starts."""
    capabilities = [word for name in CAPABILITIES for word in ("--cap-add", name)]
    security = [
        *("--security-opt", "seccomp=unconfined"),
        *("--security-opt", f"apparmor={apparmor}"),
        *("--security-opt", "systempaths=unconfined"),
    ]
    volumes = [
        *("--volume", f"{checkout}:/tare"),
        *("--volume", f"{CONFIG_VOLUME}:/etc/tare"),
        *("--volume", f"{HOME_VOLUME}:/home"),
        *("--volume", f"{state_volume(node.container)}:{state_folder(node)}"),
    ]
    return [
        *("docker", "create", "--name", node.container, "--hostname", node.name),
        *("--label", f"{LABEL}={checkout}"),
        *("--network", network_name(links[0]), "--ip", node.addresses[0]),
        *("--cpuset-cpus", cpu_list(node.cpus)),
        *("--init", "--device", "/dev/fuse", "--shm-size", "2g", "--tmpfs", "/run:exec,mode=755"),
        *capabilities,
        *security,
        *volumes,
        *("--workdir", "/tare"),
        image,
    ]


def labelled(create: list[str], spec: str, nodes: int) -> list[str]:
    """The same command, with the digest of everything it depends on, and the size of the cluster, as labels."""
    return [*create[:2], "--label", f"{SPEC_LABEL}={spec}", "--label", f"{NODES_LABEL}={nodes}", *create[2:]]


def network_connect(node: Node, link: Link, address: str) -> list[str]:
    return ["docker", "network", "connect", "--ip", address, network_name(link), node.container]


def node_exec(container: str, command: list[str], user: str = "root", flags: tuple[str, ...] = ()) -> list[str]:
    return ["docker", "exec", *flags, "--user", user, "--workdir", "/tare", container, *command]


def image_build(tag: str, folder: str, told: tuple[str, ...], target: str, proxy: str | None, label: str) -> list[str]:
    """`told`: NAME=value of the recipe's arguments; `target`: the stage, empty for the last."""
    proxies = (f"http_proxy={proxy}",) if proxy else ()
    arguments = [word for value in (*told, *proxies) for word in ("--build-arg", value)]
    stage = ["--target", target] if target else []
    # The host's network: a name server on the loopback interface and a proxy's routes work there.
    return ["docker", "build", "--network", "host", *arguments, *stage, "--label", label, "--tag", tag, folder]
