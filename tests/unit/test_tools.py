"""The two small C programs around every launch: `timed` and `pinned`, compiled and really run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tare.node_agent import core
from tare.yamlio import ROOT

COMPILE = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-O2"]
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with both programs."""
    if shutil.which("cc") is None:
        reason = "no C compiler: cc is not on PATH"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("tools")
    for name in ("timed", "pinned"):
        subprocess.run([*COMPILE, "-o", str(directory / name), str(ROOT / "src" / "launch" / f"{name}.c")], check=True)
    return directory


class Timer:
    """Runs `timed` and reads what it wrote."""

    def __init__(self, program: Path, out: Path) -> None:
        self.program, self.out = program, out

    def argv(self, *command: str, timeout_s: str | None = None) -> list[str]:
        limit = [] if timeout_s is None else ["--timeout", timeout_s]
        return [str(self.program), "--out", str(self.out), *limit, "--", *command]

    def run(self, *command: str, timeout_s: str | None = None) -> Done:
        return subprocess.run(self.argv(*command, timeout_s=timeout_s), capture_output=True, text=True, timeout=60, check=False)

    def start(self, *command: str, timeout_s: str | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.argv(*command, timeout_s=timeout_s))

    @property
    def result(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.out.read_text())
        return result


@pytest.fixture
def timer(tools: Path, tmp_path: Path) -> Timer:
    return Timer(tools / "timed", tmp_path / "timed.json")


@pytest.mark.parametrize("code", [0, 3, 77])
def test_the_commands_exit_code_is_passed_on_and_written_down(timer: Timer, code: int) -> None:
    assert timer.run("sh", "-c", f"exit {code}").returncode == code
    assert (timer.result["exit_code"], timer.result["signal"], timer.result["timed_out"]) == (code, 0, False)


def test_the_command_finds_the_instant_of_its_launch(timer: Timer) -> None:
    launched = float(timer.run("printenv", "TARE_LAUNCHED_S").stdout)
    assert launched == pytest.approx(timer.result["started_unix_s"], abs=0.002)


def test_the_file_has_these_numbers_and_no_others(timer: Timer) -> None:
    before = time.time()
    timer.run("true")
    assert set(timer.result) == {"wall_s", "user_s", "sys_s", "exit_code", "signal", "timed_out", "started_unix_s"}
    assert before - 0.01 <= timer.result["started_unix_s"] <= time.time()
    assert timer.result["wall_s"] > 0


def test_wall_time_is_launch_to_exit_and_cpu_time_that_of_the_whole_tree(timer: Timer) -> None:
    timer.run("sh", "-c", "sleep 0.3")
    assert timer.result["wall_s"] >= 0.3 > timer.result["user_s"]
    timer.run("sh", "-c", f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'; true")
    assert timer.result["user_s"] + timer.result["sys_s"] >= 0.3


def test_the_commands_output_passes_through_untouched(timer: Timer) -> None:
    done = timer.run("sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_a_command_that_a_signal_ends_is_written_down_as_such(timer: Timer) -> None:
    assert timer.run("sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL
    assert (timer.result["exit_code"], timer.result["signal"]) == (-1, signal.SIGKILL)


def alive(mark: Path) -> bool:
    """Say whether the process that wrote its number into a file is still there."""
    try:
        os.kill(int(mark.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(mark: Path) -> None:
    """Wait until a process has written its number."""
    deadline = time.monotonic() + 10
    while not (mark.is_file() and mark.read_text().endswith("\n")) and time.monotonic() < deadline:
        time.sleep(0.02)


def gone(mark: Path) -> bool:
    """Say whether a process leaves within five seconds."""
    deadline = time.monotonic() + 5
    while alive(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(mark)


def test_after_the_time_out_the_command_and_its_children_are_gone(timer: Timer, tmp_path: Path) -> None:
    mark = tmp_path / "child"
    done = timer.run("sh", "-c", f"(echo $(exec sh -c 'echo $PPID') > {mark}; exec sleep 60) & wait", timeout_s="0.5")
    assert done.returncode == 124
    assert timer.result["timed_out"] is True and timer.result["wall_s"] >= 0.5
    assert gone(mark)


def test_a_command_that_does_not_heed_sigterm_is_killed_after_a_grace(timer: Timer) -> None:
    done = timer.run("sh", "-c", "trap '' TERM; while :; do sleep 0.2; done", timeout_s="0.2")
    assert done.returncode == 124
    assert timer.result["signal"] == signal.SIGKILL and timer.result["wall_s"] >= 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_timer_reaches_the_command(timer: Timer, tmp_path: Path, number: signal.Signals) -> None:
    mark = tmp_path / "pid"
    process = timer.start("sh", "-c", f"echo $$ > {mark}; exec sleep 60")
    wait_for(mark)
    process.send_signal(number)
    assert process.wait(timeout=20) == 128 + number
    assert timer.result["signal"] == number and timer.result["timed_out"] is False
    assert not alive(mark)


def test_a_command_that_is_not_there_is_said_and_is_127(timer: Timer) -> None:
    done = timer.run("no-such-program")
    assert (done.returncode, done.stderr) == (127, "timed: error: cannot start 'no-such-program': No such file or directory\n")


USAGE = "usage: timed --out FILE [--timeout SECONDS] -- COMMAND [ARGUMENT ...]"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "needs --out, -- and a command"),
        (["--out", "f"], "needs --out, -- and a command"),
        (["--out", "f", "--"], "needs --out, -- and a command"),
        (["--", "true"], "needs --out, -- and a command"),
        (["--out"], "an option lacks its value"),
        (["--put", "f", "--", "true"], "unknown option"),
        (["--out", "f", "--timeout", "0", "--", "true"], "--timeout: needs a number of seconds above 0"),
        (["--out", "f", "--timeout", "5x", "--", "true"], "--timeout: needs a number of seconds above 0"),
        (["--out", "f", "--timeout", "nan", "--", "true"], "--timeout: needs a number of seconds above 0"),
    ],
)
def test_a_wrong_call_of_timed_is_refused_and_runs_nothing(
    tools: Path, tmp_path: Path, arguments: list[str], problem: str
) -> None:
    done = subprocess.run([tools / "timed", *arguments], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"timed: error: {problem}; {USAGE}\n")
    assert not (tmp_path / "f").exists()


def test_a_file_that_cannot_be_written_is_an_error(tools: Path, tmp_path: Path) -> None:
    argv = [tools / "timed", "--out", str(tmp_path / "no" / "f"), "--", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "cannot write" in done.stderr


# --- pinned -------------------------------------------------------------------------------------------------------------------

RANK = "OMPI_COMM_WORLD_LOCAL_RANK"
MASK = [sys.executable, "-c", "import os; print(*sorted(os.sched_getaffinity(0)))"]


def pinned(tools: Path, rank: str | None, *command: str) -> Done:
    """Run a command as a rank of this node."""
    environment = {name: value for name, value in os.environ.items() if name != RANK}
    if rank is not None:
        environment[RANK] = rank
    return subprocess.run([tools / "pinned", *command], capture_output=True, text=True, check=False, env=environment)


def cores() -> list[set[int]]:
    """The CPUs that this process may use, by core, in the order of their first CPU."""
    allowed = os.sched_getaffinity(0)
    found: list[set[int]] = []
    for cpu in sorted(allowed):
        mine = set(core(cpu)) & allowed
        if mine not in found:
            found.append(mine)
    return found


def test_every_local_rank_gets_the_next_core_with_all_its_threads(tools: Path) -> None:
    masks = [pinned(tools, str(rank), *MASK).stdout for rank in range(len(cores()))]
    assert [set(map(int, mask.split())) for mask in masks] == cores()


def test_a_rank_with_threads_gets_as_many_cores(tools: Path) -> None:
    everything = len(cores())
    done = pinned(tools, "0", "--cores", str(everything), *MASK)
    assert set(map(int, done.stdout.split())) == os.sched_getaffinity(0)
    done = pinned(tools, "1", "--cores", str(everything), *MASK)
    assert done.returncode == 2
    plural = "s" if everything > 1 else ""
    assert done.stderr == (
        f"pinned: error: rank 1 of this node cannot have {everything} core{plural} of its own; the node has {everything}\n"
    )


def test_on_threads_every_local_rank_gets_the_next_hardware_thread(tools: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    masks = [pinned(tools, str(rank), "--threads", *MASK).stdout.split() for rank in range(len(cpus))]
    assert masks == [[str(cpu)] for cpu in cpus]


@pytest.mark.parametrize("number", ["0", "-1", "two", ""])
def test_a_number_of_cores_that_is_none_is_refused(tools: Path, number: str) -> None:
    done = pinned(tools, "0", "--cores", number, "true")
    assert (done.returncode, done.stderr) == (2, "pinned: error: --cores: needs a number from 1 on\n")


def test_a_rank_gets_cores_of_those_only_that_its_job_may_use(tools: Path) -> None:
    last = max(os.sched_getaffinity(0))
    done = subprocess.run(
        ["taskset", "--cpu-list", str(last), str(tools / "pinned"), *MASK],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, RANK: "0"},
    )
    assert (done.returncode, done.stdout) == (0, f"{last}\n")


def test_more_ranks_than_cores_are_refused(tools: Path) -> None:
    count = len(cores())
    done = pinned(tools, str(count), "true")
    assert (done.returncode, done.stderr) == (
        2,
        f"pinned: error: rank {count} of this node cannot have 1 core of its own; the node has {count}\n",
    )


@pytest.mark.parametrize("rank", [None, "", "x", "1x", "-1"])
def test_without_a_rank_nothing_is_run(tools: Path, tmp_path: Path, rank: str | None) -> None:
    mark = tmp_path / "ran"
    done = pinned(tools, rank, "touch", str(mark))
    assert done.returncode == 2 and not mark.exists()
    assert done.stderr == f"pinned: error: {RANK} is not set to a number; start it by mpirun\n"


def test_without_a_command_pinned_says_how_it_is_called(tools: Path) -> None:
    done = pinned(tools, "0")
    usage = "pinned [--threads] [--cores N] COMMAND [ARGUMENT ...]"
    assert (done.returncode, done.stderr) == (2, f"pinned: error: no command; usage: {usage}\n")


def test_pinned_becomes_the_command(tools: Path) -> None:
    done = pinned(tools, "0", "sh", "-c", 'echo "$0" "$1"; exit 5', "one", "two words")
    assert (done.returncode, done.stdout, done.stderr) == (5, "one two words\n", "")


def test_a_command_that_cannot_be_started_is_said_and_is_127_for_pinned_too(tools: Path) -> None:
    done = pinned(tools, "0", "no-such-program")
    assert (done.returncode, done.stderr) == (127, "pinned: error: cannot start 'no-such-program': No such file or directory\n")
