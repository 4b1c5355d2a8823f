"""What a rank says about itself is what the machine says."""

import hashlib
import ipaddress
import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from appbench import Bench, Finished, clean_environment, launch

QUICK = ["--rectangles", "1000"]
KEYS = {
    *("rank", "size", "hostname", "pid", "ns", "container", "cpus_allowed", "mems_allowed"),
    *("libc", "mpi", "binary_sha256", "cpu_s", "links"),
}


def status(key: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{key}:")]
    return value


@pytest.fixture(scope="module")
def four_ranks(bench: Bench) -> Finished:
    return bench.run("dac", *QUICK, processes=4)


def test_every_rank_gives_its_proof_in_order(four_ranks: Finished) -> None:
    proof = four_ranks.report["proof"]
    assert [(rank["rank"], rank["size"]) for rank in proof] == [(n, 4) for n in range(4)]
    assert len({rank["pid"] for rank in proof}) == 4
    assert all(set(rank) == KEYS for rank in proof)
    assert all(0 < rank["cpu_s"] < 60 for rank in proof)


def test_names_versions_and_masks_are_those_of_this_machine(four_ranks: Finished) -> None:
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
    library, libc_version = platform.libc_ver()
    expected = {
        "hostname": socket.gethostname(),
        "ns": {
            name: str(Path(f"/proc/self/ns/{name}").readlink()).partition("[")[2].rstrip("]")
            for name in ("net", "mnt", "uts", "pid", "user")
        },
        "container": None,
        "cpus_allowed": status("Cpus_allowed_list"),
        "mems_allowed": status("Mems_allowed_list"),
        "libc": f"{library} {libc_version}" if library else "musl",
        "mpi": f"Open MPI v{version.splitlines()[0].split()[-1]}",
    }
    for rank in four_ranks.report["proof"]:
        assert {key: rank[key] for key in expected} == expected


def test_a_pinned_process_says_so(bench: Bench) -> None:
    cpu = max(os.sched_getaffinity(0))
    done = bench.single("dac", *QUICK, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    assert done.report["proof"][0]["cpus_allowed"] == str(cpu)


@pytest.mark.parametrize("name", ["node01-docker-host", 'a "quoted\\" one\n'])
def test_the_container_is_named_by_its_environment(bench: Bench, name: str) -> None:
    done = bench.single("dac", *QUICK, env=clean_environment() | {"TARE_CONTAINER": name})
    assert done.report["proof"][0]["container"] == name


# SHA-256 pads a message to whole blocks of 64 bytes, into the last one if 9 bytes are left there.
@pytest.mark.parametrize("last_block", [0, 1, 54, 55, 56, 63])
def test_the_digest_is_that_of_the_file_whatever_its_length(bench: Bench, tmp_path: Path, last_block: int) -> None:
    copy = tmp_path / "dac"
    shutil.copy(bench.binary("dac"), copy)
    with copy.open("ab") as file:
        file.write(b"x" * ((last_block - copy.stat().st_size) % 64))
    assert copy.stat().st_size % 64 == last_block
    rank = launch([str(copy), *QUICK]).report["proof"][0]
    assert rank["binary_sha256"] == hashlib.sha256(copy.read_bytes()).hexdigest()


def links_over(bench: Bench, *mca: str) -> list[list[dict[str, str]]]:
    parameters = [word for pair in zip(mca[::2], mca[1::2], strict=True) for word in ("--mca", *pair)]
    done = bench.run("dac", *QUICK, processes=4, mpirun=["--mca", "pml", "ob1", *parameters])
    assert (done.code, done.stderr) == (0, "")
    return [rank["links"] for rank in done.report["proof"]]


def test_ranks_that_talk_over_tcp_name_their_links(bench: Bench) -> None:
    interfaces = {name for _, name in socket.if_nameindex()}
    for links in links_over(bench, "btl", "self,tcp"):
        assert links
        for link in links:
            assert set(link) == {"interface", "local", "peer"}
            assert link["interface"] in interfaces
            assert ipaddress.ip_address(link["local"])
            assert ipaddress.ip_address(link["peer"])


def test_a_link_shows_the_network_that_was_asked_for(bench: Bench) -> None:
    loopback = {"interface": "lo", "local": "127.0.0.1", "peer": "127.0.0.1"}
    assert links_over(bench, "btl", "self,tcp", "btl_tcp_if_include", "lo") == [[loopback]] * 4


def test_ranks_that_share_memory_have_no_links_though_the_launcher_has(bench: Bench) -> None:
    assert links_over(bench, "btl", "^tcp") == [[]] * 4


def ipv6_loopback_links() -> list[tuple[str, str, str]]:
    """Addresses to listen on, to connect to, and to be found; not every machine's loopback has ::1."""
    links = [("::", "::ffff:127.0.0.1", "127.0.0.1")]
    known = Path("/proc/net/if_inet6")
    has_loopback = known.exists() and any(line.endswith(" lo") for line in known.read_text().splitlines())
    return [*links, ("::1", "::1", "::1")] if has_loopback else links


def links_of_inherited(bench: Bench, listen: str, connect: str, ends: int) -> Any:
    """Links of a single process that was handed one or both ends of a TCP connection over IPv6."""
    with socket.socket(socket.AF_INET6) as server, socket.socket(socket.AF_INET6) as client:
        server.bind((listen, 0))
        server.listen()
        client.connect((connect, server.getsockname()[1]))
        accepted, _ = server.accept()
        with accepted:
            given = (client.fileno(), accepted.fileno())[:ends]
            return bench.single("dac", *QUICK, pass_fds=given).report["proof"][0]["links"]


@pytest.mark.parametrize(("listen", "connect", "address"), ipv6_loopback_links())
def test_ipv6_sockets_are_links_too_with_ipv4_addresses_in_plain(bench: Bench, listen: str, connect: str, address: str) -> None:
    link = {"interface": "lo", "local": address, "peer": address}
    assert links_of_inherited(bench, listen, connect, ends=2) == [link]


def test_a_connection_to_a_stranger_is_no_link(bench: Bench) -> None:
    assert links_of_inherited(bench, "::", "::ffff:127.0.0.1", ends=1) == []
