"""Where a program is built, with which command, for which CPU; and what is refused because it does not fit."""

import json
import subprocess
from pathlib import Path

import pytest
from planning import backend, embedded, other, study

from tare import build
from tare.backends import after_loading
from tare.build import builds_on_node, compile_argv, further_userlands, instruction_sets, missing_instructions
from tare.config import Mapping, load_toolchains
from tare.errors import TareError
from tare.fit import check_one_mpi, unloadable
from tare.userlands import HOST

TOOLCHAINS = load_toolchains()
CPU = frozenset({"fpu", "sse4_1", "pni", "avx2", "avx512_vnni", "abm", "rdrand"})
SAYS = """The following options are target specific:
  -m64                        [enabled]
  -mavx2                      [enabled]
  -mavx512vnni                [enabled]
  -mavx512f                   [disabled]
  -mlzcnt                     [enabled]
  -mrdrnd                     [enabled]
  -msse3                      [enabled]
  -msse4.1                    [enabled]
  -march=                     skylake
"""


def test_the_compile_line_is_the_toolchains_wrapper_around_its_compiler() -> None:
    argv = compile_argv(TOOLCHAINS["gcc9"], "O3_native", "spmd", "build/debian11/gcc9/O3_native/spmd")
    assert argv[:3] == ["env", "OMPI_CC=gcc-9", "mpicc"]
    assert {"-O3", "-march=native", "-ffp-contract=off", "-Werror"} <= set(argv)
    assert "src/apps/spmd.c" in argv and "src/apps/harness/proof.c" in argv


@pytest.mark.parametrize(
    ("site", "toolchain", "userland", "on_node"),
    [
        (embedded(), "gcc", "debian13", True),
        (embedded(), "gcc9", "debian11", False),
        (embedded(), "distribution", "debian12", False),
        (other(), "gcc14", "debian13", False),
        (embedded(), "v9", HOST, True),
        (embedded(), "v9", "alpine312-v9", False),
    ],
    ids=["the machine's own", "another userland", "the same toolchain elsewhere", "unknown nodes", "modules", "source image"],
)
def test_a_program_is_built_in_the_userland_where_it_runs(site: Mapping, toolchain: str, userland: str, on_node: bool) -> None:
    assert builds_on_node(site, toolchain, TOOLCHAINS[toolchain], userland) is on_node


def test_a_node_of_that_userland_without_the_compiler_uses_the_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.shutil, "which", lambda tool: None if tool == "gcc-12" else f"/usr/bin/{tool}")
    assert builds_on_node(embedded(), "gcc14", TOOLCHAINS["gcc14"], "debian13")
    assert not builds_on_node(embedded(), "gcc12-ompi5", TOOLCHAINS["gcc12-ompi5"], "debian13")


def test_a_study_asks_for_the_images_that_not_every_cluster_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.shutil, "which", lambda tool: f"/usr/bin/{tool}")
    assert further_userlands(study(toolchains=["gcc14"]), embedded(), TOOLCHAINS) == []
    assert further_userlands(study(toolchains=["gcc9", "gcc14", "gcc12"]), embedded(), TOOLCHAINS) == ["debian11", "debian12"]
    compared = study(toolchains=["distribution"], compare={"userlands": ["debian13", "debian11"]})
    assert further_userlands(compared, embedded(), TOOLCHAINS) == ["debian11"]


def test_modules_are_loaded_before_a_command_with_its_words_as_they_are(tmp_path: Path) -> None:
    loaded = after_loading(("gcc/9.3.0", "openmpi/3.1.1"))
    (tmp_path / ".bash_profile").write_text('module() { echo "$@" > "$HOME/loaded"; }\n')
    done = subprocess.run(
        [*loaded, "printf", "%s|", "a b", "$c"],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"a b|$c|"
    assert (tmp_path / "loaded").read_text() == "load gcc/9.3.0 openmpi/3.1.1\n"


def test_without_modules_nothing_goes_before_a_command() -> None:
    assert after_loading(()) == []


def test_what_native_code_needs_is_named_as_the_kernel_names_it() -> None:
    assert instruction_sets(SAYS, CPU) == ["abm", "avx2", "avx512_vnni", "pni", "rdrand", "sse4_1"]


def note(flags: str = "O3_native", needed: tuple[str, ...] = ("avx2", "avx512_vnni")) -> Mapping:
    return {"flags": flags, "host": "node01", "cpu_model": "Big CPU", "cpu_flags": list(needed)}


def node(*flags: str) -> Mapping:
    return {"hostname": "node02", "cpu_model": "Small CPU", "cpu_flags": list(flags)}


def test_a_cpu_with_all_instructions_is_good_enough() -> None:
    assert missing_instructions(note(), node("avx2", "avx512_vnni", "sse4_1")) is None
    assert missing_instructions(note("O3", ()), node()) is None


def test_a_cpu_that_lacks_instructions_is_named_with_them_and_with_the_one_compiled_for() -> None:
    assert missing_instructions(note(), node("avx2")) == (
        "node02: its CPU (Small CPU) lacks avx512_vnni, for which the binary was compiled with -O3 -march=native on node01 "
        "(Big CPU); give builds and blocks the same CPU (scheduler.sbatch, as in --constraint=…), or choose flags without "
        "-march=native"
    )


def test_a_record_says_for_which_cpu_its_binary_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ROOT", tmp_path)
    build.note_path("x").write_text(json.dumps(note()))
    found = build.built_with("x")
    assert found is not None and found["native_cpu"] and found["cpu_model"] == "Big CPU" and "cpu_flags" not in found
    assert build.built_with("not-built") is None


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("\tlibmpi.so.40 => /lib/libmpi.so.40 (0x7f)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n", None),
        ("\tlibmpi.so.20 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n", "libmpi.so.20 => not found"),
        (
            "./x: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./x)\n",
            "./x: /lib/libc.so.6: version `GLIBC_2.38' not found",
        ),
        (
            "Error loading shared library libmpi.so.40: No such file (needed by ./x)\n",
            "Error loading shared library libmpi.so.40",
        ),
    ],
    ids=["loads", "library", "symbol version", "musl"],
)
def test_what_ldd_misses_is_why_a_binary_does_not_load(said: str, problem: str | None) -> None:
    found = unloadable(said)
    assert found is None if problem is None else found is not None and found.startswith(problem)


def test_launcher_and_ranks_of_two_versions_are_refused() -> None:
    with pytest.raises(
        TareError, match=r"singularity: mixed MPI versions: the launcher is .*5.0.7.*, the ranks would have .*4.1.0"
    ):
        check_one_mpi(backend("singularity"), "mpirun (Open MPI) 5.0.7", "mpirun (Open MPI) 4.1.0")
    check_one_mpi(backend("singularity"), "mpirun (Open MPI) 5.0.7", "mpirun (Open MPI) 5.0.7")
