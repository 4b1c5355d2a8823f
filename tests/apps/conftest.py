"""One Bench for all app tests; without an MPI the tests skip on a laptop and fail in CI."""

import os

import pytest
from appbench import Bench, missing_tools


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    missing = missing_tools()
    if missing:
        reason = f"not on PATH: {', '.join(missing)}; install Open MPI and its compiler wrappers"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return Bench(tmp_path_factory.mktemp("apps"))
