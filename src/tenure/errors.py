"""Every error a caller may want to catch. Each says where, what was found and what was allowed."""


class TenureError(Exception):
    """Base of all errors raised by this package."""


class InputError(TenureError):
    """What was handed in cannot be read: a file, a message, a budget, a handle.

    `str(error)` reads ``where: found …, expected …`` and is fit to be shown to a user as it is.
    """

    def __init__(self, where: str, found: str, allowed: str = "") -> None:
        super().__init__(f"{where}: {found}" + (f", expected {allowed}" if allowed else ""))
        self.where, self.found, self.allowed = where, found, allowed


class DelimiterRefused(TenureError):
    """A `delimiter` call that the protocol does not allow; the text tells the model what to do instead."""


class LawBroken(TenureError):
    """A view or commit would break a law. Never expected: a defect of the policy or of this package."""


class StoreError(TenureError):
    """The store cannot do what was asked; whatever it held before is still there."""


class Conflict(StoreError):
    """Another writer appended to the conversation first; read its new head and try again."""
