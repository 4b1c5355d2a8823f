"""Reading YAML and holding it against a closed schema, with one-line errors."""

import difflib
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from tare.errors import TareError

ROOT = Path(__file__).resolve().parents[2]
"""The checkout; every path that a user meets is relative to it."""

SCHEMAS = ROOT / "workflow" / "schemas"


def shown(path: Path) -> str:
    """Return ``path`` as users write it: relative to the checkout where it is inside."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def read_yaml(path: Path) -> Any:
    """Read one YAML file; a missing or malformed one is a TareError."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TareError(f"{shown(path)}: cannot be read: {error.strerror}; check the name") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "malformed"
        raise TareError(f"{shown(path)}:{line} not YAML: {problem}; mend that line") from error


def check(value: Any, schema_name: str, where: str) -> None:
    """Raise a one-line TareError when ``value`` does not fit ``<schema_name>.schema.yaml``."""
    schema = read_yaml(SCHEMAS / f"{schema_name}.schema.yaml")
    error = best_match(Draft202012Validator(schema).iter_errors(value))
    if error is not None:
        raise TareError(f"{where}: {describe(error)}")


def describe(error: ValidationError) -> str:
    """Say in one line where a value is wrong, what was found, and what is allowed."""
    allowed: Any = error.validator_value
    schema: Any = error.schema
    path = key_path(list(error.absolute_path))
    at = f"{path}: " if path else ""
    found: Any = error.instance
    if error.validator == "additionalProperties":
        known = sorted(schema.get("properties", {}))
        extra = next(str(key) for key in found if key not in known)
        return f"{at}unknown key {extra!r}; {suggestion(extra, known)}"
    if error.validator == "enum":
        return f"{at}{found!r} is not one of: {', '.join(map(str, allowed))}"
    if error.validator == "required":
        missing = next(key for key in allowed if key not in found)
        return f"{at}missing key {missing!r}; add it"
    if error.validator == "type":
        return f"{at}found {found!r}; must be of type {allowed if isinstance(allowed, str) else ' or '.join(allowed)}"
    return f"{at}{' '.join(error.message.split())}"


def key_path(parts: list[str | int]) -> str:
    """Write a path into a document as ``backends[1].name``."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def suggestion(found: str, known: list[str]) -> str:
    """List what is known, the likeliest first when ``found`` looks like a slip of the pen."""
    close = difflib.get_close_matches(found, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(known)}"
