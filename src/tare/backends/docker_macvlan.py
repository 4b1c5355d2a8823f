"""Docker containers with an address of their own on the interconnect, through a MACVLAN interface."""

from tare.backends._docker import Docker

BACKEND = Docker("docker-macvlan", network="macvlan")
