"""The pins of pyproject.toml, which is the one place for them: what the project needs, then its dev group.

Read line by line, because Python before 3.11 has no parser for TOML; a test compares the answer with a real parser's. An edit
of anything else in that file must not build the node image anew.
"""

from __future__ import annotations

import re

LISTS = {("project", "dependencies"), ("dependency-groups", "dev")}
_TABLE = re.compile(r"^\[([^\[\]]+)\]\s*$")
_LIST = re.compile(r"^([\w-]+)\s*=\s*\[\s*$")
_ITEM = re.compile(r'^\s+"([^"]+)",?\s*(#.*)?$')


def pins(pyproject: str) -> list[str]:
    """Requirements as pip reads them, in the file's order."""
    found: list[str] = []
    table, inside = "", False
    for line in pyproject.splitlines():
        if match := _TABLE.match(line):
            table, inside = match.group(1), False
        elif match := _LIST.match(line):
            inside = (table, match.group(1)) in LISTS
        elif line.startswith("]"):
            inside = False
        elif inside and (match := _ITEM.match(line)):
            found.append(match.group(1))
    return found
