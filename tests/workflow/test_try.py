"""The rehearsal from the plan to both reports, by Snakemake, with no scheduler, no compiler and no containers."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from browser import told
from checkouts import Checkout, counts

from tare import figures, tables

STUDY = ("--profile", "profiles/local", "--cores", "2", "--config", "study=config/studies/try.yaml")
SMALL = ("repeats=5", "ranks=[4]", "flags=[O3_native]")


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy in which a small rehearsal was run."""
    here = Checkout.make(tmp_path_factory.mktemp("tried") / "tare")
    done = here.snakemake(*STUDY, *SMALL)
    assert done.returncode == 0, done.stderr
    return here


def results(tried: Checkout) -> Path:
    """Its results."""
    return tried.root / "results" / "try"


def test_every_table_figure_and_the_report_are_there(tried: Checkout) -> None:
    expected = {f"tables/{name}{suffix}" for name in tables.names() for suffix in tables.FORMATS}
    expected |= {f"figures/{name}{suffix}" for name in figures.names() for suffix in figures.FORMATS}
    expected |= {"measurements.csv", "metrics.csv", "study.json", "report.html"}
    assert [name for name in sorted(expected) if not (results(tried) / name).is_file()] == []


def test_every_cell_has_its_records_and_every_record_says_that_it_is_made_up(tried: Checkout) -> None:
    plan = json.loads((results(tried) / "plan.json").read_text())
    paths = list(results(tried).glob("records/**/*.jsonl"))
    assert len(paths) == sum(len(block["arms"]) - len(block["skipped"]) for block in plan["blocks"].values())
    records = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    assert len(records) == 5 * len(paths)
    assert all(record["simulated"] for record in records)


def test_when_all_is_done_nothing_is_planned(tried: Checkout) -> None:
    assert counts(tried.snakemake(*STUDY, *SMALL, "-n")) == {}


def test_another_planted_overhead_draws_every_number_anew(tried: Checkout, tmp_path: Path) -> None:
    spare = tried.copy(tmp_path / "tare")
    site = spare.root / "config/sites/simulated.yaml"
    site.write_text(site.read_text().replace("docker-overlay: 1.25", "docker-overlay: 1.5"))
    assert counts(spare.snakemake(*STUDY, *SMALL, "-n"))["measure_block"] == 4


def test_the_summary_says_what_was_planted(tried: Checkout) -> None:
    argv = ("python3", "-m", "tare.summary", "--results", "results/try")
    done = tried.run(*argv, PYTHONPATH=str(tried.root / "src"))
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout
    assert "docker-overlay: slower in 2 of 2 cells" in done.stdout


def test_every_link_of_the_report_leads_to_a_file(tried: Checkout) -> None:
    page = (results(tried) / "report.html").read_text()
    targets = set(re.findall(r'href="([^"#]+)"', page))
    assert [target for target in sorted(targets) if not (results(tried) / target).is_file()] == []
    cells = {str(path.relative_to(results(tried))) for path in results(tried).glob("records/**/*.jsonl")}
    assert {target for target in targets if target.startswith("records/")} == cells


OPENED = """
const faults = [];
addEventListener('error', event => faults.push(event.message || 'a resource did not load'), true);
addEventListener('load', () => setTimeout(() => {
  const words = document.body.innerText;
  document.body.innerHTML = '<pre id="told">' + JSON.stringify({faults, words}) + '</pre>';
}, 500));
"""


def test_snakemakes_own_report_opens_in_a_browser(tried: Checkout, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    done = tried.snakemake(*STUDY, *SMALL, "--report", str(path))
    assert done.returncode == 0, done.stderr
    found = told(path, tmp_path, OPENED)
    assert found["faults"] == []
    assert all(category in found["words"] for category in ("Answer", "Figures", "Tables"))


@pytest.mark.parametrize("name", ["report.html", "report.zip"])
def test_snakemakes_own_report_has_every_figure_and_table_with_its_caption(tried: Checkout, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    done = tried.snakemake(*STUDY, *SMALL, "--report", str(path))
    assert done.returncode == 0, done.stderr
    if name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            held = {Path(entry).name for entry in archive.namelist()}
        assert {f"{figure}.svg" for figure in figures.names()} | {f"{table}.csv" for table in tables.names()} <= held
        return
    page = path.read_text()
    for module, kind in ((figures, "figures"), (tables, "tables")):
        for entry in module.names():
            assert f"{entry}{'.svg' if kind == 'figures' else '.csv'}" in page, entry
    assert "Orange is slower than native" in page  # the heat map's own caption
    assert all(f'"{category}"' in page for category in ("Answer", "Figures", "Tables"))
