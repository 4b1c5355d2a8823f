"""Ranks run on the nodes as they are: what everything else is weighed against."""

from tare.backends import Backend

BACKEND = Backend("native")
