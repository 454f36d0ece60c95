"""Figures of every experiment, and how figures look."""

import contextlib
import os


def _import_matplotlib() -> None:
    """MPLBACKEND may name a backend that only the caller's other Python has, a notebook's for example; matplotlib is not
    imported then. Figures here need none, and what the caller draws keeps his."""
    backend = os.environ.pop("MPLBACKEND", None)
    import matplotlib

    if backend is not None:
        os.environ["MPLBACKEND"] = backend
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = backend


_import_matplotlib()
