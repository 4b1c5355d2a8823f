"""The one error that a user's mistake raises."""


class TareError(Exception):
    """A message for the user: where, what is wrong, what was found, what is allowed, what to do next."""
