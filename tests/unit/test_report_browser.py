"""The report in a real browser: no error, every figure drawn, tables sort, nothing asked of the network."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest
from analysis_data import tour

from tare import report

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--virtual-time-budget=20000"),
)
PROBE = """
<script>
const faults = [];
addEventListener('error', event => faults.push(event.message || 'a resource did not load'), true);
addEventListener('load', () => {
  const images = [...document.images];
  const table = document.querySelector('table.sortable');
  const column = () => [...table.tBodies[0].rows].map(row => parseInt(row.cells[1].textContent));
  const head = table.querySelectorAll('th')[1];
  head.click(); const up = column();
  head.click(); const down = column();
  const told = {
    faults, figures: images.length, blank: images.filter(image => !image.naturalWidth).length, up, down,
    asked: performance.getEntriesByType('resource').filter(entry => !entry.name.startsWith('data:')).length,
    wide: document.documentElement.scrollWidth > innerWidth,
  };
  document.body.innerHTML = '<pre id="told">' + JSON.stringify(told) + '</pre>';
});
</script>
"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium here; the page's structure is tested in test_report.py")


def looked_at(page, folder, width):
    path = folder / "report.html"
    path.write_text(page.replace("<head>", "<head>" + PROBE, 1))
    argv = [
        str(BROWSER),
        *QUIET,
        f"--user-data-dir={folder}/profile",
        f"--window-size={width},2000",
        "--dump-dom",
        f"file://{path}",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="told">(\{.*?\})</pre>', done.stdout)
    assert found, done.stdout[:400]
    return unescape(found[1])


@pytest.fixture(scope="module")
def page():
    return report.render(*tour())


@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_works_in_a_browser(page, tmp_path, width):
    told = json.loads(looked_at(page, tmp_path, width))
    assert told["faults"] == []
    assert told["figures"] >= 8
    assert told["blank"] == 0
    assert told["up"] == sorted(told["up"])
    assert told["down"] == sorted(told["down"], reverse=True)
    assert told["asked"] == 0
    assert told["wide"] is False
