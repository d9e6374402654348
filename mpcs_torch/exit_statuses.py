"""The exit statuses of commands, in one table."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit statuses of ``mpcs`` commands, each with its one meaning."""

    DONE = 0
    """It has done its work; what it prints may hold cautions."""
    FAULT = 1
    """It failed by an error of this package."""
    REFUSED = 2
    """It refused its input: an option, a file, a value, or what is missing on this machine."""
    NOT_MET = 3
    """It measured that a requirement is not met."""
    ALARM = 4
    """It monitors limits, and an alarm is not acknowledged."""
    NO_PROMISE = 5
    """It monitors limits, and there is no alarm; but too few labels count for a limit to support this."""
    DIVERGED = 6
    """It trained a model that gives NaN or infinite logits."""
    INTERRUPTED = 130
    """It was stopped by Ctrl-C."""
    TERMINATED = 143
    """It was stopped by SIGTERM."""
