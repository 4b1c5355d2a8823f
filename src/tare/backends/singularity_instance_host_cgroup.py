"""An Apptainer instance per node on the host's network, in a cgroup with the job's CPUs (``--apply-cgroups``)."""

from tare.backends._instance import RootInstance

BACKEND = RootInstance("singularity-instance-host+cgroup", network="host", cgroup=True)
