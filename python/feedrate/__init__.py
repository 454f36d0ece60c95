"""Sends work to a GPU and returns the results.

`Ring` is the GPU ring: it sends messages to a kernel that stays resident on the GPU. `run`, `sweep` and `load` are part
of the harness, which measures every way of feeding a GPU. `feedrate.redis` exchanges tasks and results with workers
over Redis. The package imports without a GPU, a driver, or root; `devices` lists the devices that a ring can use.
"""

from __future__ import annotations

import os
import sys
from typing import Any

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("feedrate: free-threaded Python is not supported; start Python with the GIL (PYTHON_GIL=1)")

from . import _core
from .errors import CompileError, Error, MessageFailed, RingClosed, ViewExpired
from .harness import compare, executable, floors, limits, load, report, run, sweep
from .kernels import Kernel, kernel
from .loader import Loader
from .ring import Ring
from .tensor_ring import TensorRing
from .views import FAULTS, Answers, Messages

__version__ = _core.version
__revision__ = _core.revision


def devices() -> list[dict[str, Any]]:
    """Lists the devices that a ring can use.

    Returns
    -------
    list of dict
        The first entry is ``{"device": "cpu", "processors": …}``. Each GPU adds an entry with ``device``
        (``"cuda:0"``), ``name``, ``memory_bytes``, ``processors`` and ``capability``. If no GPU is available, the
        first entry also gives the reason, as ``"cuda": "unavailable: …"``.
    """
    found: list[dict[str, Any]] = [{"device": "cpu", "processors": len(os.sched_getaffinity(0))}]
    reason = _core.cuda_unavailable()
    if reason:
        found[0]["cuda"] = f"unavailable: {reason}"
    return found + [{"device": f"cuda:{gpu.pop('index')}", **gpu} for gpu in _core.gpus()]


__all__ = [
    "FAULTS",
    "Answers",
    "CompileError",
    "Error",
    "Kernel",
    "Loader",
    "MessageFailed",
    "Messages",
    "Ring",
    "RingClosed",
    "TensorRing",
    "ViewExpired",
    "__revision__",
    "__version__",
    "compare",
    "devices",
    "executable",
    "floors",
    "kernel",
    "limits",
    "load",
    "report",
    "run",
    "sweep",
]
