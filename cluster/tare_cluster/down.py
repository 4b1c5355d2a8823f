"""`make down`: removes all that `make up` made, except the images; `make clean` removes those too."""

from __future__ import annotations

from pathlib import Path

from . import apparmor, argv, engine, images
from .checkout import Checkout
from .shell import lines, run, say

FILTER = ["--filter", f"label={argv.LABEL}"]


def down(checkout: Checkout) -> None:
    if not engine.answers():
        say("dockerd is not running: there is no cluster")
    else:
        remove_cluster()
    apparmor.remove_profile()
    checkout.forget("site.yaml")
    engine.stop(checkout)
    say("the cluster is down")


def remove_cluster() -> None:
    containers = lines(["docker", "ps", "--all", "--quiet", *FILTER])
    if containers:
        say(f"removing {len(containers)} nodes")
        run(["docker", "rm", "--force", "--volumes", *containers])
    volumes = lines(["docker", "volume", "ls", "--quiet", *FILTER])
    if volumes:
        run(["docker", "volume", "rm", *volumes])
    networks = lines(["docker", "network", "ls", "--quiet", *FILTER])
    if networks:
        run(["docker", "network", "rm", *networks])


def clean(checkout: Checkout) -> None:
    """`make down`, then the images: for that dockerd has to run, if only for a moment."""
    if engine.installed():
        engine.ensure(checkout)
        remove_cluster()
        images.remove_all(checkout)
    down(checkout)
    for path in sorted(Path(checkout.state).glob("cluster/*")):
        path.unlink()
