"""`make up`: starts the cluster, repairs it, or finds that nothing is to do. The same steps for all three."""

from __future__ import annotations

from pathlib import Path

from . import configs, containers, engine, images, machine, services
from .checkout import Checkout
from .errors import ClusterError
from .layout import Layout
from .plan import make_plan
from .shell import say


def up(checkout: Checkout, nodes: int | None, site_file: Path) -> None:
    """`nodes` None: as many as there are, else the site file's number."""
    machine.ensure_fuse()
    engine.ensure(checkout)
    refuse_another_checkout(checkout)
    images.ensure(checkout)
    plan = make_plan(checkout, nodes or compute_nodes(), site_file)
    changed = containers.ensure(plan)
    changed |= services.ensure(plan)
    checkout.write("site.yaml", configs.site_yaml(plan.layout))
    say(summary(plan.layout, changed))


def summary(layout: Layout, changed: bool) -> str:
    what = f"login and {len(layout.compute)} compute nodes"
    return f"the cluster is up: {what}" if changed else f"the cluster is up already: {what}; nothing to do"


def compute_nodes() -> int | None:
    """As many as the cluster was made with, also when some are lost."""
    return max((found.nodes for found in containers.present()), default=0) or None


def refuse_another_checkout(checkout: Checkout) -> None:
    """Names and addresses are this machine's: it has one embedded cluster at a time."""
    for other in {found.checkout for found in containers.present()} - {str(checkout.root)}:
        raise ClusterError(
            f"cluster: {checkout.root}: another checkout's cluster is on this machine: {other}; there can be one; "
            "run make down there, then make up here"
        )
