"""The command line: cluster/tare-cluster up | down | status | shell | exec | images | clean."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

from . import argv, containers, down, engine, images, sitefile, status, up
from .checkout import Checkout, this_checkout
from .errors import ClusterError


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="tare-cluster", description="The embedded virtual Slurm cluster on this machine.")
    commands = top.add_subparsers(dest="command", required=True)
    start = commands.add_parser("up", help="start the cluster, or repair it; does nothing when all is well")
    start.add_argument("--nodes", type=_nodes, help="compute nodes (default: as running, else the site file's)")
    start.add_argument("--site", type=Path, default=this_checkout().site_file, help="another site file than embedded.yaml")
    commands.add_parser("down", help="remove everything but the images")
    commands.add_parser("status", help="show nodes, Slurm, swarm, networks")
    commands.add_parser("shell", help="a login shell on the login node, in the checkout")
    run = commands.add_parser("exec", help="run a command in a node, in the checkout")
    run.add_argument("--node", default="login")
    run.add_argument("--user", default="tare")
    run.add_argument("argv", nargs="+", metavar="COMMAND")
    build = commands.add_parser("images", help="build the images that are missing or older than their recipes")
    build.add_argument("userlands", nargs="*", help="of containers/userlands.ini: theirs, put into the running cluster")
    commands.add_parser("clean", help="down, and remove the images too")
    return top


def _nodes(text: str) -> int | None:
    """make passes NODES on also when nobody gave it."""
    return int(text) if text else None


def main() -> int:
    options = parser().parse_args()
    engine.use_local_engine()
    if options.command == "status":
        return status.status()
    if options.command == "shell":
        return _in_node("login", "tare", ["bash", "--login"])
    if options.command == "exec":
        return _in_node(options.node, options.user, options.argv)
    checkout = this_checkout()
    with checkout.locked():
        _change(checkout, options)
    return 0


def _change(checkout: Checkout, options: argparse.Namespace) -> None:
    if options.command == "up":
        up.up(checkout, options.nodes, options.site)
    elif options.command == "down":
        down.down(checkout)
    elif options.command == "images":
        engine.ensure(checkout)
        make_images(checkout, options.userlands)
    else:
        down.clean(checkout)


def make_images(checkout: Checkout, names: list[str]) -> None:
    """The images every cluster has; or those of some userlands, and puts these into the registry of a cluster that runs."""
    if not names:
        images.ensure(checkout)
        return
    wanted = images.images_of(checkout, names)
    images.ensure_built(wanted, checkout)
    if any(found.name == containers.LOGIN and found.state == "running" for found in containers.present()):
        site = sitefile.read(checkout.site_file, checkout, images.node_image(checkout).tag)
        for image in wanted:
            images.push(image, containers.LOGIN, site.registry)


def _in_node(node: str, user: str, command: list[str]) -> int:
    container = status.container_of(node)
    if os.isatty(0) and os.isatty(1):
        return subprocess.run(argv.node_exec(container, command, user, ("--interactive", "--tty")), check=False).returncode
    return _without_terminal(container, user, command)


# To all processes of one `exec`, as a terminal does it; they are known by their environment.
SIGNAL = 'for p in /proc/[0-9]*; do ! grep -qsz "^TARE_EXEC=$0$" "$p/environ" || kill "-$1" "${p#/proc/}"; done'


def _without_terminal(container: str, user: str, command: list[str]) -> int:
    """Docker hands on no signal: without this, Ctrl-C on `make run | tee log` would leave snakemake running in the node."""
    mark = secrets.token_hex(8)
    flags = ("--interactive", "--env", f"TARE_EXEC={mark}")
    child = subprocess.Popen(argv.node_exec(container, command, user, flags), start_new_session=True)

    def hand_on(number: int, _frame: object) -> None:
        subprocess.run(argv.node_exec(container, ["bash", "-c", SIGNAL, mark, str(number)], user), check=False)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, hand_on)
    return child.wait()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("cluster: interrupted; make up goes on from here, make down cleans up\n")
        sys.exit(130)
