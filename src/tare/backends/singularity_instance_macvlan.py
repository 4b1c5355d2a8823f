"""An Apptainer instance per node with an address of its own on the interconnect, through CNI's macvlan plugin."""

from tare.backends._instance import RootInstance

BACKEND = RootInstance("singularity-instance-macvlan", network="macvlan")
