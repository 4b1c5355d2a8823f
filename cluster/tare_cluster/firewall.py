"""What a Docker Engine leaves in the kernel when it ends: bridge docker0, its chains, a changed FORWARD policy, ip_forward."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from .checkout import Checkout
from .shell import run, succeeds

BEFORE = "network-before-dockerd.json"
IP_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
TOOLS = (("iptables-save", "iptables-restore"), ("ip6tables-save", "ip6tables-restore"))
_DOCKER = re.compile(r"DOCKER|docker0|docker_gwbridge")
_POLICY = re.compile(r"^:FORWARD (\w+)", re.MULTILINE)


def remember(checkout: Checkout) -> None:
    """Before the engine starts; a note from an earlier start stays valid."""
    if checkout.read(BEFORE) is None:
        policies = {save: _forward_policy(run([save])) for save, _ in TOOLS if shutil.which(save)}
        checkout.write(BEFORE, json.dumps({"forward": policies, "ip_forward": IP_FORWARD.read_text().strip()}) + "\n")


def restore(checkout: Checkout) -> None:
    noted = checkout.read(BEFORE)
    if noted is None:
        return
    before = json.loads(noted)
    for save, load in TOOLS:
        if shutil.which(save):
            rules = run([save])
            cleaned = without_docker(rules, before["forward"].get(save) or "ACCEPT")
            if cleaned != rules:
                run([load], stdin=cleaned.encode())
    succeeds(["ip", "link", "delete", "docker0"])
    IP_FORWARD.write_text(before["ip_forward"])
    checkout.forget(BEFORE)


def _forward_policy(rules: str) -> str | None:
    found = _POLICY.search(rules)
    return found.group(1) if found else None


def without_docker(rules: str, forward_policy: str) -> str:
    """iptables-save's text without Docker's chains and rules, other people's rules untouched."""
    kept = "\n".join(line for line in rules.splitlines() if not _DOCKER.search(line))
    return _POLICY.sub(f":FORWARD {forward_policy}", kept) + "\n"
