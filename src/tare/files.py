"""Whole files or nothing: a reader never sees half of one, whatever kills the writer."""

import contextlib
import os
from pathlib import Path

from tare.errors import TareError


def save(path: Path, content: str | bytes) -> None:
    """Write a file whole, safely on disk and under its name at once; a disk that refuses is a TareError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise TareError(f"{path}: cannot be written: {error.strerror}; check the folder and the disk") from error
