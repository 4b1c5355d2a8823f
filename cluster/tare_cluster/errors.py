"""The one error that a user sees, without a traceback."""


class ClusterError(Exception):
    """Its text is *where: what is wrong: what was found; what is allowed; what to do next*."""
