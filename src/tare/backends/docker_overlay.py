"""Docker containers on Swarm's attachable overlay network (VXLAN between the nodes)."""

from tare.backends._docker import Docker

BACKEND = Docker("docker-overlay", network="overlay")
