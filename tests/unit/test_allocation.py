"""The job's nodes, the line to each node's agent, and who is still alive."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from planning import DATA, embedded, other

from tare.allocation import Allocation, NodeLink, agent_argv, ask_all, clean_environment, find_allocation, is_alive, node_names
from tare.errors import TareError
from tare.records import Holder

LOCAL = {"launch": "local", "name": "here", "cpus_per_node": 1}
HERE = Allocation(None, (socket.gethostname(),))


def test_the_node_list_is_read_from_a_real_line_of_scontrol() -> None:
    assert node_names((DATA / "scontrol" / "running-job.txt").read_text()) == "node[01-02]"


def test_a_job_that_does_not_run_yet_has_no_nodes() -> None:
    with pytest.raises(TareError, match=r"^scontrol show job: no NodeList; is the job running\?$"):
        node_names((DATA / "scontrol" / "pending-job.txt").read_text())


def test_without_a_scheduler_the_block_runs_here() -> None:
    assert find_allocation(LOCAL, 1) == HERE


def test_outside_a_job_the_user_is_told_which_profile_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(TareError) as caught:
        find_allocation(embedded(), 2)
    assert str(caught.value) == "measure: not inside a Slurm job; site 'embedded' launches by 'ssh'; use --profile slurm"


def test_a_session_is_named_after_its_job() -> None:
    assert Allocation("4711", ("a", "b")).session == "slurm4711"


def test_two_runs_on_this_machine_have_different_session_names() -> None:
    program = "from tare.allocation import Allocation; print(Allocation(None, ('here',)).session)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    names = {subprocess.check_output([sys.executable, "-c", program], text=True, env=environment) for _ in range(2)}
    assert len(names) == 2 and all(name.startswith("local") for name in names)


def test_an_outer_layers_variables_do_not_reach_what_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SRUN_DEBUG", "PMIX_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "PRTE_MCA_x", "SLURM_CONF", "TZ"):
        monkeypatch.setenv(name, "x")
    kept = clean_environment()
    assert {name for name in kept if name.startswith(("SLURM", "SRUN", "PMI", "OMPI", "PRTE"))} == {"SLURM_CONF"}
    assert kept["TZ"] == "x"


def test_an_agent_is_started_by_srun_with_the_nodes_cpus_and_here_without() -> None:
    agent = [sys.executable, "-m", "tare.node_agent"]
    assert agent_argv(other(), Allocation("990017", ("c17", "c18")), "c18") == [
        *("srun", "--jobid=990017", "--overlap", "--nodes=1", "--ntasks=1", "--cpus-per-task=8"),
        *("--cpu-bind=none", "--mpi=none", "--unbuffered", "--nodelist=c18", *agent),
    ]
    assert agent_argv(LOCAL, HERE, "here") == agent


# --- who is alive -------------------------------------------------------------------------------------------------------------


def holder(pid: int, host: str | None = None) -> Holder:
    """A holder without a scheduler."""
    return Holder("local1", None, host or socket.gethostname(), pid)


def test_this_process_is_alive() -> None:
    assert is_alive(holder(os.getpid()))


def test_a_process_that_ended_is_dead() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert not is_alive(holder(process.pid))


def test_a_process_of_another_user_is_alive() -> None:
    assert is_alive(holder(1))


def test_a_process_of_another_host_is_taken_for_alive() -> None:
    assert is_alive(holder(os.getpid(), "elsewhere"))


# --- the agent, really run ----------------------------------------------------------------------------------------------------


@pytest.fixture
def link() -> Iterator[NodeLink]:
    """An agent of this machine."""
    link = NodeLink("here", agent_argv(LOCAL, HERE, "here"))
    yield link
    link.close()


def wait_for(condition: Callable[[], bool]) -> bool:
    """Say whether something comes true within ten seconds."""
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_an_agent_says_what_its_node_is(link: NodeLink) -> None:
    hello = link.ask("hello")
    assert hello["hostname"] == socket.gethostname()
    assert hello["cpus"] == sorted(os.sched_getaffinity(0))
    assert {cpu for core in hello["cores"] for cpu in core} >= set(hello["cpus"])
    members = [cpu for socket in hello["sockets"] for core in socket["cores"] for cpu in core]
    assert sorted(members) == hello["cpus"]
    assert hello["user"] == f"{os.getuid()}:{os.getgid()}"
    assert hello["ns"]["net"] == str(Path("/proc/self/ns/net").readlink()).strip("net:[]")


@pytest.mark.parametrize(
    ("argv", "text", "answer"),
    [
        (["sh", "-c", "echo out; echo err >&2; exit 7"], "", {"exit_code": 7, "stdout": "out\n", "stderr": "err\n"}),
        (["cat"], "said\n", {"exit_code": 0, "stdout": "said\n", "stderr": ""}),
        (["no-such-program"], "", {"exit_code": 127, "stdout": "", "stderr": "no-such-program: not found"}),
        (["/etc/passwd"], "", {"exit_code": 126, "stdout": "", "stderr": "/etc/passwd: not permitted"}),
        (["sleep", "60"], "", {"exit_code": 124, "stdout": "", "stderr": "sleep: no end after 1 s"}),
    ],
    ids=["exit-code", "stdin", "missing", "no-program", "too-long"],
)
def test_an_agent_runs_a_command_to_its_end(link: NodeLink, argv: list[str], text: str, answer: dict[str, object]) -> None:
    assert link.ask("run", argv=argv, timeout_s=1, text=text) == answer


def test_an_agents_busy_time_does_not_run_backwards(link: NodeLink) -> None:
    before, after = link.ask("busy")["busy_s"], link.ask("busy")["busy_s"]
    assert 0 < before <= after


def hold_cat(link: NodeLink, directory: Path) -> int:
    """Have the agent hold a `cat`; return its process number."""
    mark = directory / "pid"
    link.ask("hold", name="arm", argv=["sh", "-c", f"echo $$ > {mark}; exec cat"], log=str(directory / "log"))
    assert wait_for(lambda: mark.is_file() and mark.read_text().endswith("\n"))
    return int(mark.read_text())


def test_what_an_agent_holds_lives_until_it_is_released(link: NodeLink, tmp_path: Path) -> None:
    pid = hold_cat(link, tmp_path)
    assert link.ask("held_ended", name="arm") == {"exit_code": None}
    assert Path(f"/proc/{pid}").exists()
    link.ask("release")
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("end", ["close", "SIGTERM", "SIGKILL"])
def test_what_an_agent_holds_goes_with_it_however_it_ends(tmp_path: Path, end: str) -> None:
    link = NodeLink("here", agent_argv(LOCAL, HERE, "here"))
    pid = hold_cat(link, tmp_path)
    {"close": link.close, "SIGTERM": link.process.terminate, "SIGKILL": link.process.kill}[end]()
    assert wait_for(lambda: not Path(f"/proc/{pid}").exists())
    link.close()


def test_a_command_that_cannot_be_held_is_an_error_of_the_answer(link: NodeLink, tmp_path: Path) -> None:
    answer = link.ask("hold", name="arm", argv=["no-such-program"], log=str(tmp_path / "log"))
    assert answer == {"error": "no-such-program: No such file or directory"}


def test_a_held_command_that_ends_by_itself_leaves_its_exit_code(link: NodeLink, tmp_path: Path) -> None:
    link.ask("hold", name="arm", argv=["sh", "-c", "exit 3"], log=str(tmp_path / "log"))
    assert wait_for(lambda: link.ask("held_ended", name="arm") == {"exit_code": 3})


def test_an_agent_that_has_gone_is_named() -> None:
    link = NodeLink("a7", ["true"])
    link.process.wait()
    with pytest.raises(TareError, match=r"^a7: the node's agent has gone"):
        link.ask("hello")
    link.close()


def test_all_nodes_are_asked_at_once_and_each_may_wait_for_the_other(tmp_path: Path) -> None:
    meet = f'touch {tmp_path}/$$; until [ "$(ls {tmp_path} | wc -l)" = 2 ]; do sleep 0.05; done; echo met'
    links = [NodeLink(name, agent_argv(LOCAL, HERE, "here")) for name in ("a", "b")]
    try:
        answers = ask_all(links, "run", argv=["sh", "-c", meet], timeout_s=10)
    finally:
        for link in links:
            link.close()
    assert [answer["stdout"] for answer in answers] == ["met\n", "met\n"]
