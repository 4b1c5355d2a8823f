"""Building programs: on a compute node, with its own compiler or inside the image of the userland where they will run."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tare import images
from tare.backends import Argv, after_loading
from tare.config import FLAGS, Mapping, load_site, load_toolchains
from tare.errors import TareError
from tare.files import save
from tare.node_agent import cpu_flags, cpu_model
from tare.packaged import PACKAGED, PROOF_LIBRARY
from tare.records import file_sha256
from tare.userlands import BUILDER, HOST, load_userlands, modules_of, userlands_of
from tare.yamlio import ROOT

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE")
NO_CONTRACTION = "-ffp-contract=off"
"""No fused multiply-add that the source does not ask for: the answers of all flag sets can be compared."""

THREADS = ("-fopenmp", "-Wl,--as-needed")
"""OpenMP, whose library a program without threads does not load."""

RENAMED = {
    "pni": "sse3",
    "abm": "lzcnt",
    "bmi1": "bmi",
    "pclmulqdq": "pclmul",
    "rdrand": "rdrnd",
    "sha_ni": "sha",
    "lahf_lm": "sahf",
    "3dnowprefetch": "prfchw",
}
"""Instruction sets that the kernel (/proc/cpuinfo) and GCC (-m…) call by different names; others differ in punctuation only."""


def builds_on_node(site: Mapping, name: str, toolchain: Mapping, userland: str) -> bool:
    """Tell whether this node has the toolchain itself, in that very userland; else it is used inside the builder image."""
    if toolchain["from"] in ("host", "modules") or userland == HOST:
        return True
    tools = (toolchain["compiler"], toolchain["mpicc"])
    return bool(site["userland"] == userland) and all(shutil.which(tool) for tool in tools)


def further_userlands(study: Mapping, site: Mapping, toolchains: Mapping) -> list[str]:
    """Return the userlands of a study for which more is needed than every cluster has: its images, or a compiler."""
    sections = load_userlands()
    needed = [
        userland
        for name, userland in userlands_of(study, toolchains)
        if sections[userland]["every_time"] != "yes" or not builds_on_node(site, name, toolchains[name], userland)
    ]
    return list(dict.fromkeys(needed))


def in_builder(site: Mapping, userland: str) -> Argv:
    """Return what runs a command inside a userland's builder image, as this user, on the checkout; fetches the image."""
    builder = userland + BUILDER
    if "docker" in site["runtimes"]:
        images.fetch(site, builder)
        note = images.read_note(images.docker_note(builder)) or {}
        limits = ["--network", "none", "--user", f"{os.getuid()}:{os.getgid()}"]
        checkout = ["--volume", f"{ROOT}:{ROOT}", "--workdir", str(ROOT)]
        return [site["runtimes"]["docker"]["command"], "run", "--rm", *limits, *checkout, note["image"]]
    if "singularity" not in site["runtimes"]:
        raise TareError(
            f"site {site['name']!r}: no container runtime, and this node has no such toolchain: found userland {userland!r}; "
            "add docker or singularity to the site's runtimes, or choose a toolchain of the nodes"
        )
    if not images.sif_path(builder).is_file():
        images.build_sif(site, builder)
    return [site["runtimes"]["singularity"]["command"], "--silent", "exec", "--bind", str(ROOT), str(images.sif_path(builder))]


def compile_argv(toolchain: Mapping, flags: str, app: str, out: str) -> Argv:
    """Return the compile line of an app: the toolchain's MPI wrapper around its compiler."""
    harness = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src" / "apps" / "harness").glob("*.c"))
    options = [*STRICT, *FLAGS[flags], NO_CONTRACTION, "-o", out]
    sources = [f"src/apps/{app}.c", *harness]
    return ["env", f"OMPI_CC={toolchain['compiler']}", toolchain["mpicc"], *THREADS, *options, *sources, "-lm"]


def profile_argv(toolchain: Mapping, out: str) -> Argv:
    """Return the compile line of the library that is preloaded into profiled ranks (src/profile/profile.c)."""
    options = [*STRICT, "-O2", "-fPIC", "-shared", "-o", out]
    return ["env", f"OMPI_CC={toolchain['compiler']}", toolchain["mpicc"], *options, "src/profile/profile.c", "-ldl"]


def run(argv: Argv, what: str) -> str:
    """Run a build step; return its stdout; a failure is a TareError under the step's own words."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    except OSError as error:
        raise TareError(f"{what}: {argv[0]}: cannot be run: {error.strerror}; is it installed on this node?") from error
    if done.returncode != 0:
        raise TareError(f"{what}: exit {done.returncode}: {' '.join(argv)}; its own words stand above")
    return done.stdout


def instruction_sets(target_help: str, flags: frozenset[str]) -> list[str]:
    """Return the CPU flags, as /proc/cpuinfo calls them, of what ``gcc -Q --help=target`` says is enabled.

    Flags that the building CPU does not have are none of them: GCC lists groupings (sse4) and ABI switches as well.
    """
    lines = (line.split() for line in target_help.splitlines())
    enabled = {plain(words[0].removeprefix("-m")) for words in lines if words[1:] == ["[enabled]"]}
    return sorted(flag for flag in flags if plain(RENAMED.get(flag, flag)) in enabled)


def plain(name: str) -> str:
    """Return an instruction set's name without punctuation (sse4_1 and sse4.1 are one)."""
    return name.translate(str.maketrans("", "", "._-"))


def missing_instructions(note: Mapping, hello: Mapping) -> str | None:
    """Return why a node's CPU cannot run what was built, or None."""
    missing = sorted(set(note["cpu_flags"]) - set(hello["cpu_flags"]))
    if not missing:
        return None
    return (
        f"{hello['hostname']}: its CPU ({hello['cpu_model']}) lacks {', '.join(missing)}, for which the binary was compiled with "
        f"{' '.join(FLAGS[note['flags']])} on {note['host']} ({note['cpu_model']}); give builds and blocks the same CPU "
        "(scheduler.sbatch, as in --constraint=…), or choose flags without -march=native"
    )


def build_note(prefix: Argv, toolchain: Mapping, flags: str) -> dict[str, Any]:
    """Return what a binary was built with and for: compiler, MPI, and the CPU whose instructions it may use."""
    compiler = toolchain["compiler"]
    version = run([*prefix, compiler, "--version"], compiler).splitlines()[0]
    mpi = run([*prefix, toolchain["mpirun"], "--version"], toolchain["mpirun"]).splitlines()[0]
    note: dict[str, Any] = {"compiler": version, "mpi": mpi, "flags": flags, "host": platform.node(), "cpu_model": cpu_model()}
    if "-march=native" not in FLAGS[flags]:
        return {**note, "cpu_flags": []}
    target = run([*prefix, compiler, "-march=native", "-Q", "--help=target"], compiler)
    return {**note, "cpu_flags": instruction_sets(target, cpu_flags())}


def note_path(binary: str) -> Path:
    """Return the file that says what a binary was built with."""
    return ROOT / f"{binary}.json"


def read_build_note(binary: str) -> dict[str, Any] | None:
    """Return what a binary was built with, or None where it is not built."""
    return images.read_note(note_path(binary))


def built_with(binary: str) -> dict[str, Any] | None:
    """Return what a record says of its binary's build: compiler, MPI, place, and the CPU where -march=native was resolved."""
    note = read_build_note(binary)
    if note is None:
        return None
    return {**{name: value for name, value in note.items() if name != "cpu_flags"}, "native_cpu": bool(note["cpu_flags"])}


def before_compiler(site: Mapping, userland: str, name: str, toolchain: Mapping) -> Argv:
    """Return what goes before a toolchain's compiler to run it in a userland: nothing, its modules, or the builder image."""
    if not builds_on_node(site, name, toolchain, userland):
        return in_builder(site, userland)
    return after_loading(modules_of(site, name, toolchain))


def build_profile(site: Mapping, userland: str, name: str) -> None:
    """Build the profiling library for a userland and the MPI of a toolchain."""
    toolchain = load_toolchains()[name]
    prefix = before_compiler(site, userland, name, toolchain)
    print(run([*prefix, *profile_argv(toolchain, f"build/{userland}/{name}/profile.so")], "profile.so"), end="")


def build_app(site: Mapping, userland: str, name: str, flags: str, app: str) -> None:
    """Build one app and its note on this node."""
    toolchain = load_toolchains()[name]
    here = builds_on_node(site, name, toolchain, userland)
    prefix = before_compiler(site, userland, name, toolchain)
    binary = f"build/{userland}/{name}/{flags}/{app}"
    print(run([*prefix, *compile_argv(toolchain, flags, app, binary)], app), end="")
    note = {**build_note(prefix, toolchain, flags), "built_in": "node" if here else userland + BUILDER}
    save(note_path(binary), json.dumps(note, sort_keys=True) + "\n")


def build_tool(site: Mapping, userland: str, tool: str) -> None:
    """Build one of Tare's own small programs for a userland."""
    prefix = in_builder(site, userland) if site["userland"] not in (None, userland) and userland != HOST else []
    out = f"build/{userland}/{tool}"
    print(run([*prefix, "cc", *STRICT, "-O2", "-o", out, f"src/launch/{tool}.c"], tool), end="")


def build_proof(site: Mapping, userland: str, name: str) -> None:
    """Build the library that proves where a packaged program ran, with the harness's own code (src/launch/proof.c)."""
    toolchain = load_toolchains()[name]
    prefix = before_compiler(site, userland, name, toolchain)
    out = f"build/{userland}/{name}/{PACKAGED}/{PROOF_LIBRARY}"
    print(run([*prefix, *proof_argv(toolchain, out)], PROOF_LIBRARY), end="")


def proof_argv(toolchain: Mapping, out: str) -> Argv:
    """Return the compile line of the proof's library."""
    harness = [f"src/apps/harness/{part}.c" for part in ("links", "proof", "sha256", "shared", "text")]
    options = [*STRICT, "-O2", "-fPIC", "-shared", "-o", out]
    return ["env", f"OMPI_CC={toolchain['compiler']}", toolchain["mpicc"], *options, "src/launch/proof.c", *harness, "-lm"]


def find_program(userland: str, name: str, app: str, executable: str) -> None:
    """Note which program the nodes have under a packaged app's path: what every rank must turn out to be."""
    path = ROOT / executable
    if not path.is_file() or not os.access(path, os.X_OK):
        raise TareError(
            f"{app}: {executable}: not an executable on {platform.node()}; install it on the nodes and in the image of "
            f"{userland}, or mend the path (program: executable:)"
        )
    mpi = run([load_toolchains()[name]["mpirun"], "--version"], name).splitlines()[0]
    note = {"executable": str(path.resolve()), "sha256": file_sha256(path), "mpi": mpi, "flags": PACKAGED, "cpu_flags": []}
    about = {"host": platform.node(), "cpu_model": cpu_model(), "compiler": None}
    save(note_path(f"build/{userland}/{name}/{PACKAGED}/{app}"), json.dumps({**note, **about}, sort_keys=True) + "\n")


def main(argv: list[str]) -> None:
    """Build an app with a toolchain, or one of Tare's own small programs, for a userland."""
    parser = argparse.ArgumentParser(prog="tare build", description=main.__doc__)
    parser.add_argument("--site", required=True)
    parser.add_argument("--userland", required=True)
    parser.add_argument("--toolchain")
    parser.add_argument("--flags", choices=sorted(FLAGS))
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--app")
    what.add_argument("--tool")
    what.add_argument("--proof", action="store_true", help="the library for packaged programs")
    parser.add_argument("--executable", help="of a packaged --app, which is not built but found")
    what.add_argument("--profile", action="store_true", help="the library that profiles MPI, for --toolchain")
    arguments = parser.parse_args(argv)
    site = load_site(arguments.site)
    sys.stderr.write(f"building for {arguments.userland} on {platform.node()}\n")
    if arguments.tool:
        build_tool(site, arguments.userland, arguments.tool)
    elif arguments.proof:
        build_proof(site, arguments.userland, arguments.toolchain)
    elif arguments.executable:
        find_program(arguments.userland, arguments.toolchain, arguments.app, arguments.executable)
    elif arguments.profile:
        build_profile(site, arguments.userland, arguments.toolchain)
    else:
        build_app(site, arguments.userland, arguments.toolchain, arguments.flags, arguments.app)
