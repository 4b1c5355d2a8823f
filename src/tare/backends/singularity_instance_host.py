"""An Apptainer instance per node on the host's network; ranks enter it by ``apptainer exec`` (Liu & Guitart 2022, Section 3)."""

from tare.backends._instance import OwnInstance

BACKEND = OwnInstance("singularity-instance-host")
