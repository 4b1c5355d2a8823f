"""The checkout, and what Tare remembers in its .tare folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# The job user's id in the nodes when root owns the checkout; the nodes' mount maps it to root (tare-node: ensure_checkout).
UNPRIVILEGED = (1000, 1000)


@dataclass(frozen=True)
class Checkout:
    root: Path

    @property
    def state(self) -> Path:
        return self.root / ".tare"

    @property
    def site_file(self) -> Path:
        return self.root / "config/sites/embedded.yaml"

    @property
    def owner(self) -> tuple[int, int]:
        found = self.root.stat()
        return found.st_uid, found.st_gid

    @property
    def root_owned(self) -> bool:
        return self.owner[0] == 0

    @property
    def job_user(self) -> tuple[int, int]:
        return UNPRIVILEGED if self.root_owned else self.owner

    def folder(self, name: str) -> Path:
        """A folder below .tare that belongs to the checkout's owner, like everything else in it."""
        path = self.state
        for part in ("", *Path(name).parts):
            path = path / part
            if not path.is_dir():
                path.mkdir()
                os.chown(path, *self.owner)
        return path

    def write(self, name: str, text: str) -> None:
        path = self.folder(str(Path(name).parent)) / Path(name).name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            os.chown(path, *self.owner)

    def read(self, name: str) -> str | None:
        path = self.state / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One `up` or `down` at a time; a second one waits for the first."""
        self.write("lock", "")
        with (self.state / "lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def forget(self, name: str) -> None:
        (self.state / name).unlink(missing_ok=True)


def this_checkout() -> Checkout:
    return Checkout(Path(__file__).resolve().parents[2])
