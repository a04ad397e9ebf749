"""Errors a user can act on: what was read, what was there, what to do. Printed as one line, exit code 2."""


class ShardscopeError(Exception):
    """A fault with its cure in the message."""


class UsageError(ShardscopeError):
    """Options or arguments that do not fit together."""


class RunNotFoundError(ShardscopeError):
    """No trace where one was expected."""


class TraceFormatError(ShardscopeError):
    """A file that is not a trace, or so damaged that nothing can be had from it."""


class MissingEvidenceError(ShardscopeError):
    """A measure that this run cannot give.

    Attributes:
        missing: what is not in the run.
        cure: the setting or command that would provide it.
    """

    def __init__(self, missing: str, cure: str) -> None:
        super().__init__(f"{missing}; {cure}")
        self.missing = missing
        self.cure = cure
