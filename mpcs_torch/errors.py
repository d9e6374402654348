"""The base class of the errors that a user can fix."""


class MpcsError(Exception):
    """An error in what the user gave: a file, a config, a data set. The ``mpcs`` command prints its message alone.

    Errors derive from it beside a built-in error, so that code that knows nothing of this package catches them too.
    """

    exit_status = 2
    """Of the command."""
    is_told_elsewhere = False
    """Whether another process of the same run prints the message."""
