import html.parser
import json
import re

import pytest
from analysis_data import campaign, cell, row, with_pingpong
from test_figures import AWKWARD
from test_stats import BLOCK, one_block

from tare import report
from tare.facts import accounts


class Page(html.parser.HTMLParser):
    """Just enough of a browser: tables as text, ids, addresses asked for, tags left open."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.links, self.rows = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open or "script" in self.open:
            return
        self.words += data.split()
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] = f"{self.rows[-1][-1]} {' '.join(data.split())}".strip()


@pytest.fixture(scope="module")
def page():
    return Page(report.render(*with_pingpong(*campaign()), {}))


def test_every_tag_is_closed(page):
    assert page.open == []


def test_the_page_opens_from_disk_and_asks_nobody(page):
    assert [link for link in page.links if re.match(r"(https?:)?//", link)] == []
    assert all(link.startswith(("data:", "records/", "#")) or "/" not in link for link in page.links)


def test_the_first_table_adds_up(page):
    head, cells, repeats = page.rows[:3]
    assert head == ["", "planned", "measured", "failed", "skipped", "missing", "extra", "adds up"]
    assert cells == ["cells", "45", "45", "0", "0", "0", "0", "yes"]
    assert repeats == ["repeats in these cells", "225", "225", "0", "0", "0", "0", "yes"]


def test_every_counted_cell_has_an_overhead(page):
    found = [value for line in page.rows for value in line if re.search(r"^[+−]?\d+\.\d % ", value)]
    assert len(found) >= 36


def test_the_answer_names_every_backend(page):
    text = " ".join(page.words)
    for backend in ("singularity", "docker-host", "docker-macvlan", "docker-overlay"):
        assert f"{backend}: " in text


def test_the_latency_stands_beside(page):
    text = " ".join(page.words)
    assert "pingpong: half_round_trip_s, beside the apps" in text
    assert "µs" in text


@pytest.mark.parametrize(
    "needed",
    [
        "oversubscribed",
        "virtual: true",
        "mpirun -np 4 --wrap=docker-overlay build/spmd",
        "docker run",
        "sha256:b1b1",
        "@sha256:c2c2",
    ],
)
def test_the_page_says(page, needed):
    assert needed in " ".join(page.words)


@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_data_never_show_as_nan_or_none(case):
    page = Page(report.render(*AWKWARD[case], {}))
    shown = {word.strip("()%,.;:").lower() for word in page.words}
    assert not shown & {"nan", "none", "<na>", "inf", "nat"}


def test_a_failed_repeat_is_listed_with_its_reason():
    measurements, facts = one_block({"native": [1.0, 1.0], "docker-host": [1.1, None]})
    measurements.loc[measurements["status"] == "failed", "reason"] = "exit code 3: wrong answer"
    page = Page(report.render(measurements, facts, {}))
    assert any("exit code 3: wrong answer" in line for line in page.rows)


def test_a_skipped_cell_is_listed_with_its_reason():
    measurements, facts = one_block({"native": [1.0, 1.0], "docker-host": [1.1, 1.2]})
    facts["cells"].append(cell(BLOCK, "docker-overlay", 2, 2, [], skipped="site 'pretend' has no overlay", argv=None))
    page = Page(report.render(measurements, facts, {}))
    assert ["docker-overlay", "site 'pretend' has no overlay", BLOCK] in page.rows
    assert page.rows[1] == ["cells", "3", "2", "0", "1", "0", "0", "yes"]
    assert page.rows[2] == ["repeats in these cells", "6", "4", "0", "2", "0", "0", "yes"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"measured": 3, "failed": 1}, (5, 3, 1, 0, 1, 0)),
        ({"measured": 8}, (5, 8, 0, 0, 0, 3)),
        ({"measured": 0, "skipped": "no runtime"}, (5, 0, 0, 5, 0, 0)),
        ({"measured": 2, "skipped": "docker died"}, (5, 2, 0, 3, 0, 0)),
        ({"measured": 0, "failed": 5}, (5, 0, 5, 0, 0, 0)),
        ({"measured": 0}, (5, 0, 0, 0, 5, 0)),
    ],
)
def test_accounts_add_up_whatever_happened(change, expected):
    facts = {"cells": [cell(BLOCK, "docker-host", 2, 5, [], **change)]}
    cells, repeats = accounts(facts)
    assert (repeats.planned, repeats.measured, repeats.failed, repeats.skipped, repeats.missing, repeats.extra) == expected
    assert repeats.adds_up
    assert cells.adds_up
    assert cells.planned == 1


def test_text_from_outside_is_escaped():
    measurements, facts = one_block({"native": [1.0, 1.0], "docker-host": [1.1, None]})
    measurements.loc[measurements["status"] == "failed", "reason"] = "<script>alert(1)</script>"
    assert "<script>alert" not in report.render(measurements, facts, {})


def test_the_command_writes_the_report(tmp_path):
    measurements, facts = one_block({"native": [1.0, 1.1], "docker-host": [1.2, 1.3]})
    measurements.to_csv(tmp_path / "m.csv", index=False)
    (tmp_path / "s.json").write_text(json.dumps(facts))
    argv = ["--measurements", str(tmp_path / "m.csv"), "--study", str(tmp_path / "s.json"), "-o", str(tmp_path / "report.html")]
    assert report.main(argv) == 0
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys):
    measurements, facts = one_block({"native": [1.0], "docker-host": [1.1]})
    measurements.to_csv(tmp_path / "m.csv", index=False)
    (tmp_path / "s.json").write_text(json.dumps(facts))
    (tmp_path / "blocked").write_text("a file")
    argv = [
        "--measurements",
        str(tmp_path / "m.csv"),
        "--study",
        str(tmp_path / "s.json"),
        "-o",
        str(tmp_path / "blocked" / "r.html"),
    ]
    assert report.main(argv) == 1
    said = capsys.readouterr().err
    assert "r.html: cannot be written" in said
    assert said.count("\n") == 1


def test_rows_are_made_up():
    assert row(BLOCK, "native", 2, 1, 1.0)["hosts"] == "a1 a2"
