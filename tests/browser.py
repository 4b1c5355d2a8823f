"""A real browser without a screen, for what only a browser can tell of a page."""

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--virtual-time-budget=20000"),
)


def need_browser() -> str:
    """Return the browser; without one a test is skipped on a laptop and fails in CI."""
    if BROWSER is None:
        reason = f"none of {', '.join(NAMES)} is here"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return BROWSER


def browse(page: Path, folder: Path, *options: str) -> str:
    """Open a page; return its document when all its scripts have run."""
    argv = [need_browser(), *QUIET, f"--user-data-dir={folder}/profile", *options, f"file://{page}"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout


def told(page: Path, folder: Path, probe: str, *options: str) -> Any:
    """Open a page with a script of ours before its own; return what the script left in ``<pre id="told">`` as JSON."""
    probed = folder / f"probed-{page.name}"
    probed.write_text(page.read_text(encoding="utf-8").replace("<head>", f"<head><script>{probe}</script>", 1), encoding="utf-8")
    document = browse(probed, folder, "--dump-dom", *options)
    found = re.search(r'<pre id="told">(\{.*?\})</pre>', document, re.DOTALL)
    assert found, document[:400]
    return json.loads(unescape(found[1]))
