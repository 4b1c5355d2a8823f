"""What `make up` wants to be true: names, addresses, files, and the exact container of each node."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from . import apparmor, argv, configs, images, machine, sitefile
from .checkout import Checkout
from .layout import Layout, Site, make_layout


@dataclass(frozen=True)
class Plan:
    checkout: Checkout
    site: Site
    layout: Layout
    files: dict[str, str]  # in the nodes' /etc/tare
    specs: dict[str, str]  # container → digest of all that it depends on; another digest, another container
    creates: dict[str, list[str]]  # container → docker create …


def make_plan(checkout: Checkout, nodes: int | None, site_file: Path) -> Plan:
    """`nodes` None: the site file's number."""
    image = images.node_image(checkout).tag
    site = sitefile.read(site_file, checkout, image)
    layout = make_layout(site, machine.usable_cpus(), nodes or site.nodes)
    files = {
        "slurm.conf": configs.slurm_conf(site, layout, machine.memory_mb()),
        "hosts": configs.hosts(layout),
        "node.env": configs.node_env(site, layout, checkout.job_user, checkout.root_owned),
        "sudoers": configs.sudoers(site, checkout.job_user),
        **configs.cni_files(site, layout),
    }
    profile = apparmor.ensure_profile()
    specs, creates = {}, {}
    for node in layout.nodes:
        create = argv.node_create(node, site.links, image, str(checkout.root), profile)
        specs[node.container] = digest([create, node.addresses, images.inspect(image, "{{.Id}}"), files])
        creates[node.container] = argv.labelled(create, specs[node.container], len(layout.compute))
    return Plan(checkout, site, layout, files, specs, creates)


def digest(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
