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


class StoreError(Error):
    """What a tensor store answers instead of a tensor; the text names the tensor and says why."""


class TensorNotFound(StoreError, KeyError):
    """There is no tensor of that name."""

    __str__ = Error.__str__  # KeyError's would show quotes


class TensorExists(StoreError):
    """The name has a tensor already."""


class StoreFull(StoreError, MemoryError):
    """The memory, or this client's quota, is full; the text says who holds what."""


class StoreLimit(StoreError):
    """More connections, tensors or leases than the store allows."""


class StoreUnreachable(StoreError, ConnectionError):
    """No store answers at that socket, or not any more."""


def of_store(code: str) -> type[Exception]:
    """What the extension raises for a store's error of this code."""
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
    "StoreError",
    "StoreFull",
    "StoreLimit",
    "StoreUnreachable",
    "TensorExists",
    "TensorNotFound",
    "ViewExpired",
]
