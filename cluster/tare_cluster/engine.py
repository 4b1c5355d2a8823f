"""The host's Docker Engine: installed and started when missing, and stopped again when Tare started it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from . import firewall
from .checkout import Checkout
from .machine import install, need_root
from .shell import run, say, succeeds, wait_until

SOCKET = Path("/var/run/docker.sock")
STARTED_BY_TARE = "dockerd.pid"  # the process id, or SYSTEMD
SYSTEMD = "systemd"
LOG = "dockerd.log"
DOCKER_PACKAGES = ["docker.io", "docker-cli"]


def use_local_engine() -> None:
    """This machine's engine, whatever context or DOCKER_HOST the user's shell has: nodes need this machine's CPUs and files."""
    os.environ["DOCKER_HOST"] = f"unix://{SOCKET}"
    # Shown line by line also where BuildKit builds.
    os.environ["BUILDKIT_PROGRESS"] = "plain"


def answers() -> bool:
    return succeeds(["docker", "version"], timeout=10)


def installed() -> bool:
    return shutil.which("dockerd") is not None


def ensure(checkout: Checkout) -> None:
    if shutil.which("docker") and answers():
        return
    firewall.remember(checkout)
    new = install("dockerd", DOCKER_PACKAGES)
    install("docker", DOCKER_PACKAGES)
    if new and answers():  # the package's service has just started it
        checkout.write(STARTED_BY_TARE, SYSTEMD)
        return
    start(checkout)


def start(checkout: Checkout) -> None:
    need_root("starting dockerd")
    say("starting dockerd (it was not running; `make down` stops it)")
    if Path("/run/systemd/system").is_dir():
        run(["systemctl", "start", "docker.service"])
        checkout.write(STARTED_BY_TARE, SYSTEMD)
    else:
        checkout.write(LOG, "")
        with (checkout.state / LOG).open("ab") as log:
            daemon = subprocess.Popen(
                ["dockerd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        checkout.write(STARTED_BY_TARE, str(daemon.pid))
    wait_until("dockerd answers", 60, answers, f"see {checkout.state / LOG} or `journalctl -u docker`")


def stop(checkout: Checkout) -> None:
    """Stops the engine if Tare started it and nobody else has containers in it."""
    started = checkout.read(STARTED_BY_TARE)
    if started is None:
        return
    if answers() and run(["docker", "ps", "--quiet"]).strip():
        say("dockerd keeps running: there are containers in it that are not Tare's")
        return
    if started == SYSTEMD:
        run(["systemctl", "stop", "docker.socket", "docker.service"])
    else:
        _terminate(int(started))
    if answers():  # since Tare started its own the machine was started anew, and with it another dockerd
        say("dockerd keeps running: the one that answers is not the one that Tare started")
    else:
        unmount_rest()
        firewall.restore(checkout)
        say("dockerd stopped (Tare had started it)")
    checkout.forget(STARTED_BY_TARE)


def unmount_rest() -> None:
    """dockerd leaves its own network namespace mounted when it ends."""
    targets = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for target in (target for target in targets if target.startswith("/run/docker/")):
        succeeds(["umount", target])


def _terminate(pid: int) -> None:
    if not _is_dockerd(pid):
        return
    os.kill(pid, signal.SIGTERM)
    wait_until("dockerd ends", 30, lambda: not _is_dockerd(pid), f"look at process {pid}")


def _is_dockerd(pid: int) -> bool:
    """A process id may have been given to another program since; a zombie has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "Name:\tdockerd\n" in status and "State:\tZ" not in status
