"""The report in a real browser: no error, every figure drawn, tables sort, nothing asked of the network, printable."""

from pathlib import Path

import pytest
from analysis_data import tour
from browser import browse, told

from tare import report

PROBE = """
const faults = [];
addEventListener('error', event => faults.push(event.message || 'a resource did not load'), true);
addEventListener('load', () => {
  const images = [...document.images];
  const table = document.querySelector('table.sortable');
  const column = () => [...table.tBodies[0].rows].map(row => parseInt(row.cells[1].textContent));
  const head = table.querySelectorAll('th')[1];
  head.click(); const up = column();
  head.click(); const down = column();
  const found = {
    faults, figures: images.length, blank: images.filter(image => !image.naturalWidth).length, up, down,
    asked: performance.getEntriesByType('resource').filter(entry => !entry.name.startsWith('data:')).length,
    wide: document.documentElement.scrollWidth > innerWidth,
  };
  document.body.innerHTML = '<pre id="told">' + JSON.stringify(found) + '</pre>';
});
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report.render(*tour()), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1200, 400])
def test_the_page_works_in_a_browser(page, tmp_path, width):
    found = told(page, tmp_path, PROBE, f"--window-size={width},2000")
    assert found["faults"] == []
    assert found["figures"] >= 8
    assert found["blank"] == 0
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["down"], reverse=True)
    assert found["asked"] == 0
    assert found["wide"] is False


def test_the_page_prints_on_more_than_one_sheet(page, tmp_path):
    paper = Path(tmp_path) / "report.pdf"
    browse(page, tmp_path, f"--print-to-pdf={paper}")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") > 2
