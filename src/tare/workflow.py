"""What the Snakemake rules need: the plan, file names as wildcards, resources, and stale stamps removed."""

import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.io import ancient

from tare.cases import Arm, Block, Setting, plan_blocks
from tare.config import Mapping, load_manifests, load_site, load_study, load_toolchains, read_study
from tare.errors import TareError
from tare.packaged import PROOF_LIBRARY
from tare.prepare import block_digests
from tare.records import Store, drop_contradicted, plan_digests
from tare.repeats import rounds_wanted
from tare.yamlio import ROOT


@dataclass(frozen=True)
class Workflow:
    """A study on a site, as the rules see it."""

    config: Mapping
    study: Mapping
    site: Mapping
    toolchains: Mapping
    manifests: dict[str, Mapping]
    blocks: dict[str, Block]

    @classmethod
    def read(cls, config: Mapping) -> "Workflow":
        """Read and plan the study that Snakemake's config names; a user's mistake is a one-line TareError."""
        raw, where = read_study(config)
        if "import" in raw:
            return cls(dict(config), {**raw, "where": where}, {}, {}, {}, {})
        study = load_study(config)
        site, toolchains, manifests = load_site(study["site"]), load_toolchains(), load_manifests(study)
        blocks = plan_blocks(study, site, manifests, toolchains)
        return cls(dict(config), study, site, toolchains, manifests, {block.setting.id: block for block in blocks})

    @property
    def source_rules(self) -> str:
        """The rules that make measurements.csv: published data are imported, everything else is measured."""
        return "workflow/rules/import.smk" if "import" in self.study else "workflow/rules/measure.smk"

    @property
    def imported_files(self) -> list[str]:
        """The study's file and the published data that it names."""
        entries = self.study["import"]
        files = entries if isinstance(entries, list) else [entries]
        return [self.study["where"], *(entry["path"] for entry in files)]

    @property
    def config_json(self) -> str:
        """The config as one word of a command line."""
        return json.dumps(self.config, sort_keys=True)

    @property
    def results(self) -> str:
        """The directory of the study's results."""
        return f"results/{self.study['name']}"

    @property
    def arms(self) -> list[str]:
        """The names of every block's arms."""
        return [arm.name for arm in next(iter(self.blocks.values())).arms]

    def stamps(self) -> list[str]:
        """Return every cell's stamp."""
        return [f"{self.results}/cells/{setting}/{arm}.json" for setting in self.blocks for arm in self.arms]

    def block(self, wildcards: Any) -> Block:
        """Return the block that a rule's wildcards name."""
        return self.blocks[f"{wildcards.app}/{wildcards.toolchain}/{wildcards.flags}/{wildcards.layout}"]

    def block_inputs(self, wildcards: Any) -> list[str]:
        """Return what a block needs built: the app, the timer, the images of its runtimes."""
        if self.site["launch"] == "simulated":
            return []
        block = self.block(wildcards)
        needed = [path for arm in block.runnable for path in self.arm_inputs(arm, block.setting.of(arm))]
        return list(dict.fromkeys(needed))

    def arm_inputs(self, arm: Arm, setting: Setting) -> list[str]:
        """Return what an arm needs built."""
        tools = [f"build/{setting.userland}/{tool}" for tool in ("timed", "pinned")]
        image = {
            "docker": [f"build/images/{setting.userland}.docker.json"],
            "singularity": [f"build/images/{setting.userland}.sif"],
        }
        library = [str(Path(setting.binary).with_name(PROOF_LIBRARY))] if setting.program else []
        profiler = [setting.profiler] if self.study["profile"] else []
        return [setting.built, *library, *tools, *profiler, *image.get(arm.backend.split("-")[0], [])]

    def executable(self, wildcards: Any) -> str:
        """Return the executable of the packaged app that a rule's wildcard names."""
        return str(self.manifests[wildcards.app]["program"]["executable"])

    def plan_of_block(self, wildcards: Any) -> Any:
        """Return the plan, as ancient where the block is complete: a new plan measures only what is missing.

        Not so where a stamp is missing: Snakemake 9 passes over a target, its output missing or not, that nothing but an
        ancient input would bring up to date.
        """
        setting = self.block(wildcards).setting.id
        complete = all(Store(ROOT / self.results).stamp(setting, arm).is_file() for arm in self.arms)
        path = f"{self.results}/plan.json"
        return ancient(path) if complete else path

    def sif_inputs(self, wildcards: Any) -> list[str]:
        """Return what a SIF is built from: the Docker image where the site has one."""
        return [f"build/images/{wildcards.userland}.docker.json"] if "docker" in self.site["runtimes"] else []

    def block_nodes(self, wildcards: Any) -> int:
        """Return the nodes that a block's job takes: no more than have a process to run."""
        return len(self.block(wildcards).setting.slots)

    def slurm(self) -> dict[str, Any]:
        """Return partition, account, time limit and what the site adds to sbatch, as resources of every job."""
        scheduler = self.site.get("scheduler")
        if scheduler is None:
            return {}
        account = {"slurm_account": scheduler["account"]} if scheduler["account"] else {}
        common = {"slurm_partition": scheduler["partition"], "runtime": scheduler["runtime_min"], **account}
        return {**common, "slurm_extra": " ".join(scheduler["sbatch"])}

    def slurm_block(self) -> dict[str, Any]:
        """Return the same for a block's job, which takes its nodes whole and adds what the site asks of blocks alone."""
        scheduler = self.site.get("scheduler")
        if scheduler is None:
            return {}
        whole = ["--exclusive"] if scheduler["exclusive"] else []
        extra = [*whole, *scheduler["sbatch"], *scheduler["sbatch_block"]]
        return {**self.slurm(), "slurm_extra": " ".join(extra)}

    def config_files(self) -> list[str]:
        """Return the files that the plan was read from."""
        study = [] if "apps" in self.config else [self.study["where"]]
        apps = sorted({block.setting.app for block in self.blocks.values()} - set(self.study.get("programs", {})))
        manifests = [f"src/apps/{app}.yaml" for app in apps]
        discovered = [path for path in [self.site.get("discovered")] if path and (ROOT / path).is_file()]
        return [*study, f"config/sites/{self.study['site']}.yaml", *discovered, "config/toolchains.yaml", *manifests]

    def drop_stale_stamps(self) -> list[str]:
        """Remove stamps that contradict their records or the plan, so that plain ``snakemake`` does what is missing."""
        store = Store(ROOT / self.results)
        dropped = []
        for block in self.blocks.values():
            digests = block_digests(block, self.site)
            rounds = rounds_wanted(store, block, block.runnable, plan_digests(block, digests), self.study)
            profiles = () if self.site["launch"] == "simulated" else self.study["profile"]
            dropped += drop_contradicted(store, block, digests, rounds, profiles)
        return dropped


def read_or_exit(config: Mapping) -> Workflow:
    """Read the workflow for the Snakefile; a user's mistake ends it with one line and no traceback."""
    try:
        return Workflow.read(config)
    except TareError as error:
        raise SystemExit(f"tare: {error}") from None


def caption(kind: str, name: str) -> str:
    """Return what a table's or figure's module says of it, for Snakemake's own report; nothing is imported for it."""
    module = ast.parse((Path(ROOT) / "src" / "tare" / kind / f"{name}.py").read_text(encoding="utf-8"))
    return ast.get_docstring(module) or ""


def table_caption(wildcards: Any) -> str:
    """Return the caption of the table that a rule's wildcard names."""
    return caption("tables", wildcards.table)


def figure_caption(wildcards: Any) -> str:
    """Return the caption of the figure that a rule's wildcard names."""
    return caption("figures", wildcards.figure)


def names(directory: str) -> list[str]:
    """Return the modules of a package directory below src/tare: one table or figure each."""
    found = (Path(ROOT) / "src" / "tare" / directory).glob("[!_]*.py")
    return sorted(path.stem for path in found)
