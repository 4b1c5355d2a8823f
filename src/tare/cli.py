"""``python -m tare.cli``: the verbs that the rules call."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from tare.build import further_userlands
from tare.build import main as build
from tare.cases import plan_document
from tare.config import load_manifests, load_site, load_study, load_toolchains, read_study
from tare.errors import TareError
from tare.files import save
from tare.images import main as image
from tare.progress import configuration, run
from tare.runner import measure_block
from tare.simulate import SESSIONS


def plan(argv: list[str]) -> None:
    """Write down what will be measured, in which order, before anything runs."""
    parser = argparse.ArgumentParser(prog="tare plan", description=plan.__doc__)
    parser.add_argument("--config", required=True, help="Snakemake's config, as JSON")
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args(argv)
    study = load_study(json.loads(arguments.config))
    document = plan_document(study, load_site(study["site"]), load_manifests(study), load_toolchains())
    save(arguments.out.resolve(), json.dumps(document, indent=1) + "\n")


def measure(argv: list[str]) -> None:
    """Measure what is missing of one block."""
    parser = argparse.ArgumentParser(prog="tare measure", description=measure.__doc__)
    parser.add_argument("--plan", required=True, type=Path)
    parser.add_argument("--block", required=True)
    arguments = parser.parse_args(argv)
    measure_block(arguments.plan.resolve(), arguments.block, SESSIONS)


def userlands(argv: list[str]) -> None:
    """Print the userlands whose images a study needs and not every cluster has; arguments as for snakemake (--config …)."""
    config = configuration(argv)
    if "import" not in read_study(config)[0]:
        study = load_study(config)
        print(*further_userlands(study, load_site(study["site"]), load_toolchains()))


VERBS: dict[str, Callable[[list[str]], int | None]] = {
    "run": run,
    "plan": plan,
    "userlands": userlands,
    "image": image,
    "build": build,
    "measure": measure,
}


def main(argv: list[str]) -> int:
    """Run one verb; a user's mistake is one line on stderr and exit code 1."""
    if not argv or argv[0] not in VERBS:
        print(f"tare: error: found {argv[:1]}; verbs: {', '.join(VERBS)}", file=sys.stderr)
        return 2
    try:
        return VERBS[argv[0]](argv[1:]) or 0
    except TareError as error:
        print(f"tare: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
