"""What real snakemake plans: job counts, targets, refusals, lint, other sites. Nothing is run here but dry runs."""

import shlex
from typing import Any

import pytest
from checkouts import Checkout, Done, counts, resources
from snakemake_executor_plugin_slurm.submit_string import get_submit_command

from tare.backends import load_backends
from tare.yamlio import ROOT, read_yaml

DATA = ROOT / "tests" / "data"
CELL = "results/default/cells/dac/gcc14/O3_native/n2r1/docker-overlay.json"


@pytest.fixture(scope="module")
def default(checkout: Checkout) -> Done:
    """A dry run of the default study with the profile's bare name, as on a login node."""
    return checkout.snakemake("--profile", "slurm", "-n")


def modules(directory: str) -> int:
    """How many tables or figures there are."""
    return len([path for path in (ROOT / "src" / "tare" / directory).glob("*.py") if not path.name.startswith("_")])


def test_the_default_study_is_ten_blocks_their_builds_and_one_job_for_every_table_and_figure(default: Done) -> None:
    assert counts(default) == {
        **{"build_app": 4, "build_tool": 2, "fetch_image": 1, "build_sif": 1, "plan_study": 1, "measure_block": 10},
        **{"collect_study": 1, "write_table": modules("tables"), "draw_figure": modules("figures")},
        **{"write_report": 1, "all": 1},
    }


def test_a_block_takes_whole_nodes_and_no_more_of_them_than_it_has_processes(default: Done, checkout: Checkout) -> None:
    found = resources(default, "measure_block")
    assert {name: found[name] for name in ("slurm_partition", "slurm_extra", "cpus_per_task", "mem_mb")} == {
        **{
            "slurm_partition": "batch",
            "slurm_extra": "--exclusive --licenses=machine:1 --licenses=machine:2",
            "cpus_per_task": "1",
            "mem_mb": "0",
        },
    }
    assert found["nodes"] == found["tasks"] and "mpi" not in found
    one = resources(checkout.snakemake("--profile", "slurm", "-n", CELL), "measure_block")
    assert (one["nodes"], one["tasks"]) == ("1", "1")


def test_planning_twice_plans_the_same_and_changes_nothing(default: Done, checkout: Checkout) -> None:
    before = checkout.state()
    again = checkout.snakemake("--profile", "slurm", "-n")
    assert counts(again) == counts(default)
    assert checkout.state() == before


def test_the_graph_can_be_drawn(checkout: Checkout) -> None:
    done = checkout.snakemake("--profile", "slurm", "--dag")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("digraph ") and done.stdout.rstrip().endswith("}")
    assert done.stdout.count('[label = "measure_block') == 10


def test_one_cells_stamp_as_the_target_plans_its_block_only(checkout: Checkout) -> None:
    planned = counts(checkout.snakemake("--profile", "slurm", "-n", CELL))
    assert planned == {
        **{"build_app": 1, "build_tool": 2, "fetch_image": 1, "build_sif": 1, "plan_study": 1, "measure_block": 1},
    }


def test_the_local_profile_plans_this_machines_study_without_a_scheduler(checkout: Checkout) -> None:
    done = checkout.snakemake("--profile", "profiles/local", "-n")
    planned = counts(done)
    assert (planned["measure_block"], planned["build_app"]) == (2, 1)
    assert "slurm_partition" not in resources(done, "measure_block")


def test_a_study_of_three_hundred_blocks_is_planned(checkout: Checkout) -> None:
    study = checkout.write_study(
        name="large",
        site="embedded",
        apps={"masterslave": {}},
        toolchains=["gcc14"],
        flags=["O0", "O2", "O3", "O3_native"],
        backends=["native", "singularity", "docker-host", "docker-macvlan", "docker-overlay"],
        nodes=[2],
        ranks=list(range(1, 76)),
        repeats=20,
        seed=1,
    )
    planned = counts(checkout.snakemake("--profile", "slurm", "-n", "-q", "rules", "--configfile", study))
    assert (planned["measure_block"], planned["build_app"], planned["build_sif"]) == (300, 4, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--config", "site=nowhere"],
            "tare: site: unknown site 'nowhere'; known: embedded, kononowicz2022, liu2022, local, simulated;"
            " sites stand in config/sites/",
        ),
        (
            ["--config", "backends=[native, singularty]"],
            "tare: config/config.yaml: backends[1]: unknown backend 'singularty'; did you mean 'singularity'?"
            f" known: {', '.join(sorted(load_backends()))}",
        ),
        (
            ["--config", "ranks=[3]"],
            "tare: config/config.yaml: apps.dac: ranks: found 3; dac needs a power of two: 1, 2, 4, 8, …",
        ),
    ],
    ids=["site", "backend", "ranks"],
)
def test_a_users_mistake_is_one_line_before_anything_starts(checkout: Checkout, arguments: list[str], message: str) -> None:
    before = checkout.state()
    done = checkout.snakemake("--profile", "slurm", *arguments)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if not line.startswith("Using profile")]
    assert (said, done.stdout) == ([message], "")
    assert checkout.state() == before


def test_lint_has_one_complaint_and_that_is_the_rule_in_which_launching_is_measured(checkout: Checkout) -> None:
    done = checkout.snakemake("--lint")
    said = (done.stdout + done.stderr).splitlines()
    assert [line.split()[1:4] for line in said if line.startswith("Lints for ")] == [["for", "rule", "measure_block"]]
    complaints = [line.removeprefix("    * ") for line in said if line.startswith("    * ")]
    assert complaints == ["Specify a conda environment or container for each rule.:"]


# --- another site -------------------------------------------------------------------------------------------------------------


class Resources(dict[str, Any]):
    """Resources as the executor plugin sees them."""

    __getattr__ = dict.__getitem__


class Job:
    """A job as the executor plugin sees it."""

    threads = 1

    def __init__(self, found: dict[str, str]) -> None:
        self.resources = Resources({name: int(value) if value.isdigit() else value for name, value in found.items()})


def submitted(found: dict[str, str]) -> str:
    """The sbatch command that the pinned executor plugin makes of a job's resources, a word to a line."""
    parameters = {
        **{"run_uuid": "run", "slurm_logfile": "log", "comment_str": "block", "workdir": "/project/weigh"},
        **{"account": f"-A {found['slurm_account']}", "partition": f"-p {found['slurm_partition']}"},
    }
    return "\n".join(shlex.split(get_submit_command(Job(found), parameters))) + "\n"


def test_another_sites_jobs_are_submitted_as_written_down(checkout: Checkout) -> None:
    checkout.write_site(**read_yaml(DATA / "sites" / "other.yaml"))
    study = checkout.write_study(
        name="elsewhere",
        site="other",
        apps={"spmd": {}},
        toolchains=["gcc14"],
        flags=["O2"],
        backends=["native", "singularity", "docker-host", "docker-macvlan", "docker-overlay"],
        nodes=[3],
        ranks=[16],
        interconnect="roce",
        repeats=3,
        seed=1,
    )
    done = checkout.snakemake("--profile", "slurm", "-n", "--configfile", study)
    assert submitted(resources(done, "measure_block")) == (DATA / "golden" / "other" / "sbatch-block.txt").read_text()
    assert submitted(resources(done, "build_app")) == (DATA / "golden" / "other" / "sbatch-build.txt").read_text()


def test_a_block_of_compared_toolchains_needs_each_arms_own_program(checkout: Checkout) -> None:
    study = checkout.write_study(
        name="compared",
        site="embedded",
        apps={"dac": {}},
        compare={"toolchains": ["gcc14", "gcc"], "containers_per_node": [1, 2]},
        flags=["O2"],
        backends=["native", "docker-overlay"],
        nodes=[2],
        ranks=[4],
        repeats=2,
        seed=1,
    )
    cell = "results/compared/cells/dac/gcc14+gcc/O2/n2r4/docker-overlay+2ctn+gcc.json"
    planned = counts(checkout.snakemake("--profile", "slurm", "-n", cell, "--configfile", study))
    assert (planned["measure_block"], planned["build_app"], planned["fetch_image"]) == (1, 2, 1)
    assert "build_sif" not in planned


@pytest.mark.parametrize(("name", "blocks"), [("liu2022", 4), ("liu2022-affinity", 3), ("liu2022-embedded", 3)])
def test_the_studies_after_liu_and_guitart_are_planned(checkout: Checkout, name: str, blocks: int) -> None:
    done = checkout.snakemake("--profile", "slurm", "-n", "--config", f"study=config/studies/{name}.yaml")
    assert done.returncode == 0, done.stderr
    assert counts(done)["measure_block"] == blocks


@pytest.mark.parametrize(("name", "blocks", "found"), [("own-program", 4, 4), ("bench-tour", 16, 2)])
def test_packaged_programs_are_found_and_not_built(checkout: Checkout, name: str, blocks: int, found: int) -> None:
    done = checkout.snakemake("--profile", "slurm", "-n", "--config", f"study=config/studies/{name}.yaml")
    assert done.returncode == 0, done.stderr
    planned = counts(done)
    assert (planned["measure_block"], planned["find_program"], planned["build_proof"]) == (blocks, found, 1)
    assert planned.get("build_app", 0) == blocks - found
