"""Runs commands and tells people what happens."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .errors import ClusterError

T = TypeVar("T")
R = TypeVar("R")
STARTED = time.monotonic()


def say(text: str) -> None:
    sys.stdout.write(f"[{time.monotonic() - STARTED:6.1f} s] {text}\n")
    sys.stdout.flush()


def run(argv: list[str], stdin: bytes | None = None) -> str:
    """Its output, or an error that names the command and shows what it said."""
    done = subprocess.run(argv, input=stdin, capture_output=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise ClusterError(f"{' '.join(argv[:3])}: exit code {done.returncode}: {said or 'no message'}; {' '.join(argv)}")
    return done.stdout.decode(errors="replace")


def run_visibly(argv: list[str], env: dict[str, str] | None = None) -> None:
    """For commands that take long: their output is the progress."""
    code = subprocess.run(argv, env=env, check=False).returncode
    if code != 0:
        raise ClusterError(f"{' '.join(argv[:3])}: exit code {code}: see its output above; {' '.join(argv)}")


def succeeds(argv: list[str], timeout: float | None = None) -> bool:
    try:
        return subprocess.run(argv, capture_output=True, timeout=timeout, check=False).returncode == 0
    except (subprocess.TimeoutExpired, FileNotFoundError):
        return False


def lines(argv: list[str]) -> list[str]:
    return [line for line in run(argv).splitlines() if line]


def parallel(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """All at once, results in order; the first error is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=32) as pool:
        return list(pool.map(work, items))


def wait_for(what: str, seconds: float, ask: Callable[[], T | None], then: str) -> T:
    """Asks until there is an answer; conditions are waited for, never times."""
    end = time.monotonic() + seconds
    while (answer := ask()) is None:
        if time.monotonic() > end:
            raise ClusterError(f"cluster: {what}: not after {seconds:.0f} s; {then}")
        time.sleep(0.1)
    return answer


def wait_until(what: str, seconds: float, condition: Callable[[], bool], then: str) -> None:
    wait_for(what, seconds, lambda: condition() or None, then)
