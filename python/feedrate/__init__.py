"""Work to a GPU and its results back.

`Ring` is the GPU ring: messages to a kernel that stays on the GPU. `run`, `sweep` and `load` are the harness that
measures every way of feeding a GPU. `feedrate.redis` speaks to workers over Redis. The package imports without a GPU, a
driver, or root; `devices` tells what is there.
"""

from __future__ import annotations

import os
import sys
from typing import Any

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("feedrate: free-threaded Python is not supported; start it with the GIL (PYTHON_GIL=1)")

from . import _core
from .errors import CompileError, Error, MessageFailed, RingClosed, ViewExpired
from .harness import compare, executable, floors, limits, load, report, run, sweep
from .kernels import Kernel, kernel
from .ring import Ring
from .tensor_ring import TensorRing
from .views import FAULTS, Answers, Messages

__version__ = _core.version
__revision__ = _core.revision


def devices() -> list[dict[str, Any]]:
    """What a ring can run on.

    Returns
    -------
    list of dict
        First ``{"device": "cpu", "processors": …}``, then for each GPU ``device`` (``"cuda:0"``), ``name``,
        ``memory_bytes``, ``processors`` and ``capability``. Where there is no GPU, the first also tells why, as
        ``"cuda": "unavailable: …"``.
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
