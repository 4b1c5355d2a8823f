"""An Apptainer instance per node on a bridge of CNI's; VXLAN joins the nodes' bridges."""

from tare.backends._instance import RootInstance

BACKEND = RootInstance("singularity-instance-overlay", network="overlay")
