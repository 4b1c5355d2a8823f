"""What the analysis commands share: their arguments, finding modules by file name, and writing whole files."""

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tare.errors import TareError
from tare.yamlio import suggestion


def parse(prog: str, text: str, argv: list[str], kind: str | None) -> argparse.Namespace:
    """Parse a command line: both files of a study, one or more outputs, and the name of a table or figure."""
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=text)
    if kind:
        parser.add_argument("name", help=f"which {kind}")
    parser.add_argument("--measurements", required=True, type=Path)
    parser.add_argument("--study", required=True, type=Path)
    parser.add_argument("-o", "--output", required=True, type=Path, nargs="+", action="extend", help="one or more files")
    return parser.parse_args(argv)


def guarded(command: Callable[[list[str]], None], argv: list[str]) -> int:
    """Run a command; a user's mistake is one line on stderr and exit code 1."""
    try:
        command(argv)
    except TareError as error:
        print(f"tare: {error}", file=sys.stderr)
        return 1
    return 0


def module_names(package: ModuleType) -> list[str]:
    """Return the tables or figures of a package: its files whose names begin with a letter."""
    return sorted(file.stem for folder in package.__path__ for file in Path(folder).glob("[!_]*.py"))


def load_module(package: ModuleType, name: str, kind: str) -> ModuleType:
    """Import one table or figure by its file name."""
    known = module_names(package)
    if name not in known:
        raise TareError(f"{kind} {name!r}: there is no such {kind}; {suggestion(name, known)}")
    return importlib.import_module(f"{package.__name__}.{name}")


def caption(module: ModuleType) -> str:
    """Return a module's caption: the first paragraph of its docstring."""
    return " ".join((module.__doc__ or "").strip().split("\n\n")[0].split())


def check_suffix(path: Path, known: tuple[str, ...]) -> str:
    """Return an output's format, which its suffix says."""
    if path.suffix not in known:
        raise TareError(f"{path}: unknown format {path.suffix!r}; allowed: {', '.join(known)}")
    return path.suffix


def json_bytes(document: Any) -> bytes:
    """Return a document as readable JSON."""
    return (json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()
