"""What all rules share: the study as planned, the names of tables and figures, and where the Python package is."""

import sys
from pathlib import Path

SOURCE = Path(workflow.basedir) / "src"
sys.path.insert(0, str(SOURCE))

from tare.packaged import PACKAGED, PROOF_LIBRARY
from tare.workflow import figure_caption, names, read_or_exit, table_caption

TARE = read_or_exit(config)
TABLES = names("tables")
FIGURES = names("figures")
# What all tables and figures are made with; a table's or figure's own module is an input of its rule alone.
SHARED = [
    f"src/tare/{name}.py"
    for name in (
        "measurements",
        "methods",
        "metrics",
        "profiles",
        "quality",
        "ratios",
        "rounding",
        "stats",
        "system",
        "verdicts",
    )
]

shell.executable("bash")
shell.prefix(f"set -euo pipefail; export PYTHONPATH={SOURCE}; ")

if workflow.is_main_process:
    print(*TARE.drop_stale_stamps(), sep="\n", end="", file=sys.stderr)


wildcard_constraints:
    app="[a-z][a-z0-9_]*",
    toolchain="[^/]+",
    flags="[^/]+",
    layout=r"n\d+r\d+(t\d+)?",
    userland="[^/]+",
    tool="timed|pinned",
    table="[^/]+",
    figure="[^/]+",
