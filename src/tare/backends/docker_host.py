"""Docker containers on the nodes' own network."""

from tare.backends._docker import Docker

BACKEND = Docker("docker-host", network="host")
