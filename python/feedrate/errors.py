"""What can go wrong. Bad arguments are `ValueError` or `TypeError`, and a time that is over is `TimeoutError`."""

from ._core import Error


class RingClosed(Error):
    """The ring was closed before the result came; it never will."""


class MessageFailed(Error):
    """The work did not take this very message; others are not touched.

    Attributes
    ----------
    fault : str
        ``"bad_length"``, ``"too_long"``, ``"refused"`` and so on.
    """

    def __init__(self, fault: str) -> None:
        super().__init__(f"the message failed: {fault}")
        self.fault = fault


class CompileError(Error):
    """A work function in CUDA C++ does not compile; the text is the compiler's."""


class ViewExpired(Error):
    """A view of slots was used after its block had ended."""


__all__ = ["CompileError", "Error", "MessageFailed", "RingClosed", "ViewExpired"]
