"""Does what was built fit where it will run? Asked before an arm's first launch; what does not fit is refused with the reason."""

from tare.allocation import NodeLink
from tare.backends import Argv, Backend, Context
from tare.build import missing_instructions, read_build_note
from tare.cases import Setting
from tare.config import Mapping
from tare.errors import TareError
from tare.prepare import Prepared, launcher_version
from tare.proof import mpi_version
from tare.yamlio import ROOT

NOT_LOADED = ("not found", "Error loading", "Error relocating")
"""What glibc's and musl's ldd say of a library, or a version of one, that is missing."""


def check_fit(
    setting: Setting, mpirun: str, prepared: Prepared, context: Context, links: list[NodeLink], hellos: list[Mapping]
) -> None:
    """Raise when the CPU, the libraries or the MPI of an arm are not those of its build and its launcher."""
    backend = prepared.backend
    note = read_build_note(setting.binary)
    if note is None:  # a packaged program: not built by us
        return
    for hello in hellos:
        reason = missing_instructions(note, hello)
        if reason is not None:
            raise TareError(reason)
    place = [*backend.enter(context), *backend.wrap(context)]
    check_libraries(setting, backend, place, links[0])
    check_one_mpi(backend, prepared.mpi, launcher_version(links[0], [*place, mpirun]))


def check_libraries(setting: Setting, backend: Backend, place: Argv, link: NodeLink) -> None:
    """Raise when the binary's libraries are not where its ranks run."""
    answer = link.ask("run", argv=[*place, "ldd", str(ROOT / setting.binary)], timeout_s=60)
    problem = unloadable(answer["stdout"] + answer["stderr"])
    if problem is not None:
        raise TareError(
            f"{backend.name}: {setting.binary} does not load there: {problem}; it was built for {setting.userland}; "
            "compare its toolchain inside containers only"
        )


def unloadable(said_by_ldd: str) -> str | None:
    """Return the first library or symbol version that is missing, or None."""
    return next((line.strip() for line in said_by_ldd.splitlines() if any(words in line for words in NOT_LOADED)), None)


def check_one_mpi(backend: Backend, launcher: str, ranks: str) -> None:
    """Raise when a launcher outside the container would start ranks with another MPI: a third thing would be measured."""
    if mpi_version(launcher) != mpi_version(ranks):
        raise TareError(
            f"{backend.name}: mixed MPI versions: the launcher is {launcher!r}, the ranks would have {ranks!r}; one version is "
            "allowed; use docker-* (its launcher is in the container), or a toolchain that the nodes have"
        )
