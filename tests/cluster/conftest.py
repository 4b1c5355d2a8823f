"""Without a Slurm cluster these tests skip on a laptop and fail in CI."""

import os
from collections.abc import Callable, Iterator

import pytest
from studies import Study, no_cluster


@pytest.fixture(scope="session", autouse=True)
def cluster() -> None:
    """A Slurm cluster with nodes that take jobs."""
    reason = no_cluster()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def new_study(cluster: None) -> Iterator[Callable[..., Study]]:
    """Makes studies; all of them are cleared at the module's end."""
    del cluster
    made: list[Study] = []

    def make(name: str, **changes: object) -> Study:
        made.append(Study(name, **changes))
        return made[-1]

    yield make
    for study in made:
        study.clear()
