"""An Apptainer instance per node on a VXLAN overlay, in a cgroup with the job's CPUs (``--apply-cgroups``)."""

from tare.backends._instance import RootInstance

BACKEND = RootInstance("singularity-instance-overlay+cgroup", network="overlay", cgroup=True)
