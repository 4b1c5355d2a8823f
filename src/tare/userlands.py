"""Userlands: the distributions inside the images (containers/userlands.ini), and which of them has a toolchain."""

import configparser

from tare.config import Mapping
from tare.errors import TareError
from tare.yamlio import ROOT, suggestion

BUILDER = "-build"
"""A userland's image with compilers is called like the measured one, with this at its end."""

HOST = "host"
"""The userland of programs that the nodes build with a toolchain of their environment modules."""


def load_userlands() -> dict[str, Mapping]:
    """Return every userland's section of containers/userlands.ini."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string((ROOT / "containers" / "userlands.ini").read_text(encoding="utf-8"))
    return {name: dict(parser[name]) for name in parser.sections()}


def check_userland(name: str, where: str) -> None:
    """Raise when no recipe makes that userland."""
    known = sorted(load_userlands())
    if name not in known:
        raise TareError(f"{where}: unknown userland {name!r}; {suggestion(name, known)}; they stand in containers/userlands.ini")


def userland_of(name: str, toolchain: Mapping, wanted: str) -> str:
    """Return the userland in which a toolchain is used where the study asks for ``wanted``.

    A toolchain that is everywhere is used in that one. A toolchain that only some userlands have is used in that one if it
    has it, in its variant (``alpine312`` → ``alpine312-v9``), or else in the first that has it.
    """
    having: list[str] = toolchain.get("userlands", [wanted])
    variant = f"{wanted}-{name}"
    return next((userland for userland in (wanted, variant) if userland in having), having[0])


def check_has(name: str, toolchain: Mapping, userland: str, where: str) -> None:
    """Raise when a userland that the study names lacks a toolchain."""
    if userland_of(name, toolchain, userland) not in (userland, f"{userland}-{name}"):
        raise TareError(
            f"{where}: {userland} has no toolchain {name!r}; it is in {', '.join(toolchain['userlands'])}; choose one of these, "
            "or a toolchain that is everywhere (distribution)"
        )


def modules_of(site: Mapping, name: str, toolchain: Mapping) -> tuple[str, ...]:
    """Return the environment modules that have a toolchain on a site: the site's own word before the general one."""
    own: Mapping = site.get("toolchains", {}).get(name, toolchain)
    return tuple(own.get("modules", ()))


def userlands_of(study: Mapping, toolchains: Mapping) -> list[tuple[str, str]]:
    """Return every toolchain of a study with every userland in which it is used."""
    compared = study.get("compare", {})
    wanted = compared.get("userlands", [study["userland"]])
    names = compared.get("toolchains", study["toolchains"])
    return list(dict.fromkeys((name, userland_of(name, toolchains[name], one)) for name in names for one in wanted))
