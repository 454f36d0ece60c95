"""Figures of every experiment, and the style of figures."""

import contextlib
import os


def _import_matplotlib() -> None:
    """Imports matplotlib without MPLBACKEND, which may specify a backend that this Python lacks (a notebook's, for
    example) and would make the import fail. Figures here need no backend; the caller's setting is restored."""
    backend = os.environ.pop("MPLBACKEND", None)
    import matplotlib

    if backend is not None:
        os.environ["MPLBACKEND"] = backend
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = backend


_import_matplotlib()
