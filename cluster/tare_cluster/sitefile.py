"""The embedded site's file, read by the node image's YAML parser: the host has none that this tool may rely on."""

from __future__ import annotations

import hashlib
import json
import re
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from .checkout import Checkout
from .errors import ClusterError
from .layout import Cni, Link, Overlay, Site
from .shell import run

PARSER = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"
RATE = re.compile(r"^[0-9]+[kmg]bit$")


def read(path: Path, checkout: Checkout, image: str) -> Site:
    if not path.is_file():
        raise ClusterError(f"cluster: {path}: there is no such site file; give another with --site")
    text = path.read_bytes()
    cache = f"cluster/site-{hashlib.sha256(text).hexdigest()[:16]}.json"
    parsed = checkout.read(cache)
    if parsed is None:
        reader = ["docker", "run", "--rm", "--interactive", "--network", "none", "--entrypoint", "/opt/tare/venv/bin/python"]
        parsed = run([*reader, image, "-c", PARSER], stdin=text)
        checkout.write(cache, parsed)
    return parse(json.loads(parsed), str(path))


def parse(data: dict[str, Any], where: str) -> Site:
    """`where` names the file in errors."""
    try:
        networks = data["runtimes"]["docker"]["networks"]
        site = Site(
            nodes=int(data["nodes"]),
            partition=str(data["scheduler"]["partition"]),
            links=tuple(_link(name, values, where) for name, values in data["interconnects"].items()),
            registry=str(data["runtimes"]["docker"]["registry"]),
            overlay_name=str(networks["overlay"]["name"]),
            overlay_subnet=IPv4Network(networks["overlay"]["subnet"]),
            macvlan_name=str(networks["macvlan"]["name"]),
            macvlan_subnet=IPv4Network(networks["macvlan"]["subnet"]),
            cni={
                kind: Cni(str(values["name"]), IPv4Network(values["subnet"]))
                for kind, values in data["runtimes"]["singularity"]["networks"].items()
            },
            further_overlays=tuple(
                Overlay(str(entry["name"]), IPv4Network(entry["subnet"]), int(entry["mtu"]))
                for entry in networks["overlay"].get("further", [])
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ClusterError(
            f"{where}: {error!r} is missing or wrong; the cluster needs it; compare config/sites/embedded.yaml in git"
        ) from error
    _check(site, where)
    return site


def _link(name: str, values: dict[str, Any], where: str) -> Link:
    rate = values.get("link")
    if rate is not None and not RATE.match(str(rate)):
        raise ClusterError(
            f"{where}: interconnects.{name}.link: '{rate}' is no rate; null or a number with kbit, mbit or "
            "gbit, as in 1gbit; change it"
        )
    return Link(name, str(values["interface"]), IPv4Network(values["subnet"]), rate)


def _check(site: Site, where: str) -> None:
    """What Docker does not let us choose."""
    for index, link in enumerate(site.links):
        if link.interface != f"eth{index}":
            raise ClusterError(
                f"{where}: interconnects.{link.name}.interface: '{link.interface}'; Docker names it "
                f"eth{index}, by the order of the interconnects; change it"
            )
    bridged = {"docker": site.macvlan_subnet, "singularity": site.cni["macvlan"].subnet}
    for runtime, subnet in bridged.items():
        if not subnet.subnet_of(site.links[0].subnet):
            raise ClusterError(
                f"{where}: runtimes.{runtime}.networks.macvlan.subnet: {subnet} is not inside "
                f"{site.links[0].subnet} of {site.links[0].name}; the bridge's firewall would drop its packets; change it"
            )
    if bridged["docker"].overlaps(bridged["singularity"]):
        raise ClusterError(
            f"{where}: runtimes.singularity.networks.macvlan.subnet: {bridged['singularity']} overlaps Docker's "
            f"{bridged['docker']}; both would give the same addresses; change it"
        )
