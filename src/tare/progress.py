"""``tare run``: snakemake, with a line now and then on how long the rest will take, and the answer at the end."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import yaml

from tare.cases import Block
from tare.config import Mapping, Repeats
from tare.records import Store, read_records
from tare.workflow import Workflow
from tare.yamlio import ROOT, read_yaml

EVERY_S = 10.0
"""As seldom as Snakemake asks Slurm: a look costs CPU time that a block may want."""


def launches_planned(workflow: Workflow) -> int:
    """Return the launches of the whole study, warm-ups included; with adaptive repeats the most there may be."""
    launches: int = workflow.study["warmup"] + Repeats.of(workflow.study["repeats"]).most
    return launches * sum(len(block.runnable) for block in workflow.blocks.values())


def estimate(workflow: Workflow) -> str:
    """Say how many blocks and launches a study has, and how many node hours its launches are expected to take."""
    study, site = workflow.study, workflow.site
    entries = {**study["probes"], **study["apps"]}
    repeats = study["warmup"] + Repeats.of(study["repeats"]).least
    node_s, bounded = 0.0, False
    for block in workflow.blocks.values():
        expected = launch_s(entries[block.setting.app], block, site)
        bounded = bounded or expected is None
        node_s += len(block.setting.slots) * repeats * len(block.runnable) * (expected or study["timeout_s"])
    text = f"{len(workflow.blocks)} blocks, {launches_planned(workflow)} launches, {'at most' if bounded else 'about'}"
    why = "no launch takes longer than timeout_s; apps' one_rank_s makes it closer" if bounded else "launches alone, no builds"
    return f"{text} {node_s / 3600:.1f} node hours ({why})"


def launch_s(entry: Mapping, block: Block, site: Mapping) -> float | None:
    """Return how long a launch is expected to take: the study's time on one rank over the cores that compute, or None."""
    if "one_rank_s" not in entry:
        return None
    cores: int = min(block.setting.ranks, block.setting.nodes * site["cpus_per_node"])
    return float(entry["one_rank_s"]) / cores


def launches_done(workflow: Workflow) -> int:
    """Return how many launches are on record."""
    store = Store(ROOT / workflow.results)
    files = (store.records(setting, arm) for setting in workflow.blocks for arm in workflow.arms)
    return sum(path.read_bytes().count(b"\n") for path in files if path.is_file())


def blocks_done(workflow: Workflow) -> int:
    """Return how many blocks have all their stamps."""
    store = Store(ROOT / workflow.results)
    return sum(all(read_records(store.stamp(setting, arm)) for arm in workflow.arms) for setting in workflow.blocks)


def progress_line(done: int, at_start: int, planned: int, elapsed_s: float) -> str:
    """Say how much is measured, and how long the rest takes at the pace since the start."""
    text = f"tare: {done} of {planned} launches"
    if done > at_start:
        left_s = elapsed_s / (done - at_start) * max(0, planned - done)
        text += f", about {left_s / 60:.0f} min left" if left_s >= 90 else f", about {left_s:.0f} s left"
    return text


def configuration(arguments: list[str]) -> Mapping:
    """Return Snakemake's config as its own arguments give it: files first, single keys over them."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", type=Path, default=[])
    parser.add_argument("--config", "-C", nargs="+", default=[])
    known, _rest = parser.parse_known_args(arguments)
    config: Mapping = {}
    for path in known.configfile:
        config |= read_yaml(path.resolve())
    for pair in known.config:
        key, _, value = pair.partition("=")
        config[key] = yaml.safe_load(value)
    return config


def run(arguments: list[str]) -> int:
    """Run ``snakemake --profile slurm`` with more arguments and show the study's answer; return Snakemake's exit code."""
    workflow = Workflow.read(configuration(arguments))
    dry = bool({"-n", "--dry-run", "--dryrun"} & set(arguments))
    exit_code = watched(workflow, arguments)
    if dry and workflow.blocks:
        print(f"tare: {estimate(workflow)}")
    measured = ROOT / workflow.results / "measurements.csv"
    if exit_code == 0 and measured.is_file() and not dry:
        subprocess.run([sys.executable, "-m", "tare.summary", "--results", workflow.results], cwd=ROOT, check=False)
    return exit_code


def watched(workflow: Workflow, arguments: list[str]) -> int:
    """Run Snakemake, and say now and then how far it is; return its exit code."""
    process = subprocess.Popen(["snakemake", "--profile", "slurm", "--quiet", "rules", *arguments], cwd=ROOT)
    shown, first = launches_done(workflow), None
    while True:
        try:
            return process.wait(timeout=EVERY_S)
        except subprocess.TimeoutExpired:
            done, now = launches_done(workflow), time.monotonic()
            if done == shown:
                continue
            first = first or (now, done)  # what came before the first launches was building: it says nothing of the pace
            line = progress_line(done, first[1], launches_planned(workflow), now - first[0])
            print(f"{line}; {blocks_done(workflow)} of {len(workflow.blocks)} blocks", file=sys.stderr, flush=True)
            shown = done
        except KeyboardInterrupt:
            return process.wait()
