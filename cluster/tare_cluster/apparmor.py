"""Ubuntu since 24.04 lets only programs with a fitting profile make user namespaces; an ordinary user's Apptainer needs them."""

from __future__ import annotations

from pathlib import Path

from .shell import run

RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
LOADED = Path("/sys/kernel/security/apparmor/profiles")
PROFILE = "tare-node"
# As unconfined as apparmor=unconfined, but with a name that is allowed to make user namespaces.
TEXT = f"""\
abi <abi/4.0>,
profile {PROFILE} flags=(unconfined) {{
  userns,
}}
"""


def is_restricted() -> bool:
    return RESTRICTED.is_file() and RESTRICTED.read_text().strip() == "1"


def ensure_profile() -> str:
    """The profile for the nodes; loaded into the kernel only, no file is left."""
    if not is_restricted():
        return "unconfined"
    run(["apparmor_parser", "--replace"], stdin=TEXT.encode())
    return PROFILE


def remove_profile() -> None:
    if is_restricted() and f"{PROFILE} " in LOADED.read_text():
        run(["apparmor_parser", "--remove"], stdin=TEXT.encode())
