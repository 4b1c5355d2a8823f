"""Copies of the checkout in which the workflow is really run: nothing of the one that is tested is touched."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tare.yamlio import ROOT

PARTS = ("Snakefile", "config", "containers", "profiles", "slurm", "src", "workflow")
OUTER = ("SLURM_", "SRUN_", "PMI", "OMPI_", "PRTE_", "SNAKEMAKE_")
Done = subprocess.CompletedProcess[str]


class Checkout:
    """One copy."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def make(cls, root: Path) -> "Checkout":
        """Copy what the workflow consists of."""
        root.mkdir()
        for part in PARTS:
            source = ROOT / part
            if source.is_dir() and not source.is_symlink():
                shutil.copytree(source, root / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, root / part, follow_symlinks=False)
        return cls(root)

    def copy(self, root: Path) -> "Checkout":
        """Copy it with all that was built and measured in it; times are kept, so that nothing looks newer than it is."""
        shutil.copytree(self.root, root, symlinks=True)
        return Checkout(root)

    def run(self, *argv: str, **environment: str) -> Done:
        """Run a command in it, with nothing of an outer layer in the environment."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OUTER)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        return subprocess.run(
            argv,
            cwd=self.root,
            env=kept | {"PATH": path} | environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def snakemake(self, *arguments: str) -> Done:
        """Run snakemake in it."""
        return self.run("snakemake", *arguments)

    def tare(self, *arguments: str) -> Done:
        """Run one of the verbs that the rules call."""
        return self.run(sys.executable, "-m", "tare.cli", *arguments, PYTHONPATH=str(self.root / "src"))

    def write_study(self, **study: Any) -> str:
        """Write a study; JSON is YAML."""
        path = self.root / "config" / f"{study['name']}.yaml"
        path.write_text(json.dumps(study))
        return str(path)

    def write_site(self, **site: Any) -> None:
        """Write a site file; JSON is YAML."""
        (self.root / "config" / "sites" / f"{site['name']}.yaml").write_text(json.dumps(site))

    def state(self) -> dict[str, tuple[int, int]]:
        """Every file outside Snakemake's own folder, with size and time of its last change."""
        files = (path for path in self.root.rglob("*") if ".snakemake" not in path.parts and "__pycache__" not in path.parts)
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.is_file()}


def counts(done: Done) -> dict[str, int]:
    """How many jobs of each rule a dry run planned; the sum is left out."""
    assert done.returncode == 0, done.stderr
    table = re.search(r"^Job stats:\n.*\n[- ]+\n(.*?)\n\n", done.stdout + done.stderr, flags=re.MULTILINE | re.DOTALL)
    if table is None:
        assert "Nothing to be done" in done.stdout + done.stderr
        return {}
    rows = (line.split() for line in table[1].splitlines())
    return {rule: int(count) for rule, count in rows if rule != "total"}


def resources(done: Done, rule: str) -> dict[str, str]:
    """The resources of a dry run's first job of a rule."""
    job = re.search(rf"^rule {rule}:\n(?:    .*\n)*?    resources: (.*)\n", done.stdout + done.stderr, flags=re.MULTILINE)
    assert job is not None, done.stderr
    return {name: value for name, _, value in (part.partition("=") for part in job[1].split(", "))}
