"""An Apptainer instance per node on MACVLAN, in a cgroup with the job's CPUs (``--apply-cgroups``)."""

from tare.backends._instance import RootInstance

BACKEND = RootInstance("singularity-instance-macvlan+cgroup", network="macvlan", cgroup=True)
