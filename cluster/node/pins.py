"""Prints the pins of a pyproject.toml (what the project needs, then its dev group), one requirement per line."""

import sys
import tomllib
from pathlib import Path


def pins(text: str) -> list[str]:
    data = tomllib.loads(text)
    needed: list[str] = data["project"]["dependencies"]
    dev: list[str] = data["dependency-groups"]["dev"]
    return needed + dev


if __name__ == "__main__":
    sys.stdout.write("\n".join(pins(Path(sys.argv[1]).read_text(encoding="utf-8"))) + "\n")
