"""The embedded cluster's life, seen from the host: repeated, damaged, changed, taken down.

The tests build on each other and run in this order, because every fresh start costs seconds: the last one takes the cluster down.
Only what Debian's own Python and pytest have is used.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = str(ROOT / "cluster/tare-cluster")
OURS = ["--filter", "label=tare.checkout"]
ENVIRONMENT = {**os.environ, "DOCKER_HOST": "unix:///var/run/docker.sock"}

# Sends for two seconds, and prints the receiver's megabits per second.
RECEIVE = """
import socket, time
server = socket.create_server(("0.0.0.0", 5999))
print("listening", flush=True)
peer, _ = server.accept()
start, total = time.monotonic(), 0
while block := peer.recv(1 << 20):
    total += len(block)
print(total * 8e-6 / (time.monotonic() - start))
"""
SEND = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 5999))
end, block = time.monotonic() + 2, bytes(1 << 18)
while time.monotonic() < end:
    peer.sendall(block)
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=ENVIRONMENT)


def output(*command: str) -> str:
    done = run(*command)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def up(*arguments: str) -> str:
    return output(TOOL, "up", *arguments)


def on(node: str, *command: str, user: str = "tare") -> str:
    return output(TOOL, "exec", "--node", node, "--user", user, "--", *command)


def compute_nodes() -> list[str]:
    return output(TOOL, "exec", "--", "sinfo", "--noheader", "--Node", "--format", "%N").split()


def containers() -> dict[str, tuple[str, str]]:
    """Name → (id, time of its last start)."""
    names = output("docker", "ps", "--quiet", *OURS).split()
    found = json.loads(output("docker", "inspect", *names))
    return {it["Name"]: (it["Id"], it["State"]["StartedAt"]) for it in found}


def job_on_all_nodes() -> list[str]:
    count = str(len(compute_nodes()))
    return sorted(on("login", "timeout", "60", "srun", "--nodes", count, "--ntasks", count, "hostname").split())


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    up()
    yield


def test_up_when_up_says_so_and_changes_nothing() -> None:
    before = containers()
    assert "nothing to do" in up()
    assert containers() == before


def test_nodes_have_the_cpus_that_the_site_file_and_slurm_say() -> None:
    found = (ROOT / ".tare/site.yaml").read_text()
    shared = "shared_cpus: true" in found
    masks = []
    for node in compute_nodes():
        mask = re.search(r"^Cpus_allowed_list:\s*(\S+)$", on(node, "cat", "/proc/self/status"), re.MULTILINE)
        assert mask
        masks.append(numbers(mask.group(1)))
    said = on("login", "sinfo", "--noheader", "--Node", "--format", "%c").split()
    assert [str(len(mask)) for mask in masks] == said
    assert f"cpus_per_node: {said[0]}\n" in found
    assert (sum(map(len, masks)) > len(set.union(*masks))) == shared


def numbers(cpu_list: str) -> set[int]:
    ranges = [part.split("-") for part in cpu_list.split(",")]
    return {number for bounds in ranges for number in range(int(bounds[0]), int(bounds[-1]) + 1)}


def test_a_job_is_an_ordinary_users_and_its_files_belong_to_the_checkouts_owner() -> None:
    probe = ROOT / ".tare/owner-probe"
    script = f"id -u && touch /tare/.tare/{probe.name}"
    user = on("login", "srun", "bash", "-c", script).strip()
    made, owner = probe.stat(), ROOT.stat()
    probe.unlink()
    assert user != "0"
    assert (made.st_uid, made.st_gid) == (owner.st_uid, owner.st_gid)


@pytest.mark.parametrize("image", ["tare/debian13:latest", "tare/node:latest"])
def test_there_are_no_keys_and_no_certificates_of_the_host_in_an_image(image: str) -> None:
    find = ["find", "/etc/ssh", "/etc/munge", "/root", "/home", "/tmp", "/opt", "-name"]
    patterns = ["ssh_host_*", "id_*[0-9]", "authorized_keys", "munge.key", "certificates.pem", "pip.conf"]
    alternatives = " -o -name ".join(patterns).split()
    listed = run("docker", "run", "--rm", "--network", "none", "--entrypoint", "", image, *find, *alternatives)
    assert listed.stdout == ""


def test_a_killed_slurmd_and_a_killed_dockerd_are_repaired() -> None:
    on("node02", "bash", "-c", "kill -9 $(cat /run/slurmd.pid) $(cat /run/docker.pid)", user="root")
    said = up()
    assert "node02: dockerd started, slurmd started" in said
    assert "node01" not in said
    assert job_on_all_nodes() == compute_nodes()
    assert "Ready" in on("node01", "docker", "node", "inspect", "--format", "{{.Status.State}}", "node02").title()
    assert "nothing to do" in up()


def test_a_killed_node_is_repaired() -> None:
    output("docker", "kill", "tare-node02")
    assert "starting tare-node02" in up()
    assert job_on_all_nodes() == compute_nodes()
    assert on("node02", "stat", "--format", "%U", "/tare").strip() == "tare"


def test_a_killed_login_node_keeps_its_home_and_its_image_registry() -> None:
    key = on("login", "cat", "/home/tare/.ssh/id_ed25519.pub")
    output("docker", "kill", "tare-login")
    said = up()
    assert "into the cluster's registry" not in said
    assert on("node01", "cat", "/home/tare/.ssh/id_ed25519.pub") == key
    assert on("node01", "ssh", "node02", "hostname").strip() == "node02"
    wait_for_empty_queue()
    assert job_on_all_nodes() == compute_nodes()


def wait_for_empty_queue() -> None:
    """Not at once: a cancelled job is completing for a moment, and of a killed slurmctld's jobs some may have ended unseen."""
    on("login", "timeout", "120", "bash", "-c", 'until [ -z "$(squeue --noheader)" ]; do sleep 0.5; done')


def test_lost_networks_are_made_again() -> None:
    on("node01", "docker", "network", "rm", "tare-overlay")
    on("node02", "docker", "network", "rm", "tare-macvlan")
    output("docker", "network", "disconnect", "--force", "tare-fast", "tare-node02")
    said = up()
    assert "network tare-overlay: " in said
    assert "network tare-macvlan made" in said
    assert on("node01", "ping", "-c", "1", "-W", "2", fast_address("node02"))


def fast_address(node: str) -> str:
    return address(node, "eth1")


def address(node: str, interface: str) -> str:
    found = re.search(r"inet ([0-9.]+)/", on(node, "ip", "-4", "addr", "show", "dev", interface))
    assert found
    return found.group(1)


def test_an_interrupted_command_is_interrupted_in_its_node() -> None:
    script = "trap 'echo interrupted; exit 7' INT; echo ready; while true; do sleep 0.1; done"
    command = [TOOL, "exec", "--", "bash", "-c", script]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "interrupted\n"
    assert child.returncode == 7


def test_a_change_that_would_kill_jobs_is_refused() -> None:
    job = on("login", "sbatch", "--parsable", "--output", "/dev/null", "--wrap", "sleep 600").strip()
    done = run(TOOL, "up", "--nodes", "3")
    on("login", "scancel", job)
    assert done.returncode == 1
    assert "jobs are in the queue: 1; wait for them, or run make down first" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_number_of_nodes_and_a_shaped_link(tmp_path: Path) -> None:
    """One re-creation for both, and back."""
    wait_for_empty_queue()
    plain = (ROOT / "config/sites/embedded.yaml").read_text()
    shaped = tmp_path / "shaped.yaml"
    shaped.write_text(plain.replace("link: null", "link: 200mbit", 1))
    up("--nodes", "3", "--site", str(shaped))
    try:
        assert compute_nodes() == ["node01", "node02", "node03"]
        assert job_on_all_nodes() == compute_nodes()
        slow, fast = throughput("eth0"), throughput("eth1")
        # A rate is a promise about the top only: what the unshaped link reaches is the machine's affair.
        assert slow < 220
        assert fast > 3 * slow
    finally:
        up("--nodes", "2")
    assert compute_nodes() == ["node01", "node02"]
    assert job_on_all_nodes() == compute_nodes()
    assert throughput("eth0") > 220


def throughput(interface: str) -> float:
    """Megabits per second from node01 to node02, as the receiver sees it."""
    command = [TOOL, "exec", "--node", "node02", "--", "python3", "-c", RECEIVE]
    receiver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert receiver.stdout
    assert receiver.stdout.readline() == "listening\n"
    on("node01", "python3", "-c", SEND, address("node02", interface))
    return float(receiver.communicate(timeout=60)[0])


def test_a_half_built_cluster_is_completed() -> None:
    output("docker", "rm", "--force", "tare-login", "tare-node02")
    output("docker", "volume", "rm", "tare-node02-state")
    up()
    assert job_on_all_nodes() == compute_nodes()
    members = on("node01", "docker", "node", "ls", "--format", "{{.Hostname}} {{.Status}}").splitlines()
    assert sorted(members) == ["node01 Ready", "node02 Ready"]


def test_down_leaves_nothing_behind() -> None:
    output(TOOL, "exec", "--node", "node01", "--", "docker", "run", "--detach", "login:5000/tare/debian13", "sleep", "600")
    started_by_tare = (ROOT / ".tare/dockerd.pid").is_file()
    output(TOOL, "down")
    assert [line for line in Path("/proc/mounts").read_text().splitlines() if "tare-" in line or f"{ROOT}/" in line] == []
    assert [name for name in programs() if name in ("slurmctld", "slurmd", "munged", "docker-registr", "tare-node")] == []
    if started_by_tare:
        assert not {"dockerd", "containerd", "containerd-shim"} & set(programs())
        assert "docker0" not in output("ip", "link")
        assert [line for line in Path("/proc/mounts").read_text().splitlines() if "/docker/" in line] == []
    else:
        for kind in ("container", "network", "volume"):
            everything = ["--all"] if kind == "container" else []
            assert output("docker", kind, "ls", "--quiet", *everything, *OURS) == ""


def programs() -> list[str]:
    """Names of the processes that have not ended; one that nobody has asked for its exit code yet (Z) has."""
    rows = [line.split(None, 1) for line in output("ps", "-e", "-o", "stat=,comm=").splitlines()]
    return [name for state, name in rows if not state.startswith("Z")]
