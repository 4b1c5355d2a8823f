"""The cluster's tool is a program of its own beside the package: its folder is added here, for its pure parts."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "cluster"))
