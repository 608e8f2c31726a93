"""The package's errors: one line each, the same as on the command line.

`exit_status` is what the command `pipeweaver` exits with for the same error.
"""


class PipeweaverError(RuntimeError):
    """A call could not do its work; the message is one line that says what is wrong and what is allowed."""

    exit_status = 1


class InputError(PipeweaverError):
    """Malformed or contradictory input."""

    exit_status = 2


class FileError(PipeweaverError):
    """A file or device did not do as asked."""

    exit_status = 3


class LimitError(PipeweaverError):
    """Well-formed, but impossible: does not fit, or cannot be expressed."""

    exit_status = 4


class NotBuiltError(PipeweaverError, ImportError):
    """The package lies in a checkout without its compiled part, and the call needs it."""

    exit_status = 3
