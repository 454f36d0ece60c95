"""Work functions in CUDA C++, compiled on demand; and matrix products by the rungs of a ladder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import numbers
import os
import re
import struct
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .buffers import check_array
from .errors import CompileError, Error, MessageFailed
from .products import load, matmul, rungs
from .views import FAILED, FAULTS, HEADER, serve_batches

__all__ = ["Kernel", "cache", "device_of", "kernel", "load", "matmul", "rungs"]

INCLUDE = Path(__file__).parent / "include"
# In the order that CompiledWork in src/work.hpp requires.
_KERNELS = ["feedrate::batch_kernel<feedrate_work, feedrate::NoRecorder>"] + [
    f"feedrate::resident_kernel<feedrate_work, feedrate::NoRecorder, {form}u, {warps}>"
    for warps in ("false", "true")
    for form in range(4)
]
_AROUND = """#include <feedrate/detail/kernels/serving/compiled.cuh>
using namespace feedrate;
#line 1 "{file}"
{source}
#line 1 "the members that feedrate.kernel was given"
struct feedrate_members {{
{fields}
  __device__ void operator()({name}& functor) const {{
{sets}
  }}
}};
using feedrate_work = {work};
"""


class Kernel:
    """A work function for a ring: a functor in CUDA C++. `feedrate.kernel` creates it.

    Attributes
    ----------
    name : str
        Name of the functor.
    members : dict
        Values of its members.
    cpu : callable or None
        Python function that does the same work on the CPU device.
    """

    def __init__(
        self, source: str, file: str, name: str, members: dict[str, Any], cpu: Callable[..., Any] | None
    ) -> None:
        self.name, self.members, self.cpu = name, members, cpu
        self._source, self._file = source, file
        self._kinds, self._words = {}, b""
        for member, value in members.items():
            self._kinds[member], word = _member_value(member, value)
            self._words += word

    def __repr__(self) -> str:
        return f"<feedrate.Kernel {self.name} of {self._file}>"

    def compile(self, capability: str) -> None:
        """Compiles the functor for a compute capability, such as ``"9.0"``, unless the result is cached. Needs no GPU.

        Raises
        ------
        CompileError
            The functor does not compile. The exception has the compiler's messages, with the source's line numbers.
        """
        self._compiled(capability, by_address=False)

    def run(self, messages: Any, *, result_bytes: int | None = None, device: str = "auto") -> NDArray[np.uint8]:
        """Processes all messages in one launch, without a ring. Use it to test or try out a functor.

        Parameters
        ----------
        messages : array of uint8, shape (n, bytes)
            One message per row.
        result_bytes : int, optional
            Maximum size of a result in bytes; defaults to the size of a message.
        device : str
            As for `feedrate.Ring`.

        Returns
        -------
        array of uint8, shape (n, result_bytes)

        Raises
        ------
        MessageFailed
            The functor rejected at least one message.
        """
        if isinstance(messages, np.ndarray):
            check_array("messages", messages)
            if messages.dtype != np.uint8:
                raise TypeError(
                    f"messages: invalid dtype {messages.dtype}; allowed: uint8 (array.view('u1') returns the bytes)"
                )
        array = np.ascontiguousarray(messages, dtype=np.uint8)
        if array.ndim != 2 or not array.shape[1]:
            raise ValueError(f"messages: invalid shape {array.shape}; allowed: (n, bytes), with at least 1 byte")
        room = array.shape[1] if result_bytes is None else result_bytes
        kind, index = device_of(device)
        errors: list[BaseException] = []
        work: Any
        if kind == "cpu" and self.cpu is not None:
            work = serve_batches(self.cpu, array.shape[1], room, errors.append)
        else:
            work = self._on(kind, index)
        slots = _core.launch(work, kind, index, array, room)
        headers = slots[:, : HEADER.itemsize].view(HEADER)[:, 0]
        if (headers["length"] & FAILED).any():
            first = int(np.argmax(headers["length"] & FAILED))
            raise MessageFailed(FAULTS[int(headers["length"][first]) & ~FAILED]) from (errors[0] if errors else None)
        return slots[:, HEADER.itemsize : HEADER.itemsize + room]

    def _on(self, kind: str, index: int, by_address: bool = False) -> _core.Compiled:
        """Returns the work that the extension runs on this device."""
        if kind != "cuda":
            raise ValueError(
                "device: invalid value 'cpu'; allowed: 'cuda', for CUDA C++"
                + ("" if by_address else " without a Python function that does the same work (argument cpu)")
            )
        capability = {gpu["index"]: gpu["capability"] for gpu in _core.gpus()}.get(index)
        if capability is None:
            raise Error(f"device: cuda:{index} is not available: {_core.cuda_unavailable() or 'no GPU has this index'}")
        image, names = self._compiled(capability, by_address)
        return _core.Compiled(image, names, self._words)

    def _compiled(self, capability: str, by_address: bool) -> tuple[bytes, list[str]]:
        arch = "sm_" + capability.replace(".", "")
        work = f"feedrate::Compiled<{self.name}, feedrate_members>"
        text = _AROUND.format(
            file=self._file,
            source=self._source,
            name=self.name,
            fields="\n".join(f"  {kind} v{i};" for i, kind in enumerate(self._kinds.values())),
            sets="\n".join(
                f"    functor.{member} = feedrate::member<decltype({self.name}::{member})>(v{i});"
                for i, member in enumerate(self._kinds)
            ),
            work=f"feedrate::ByAddress<{work}>" if by_address else work,
        )
        file = cache() / f"{_key(text, arch)}.kernel"
        with contextlib.suppress(OSError, ValueError, KeyError):
            return _read(file)
        image, names = _compile(text, arch)
        with contextlib.suppress(OSError):  # without a cache, the next call compiles the source again
            _write(file, image, names)
        return image, names


def kernel(
    source: str | os.PathLike[str],
    *,
    name: str | None = None,
    cpu: Callable[..., Any] | None = None,
    **members: Any,
) -> Kernel:
    """Creates a custom work function in CUDA C++, for `feedrate.Ring`, `feedrate.TensorRing` and `Kernel.run`.

    Parameters
    ----------
    source : str or path
        Source text, or a file that contains it. It defines a struct with ``operator()(group, in, bytes, out)``: `in`
        and `out` point to pieces of 16 bytes, and the threads of `group` share the message. feedrate/kernel.hpp
        describes the optional members of the struct. No function needs ``__device__``. NVRTC compiles the source when a
        ring on a GPU first needs it (``pip install 'feedrate[kernel]'``); the result is cached in ~/.cache/feedrate.
    name : str, optional
        Name of the struct; required if the source has several.
    cpu : callable, optional
        Python function on batches (see `feedrate.Ring`) that does the same work on the CPU device.
    **members
        Values for the members of the struct: numbers, booleans, or, for pointers, arrays on the GPU (with
        ``__cuda_array_interface__``; they are kept alive). Changing a value needs no new compilation.

    Examples
    --------
    >>> scale = feedrate.kernel('''
    ... struct Scale {
    ...   float factor = 1;
    ...   template <class Group>
    ...   void operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    ...     auto* from = reinterpret_cast<const float*>(in);
    ...     auto* to = reinterpret_cast<float*>(out);
    ...     for (unsigned i = group.rank(); i < bytes / 4; i += group.size()) to[i] = from[i] * factor;
    ...   }
    ... };''', factor=2.5)
    """
    file = "kernel.cu"
    if isinstance(source, os.PathLike):
        file, source = os.fspath(source), Path(source).read_text(encoding="utf-8")
    elif "\n" not in source and source.endswith((".cu", ".cuh", ".hpp", ".h")):
        file, source = source, Path(source).read_text(encoding="utf-8")
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    structs = re.findall(r"(?<!\w)(?:struct|class)\s+(\w+)\s*(?:final\s*)?[:{]", code)
    if name is None:
        if len(structs) != 1:
            found = ", ".join(structs) or "none"
            raise ValueError(f"name: a name is required, because the source has {len(structs)} structs: {found}")
        name = structs[0]
    elif name not in structs:
        allowed = ", ".join(structs) or "none, because the source has no struct"
        raise ValueError(f"name: invalid value {name!r}; allowed: {allowed}")
    for member in members:
        if not member.isidentifier():
            raise ValueError(f"members: invalid name {member!r}; allowed: C++ identifiers")
    return Kernel(source, file, name, members, cpu)


def cache() -> Path:
    """Returns the folder of compiled kernels: feedrate in ``XDG_CACHE_HOME`` or in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "feedrate"


def device_of(device: str) -> tuple[str, int]:
    """Returns ("cuda" or "cpu", index) for a device name; "auto" selects the first GPU, or the CPU if there is none."""
    kind, colon, index = device.partition(":")
    if kind not in ("auto", "cuda", "cpu") or (colon and (kind != "cuda" or not index.isdecimal())):
        raise ValueError(f"device: invalid value {device!r}; allowed: 'auto', 'cuda', 'cuda:N', 'cpu'")
    if kind == "auto":
        kind = "cpu" if _core.cuda_unavailable() else "cuda"
    return kind, int(index) if colon else 0


def _member_value(member: str, value: Any) -> tuple[str, bytes]:
    """Returns the C++ type and the eight bytes that transfer a value to the GPU."""
    if isinstance(value, (bool, np.bool_)):
        return "bool", struct.pack("<Q", bool(value))
    if isinstance(value, numbers.Integral):
        number = int(value)
        if -(2**63) <= number < 2**63:
            return "long long", struct.pack("<q", number)
        if 2**63 <= number < 2**64:
            return "unsigned long long", struct.pack("<Q", number)
    elif isinstance(value, numbers.Real):
        return "double", struct.pack("<d", float(value))
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return "unsigned long long", struct.pack("<Q", interface["data"][0])
    raise ValueError(
        f"{member}: invalid value of type {type(value).__name__}; allowed: numbers of at most 64 bits, booleans, and "
        "arrays in GPU memory"
    )


def _key(text: str, arch: str) -> str:
    digest = hashlib.sha256(f"{_core.version} {arch}\n{text}".encode())
    for header in sorted(INCLUDE.rglob("*")):
        if header.is_file():
            digest.update(header.read_bytes())
    return digest.hexdigest()[:32]


def _compile(text: str, arch: str) -> tuple[bytes, list[str]]:
    try:
        pathfinder, core = import_module("cuda.pathfinder"), import_module("cuda.core")
    except ImportError as error:
        raise Error(f"packages for compiling are missing ({error}); run pip install 'feedrate[kernel]'") from None
    library = pathfinder.find_nvidia_header_directory("cccl")
    if library is None:
        raise Error("the CCCL headers are missing; run pip install 'feedrate[kernel]', or install a CUDA toolkit")
    include = [str(INCLUDE / "std"), str(INCLUDE), library]
    options = core.ProgramOptions(
        name="feedrate", arch=arch, std="c++20", include_path=include, device_as_default_execution_space=True
    )
    try:
        compiled = core.Program(text, "c++", options).compile("cubin", name_expressions=_KERNELS)
    except Exception as error:
        output = str(error).rstrip("\0 \n")
        if "compilation log:" not in output:
            raise Error(f"compiling: {output}") from error
        raise CompileError(output.split("compilation log:", 1)[1].strip()) from None
    lowered = compiled.symbol_mapping
    code = compiled.code
    assert isinstance(code, bytes)
    return code, [lowered[name].decode() for name in _KERNELS]


def _write(file: Path, image: bytes, names: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"names": names, "sha256": hashlib.sha256(image).hexdigest()})
    descriptor, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(head.encode() + b"\n" + image)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def _read(file: Path) -> tuple[bytes, list[str]]:
    head, image = file.read_bytes().split(b"\n", 1)
    header = json.loads(head)
    if hashlib.sha256(image).hexdigest() != header["sha256"]:
        raise ValueError(f"{file} is damaged")
    return image, list(header["names"])
