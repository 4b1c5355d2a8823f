"""One ``apptainer exec`` per rank on the host's network, paid inside ``wall_s`` (Liu & Guitart 2022, Section 3)."""

from dataclasses import dataclass

from tare.backends import Argv, Backend, Context


@dataclass(frozen=True)
class Singularity(Backend):
    """Ranks are started natively and enter a read-only image each."""

    runtime: str = "singularity"

    def wrap(self, context: Context) -> Argv:
        """Return ``apptainer exec`` with the checkout bound; /tmp, /dev/shm and the environment are shared as configured."""
        command = str(context.site["runtimes"]["singularity"]["command"])
        return [command, "--silent", "exec", "--bind", context.root, str(context.sif)]


BACKEND = Singularity("singularity")
