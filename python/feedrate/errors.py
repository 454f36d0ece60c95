"""Exceptions of the package. Invalid arguments raise `ValueError` or `TypeError`; timeouts raise `TimeoutError`."""

from ._core import Error


class RingClosed(Error):
    """The ring was closed before the result arrived. The result is lost."""


class MessageFailed(Error):
    """The work rejected this message. Other messages are not affected.

    Attributes
    ----------
    fault : str
        The reason: ``"bad_length"``, ``"too_long"``, ``"refused"`` and so on; `feedrate.FAULTS` lists all.
    """

    def __init__(self, fault: str) -> None:
        super().__init__(f"the message failed: {fault}")
        self.fault = fault


class CompileError(Error):
    """A work function in CUDA C++ does not compile. The message is the compiler's output."""


class ViewExpired(Error):
    """A view of slots was used after the end of its block."""


class StorageError(Error):
    """A file or a drive did not fulfil a request. The message names the source, the kind, the record and the cause.

    Attributes
    ----------
    errno : int
        The error number of the operating system; 0 if the file ended too early.
    """

    def __init__(self, text: str, errno: int = 0) -> None:
        super().__init__(text)
        self.errno = errno


class StoreError(Error):
    """A tensor store rejected a request. The message names the tensor and gives the reason."""


class TensorNotFound(StoreError, KeyError):
    """No tensor has that name."""

    __str__ = Error.__str__  # KeyError's version would add quotes


class TensorExists(StoreError):
    """A tensor with that name already exists."""


class StoreFull(StoreError, MemoryError):
    """The store's memory, or this client's quota, is full. The message lists what each client holds."""


class StoreLimit(StoreError):
    """The request would exceed the store's limit on connections, tensors or leases."""


class StoreUnreachable(StoreError, ConnectionError):
    """No store answers at that socket, or the store has stopped answering."""


def of_store(code: str) -> type[Exception]:
    """Returns the exception class that the extension raises for a store's error code."""
    kinds: dict[str, type[Exception]] = {
        "not_found": TensorNotFound,
        "exists": TensorExists,
        "out_of_memory": StoreFull,
        "limit": StoreLimit,
        "timeout": TimeoutError,
        "unreachable": StoreUnreachable,
    }
    return kinds.get(code, StoreError)


__all__ = [
    "CompileError",
    "Error",
    "MessageFailed",
    "RingClosed",
    "StorageError",
    "StoreError",
    "StoreFull",
    "StoreLimit",
    "StoreUnreachable",
    "TensorExists",
    "TensorNotFound",
    "ViewExpired",
]
