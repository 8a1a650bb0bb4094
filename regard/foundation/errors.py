"""Errors that a user can fix; every expected failure of Regard is one of these."""


class RegardError(Exception):
    """An expected failure; its message states the problem and the remedy. The command line exits with 1."""

    exit_code = 1


class UsageError(RegardError):
    """The command or the configuration is wrong. The command line exits with 2."""

    exit_code = 2


class TooFew(RegardError):
    """A corpus has too few usable examples."""
