"""What a user can mend: every expected failure of Regard is one of these."""


class RegardError(Exception):
    """A failure told in one or two sentences with its remedy; the command line prints it and exits 1."""

    exit_code = 1


class UsageError(RegardError):
    """The command or the configuration asks for something impossible; the command line exits 2."""

    exit_code = 2


class TooFew(RegardError):
    """What is left of a corpus does not suffice to learn from."""
