"""Points for tables and figures. A task is what all engines do alike: operation, order and residency of the blocks, and
their size. Depth, threads and an engine's own axes are its settings."""

from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from .. import stats, tables, units
from ..load import Results
from ..ranking import Ranking

# In the order of the experiment's page, from the baseline to GPUDirect. Other engines follow.
ORDER = ("pread", "pread_pinned", "threads", "mmap", "io_uring", "gpu_rings", "kvikio", "cufile", "nvme_user")
BYTES, BLOCKS, CPU = "bytes_per_second", "blocks_per_second", "cpu_seconds_per_gib"  # columns
GIB_IN_GB = (1 << 30) / 1e9
_LOAD = ("arrivals", "rate", "burst_us", "pause_us", "trace_file")
_SHARED_SETTINGS = ("depth", "threads")
_IN_GPU = "in_gpu"  # a column: blocks are found in a page cache in GPU memory
_NAMED = ("operation", "access", "direct", "residency", "lifetime", _IN_GPU)  # what `task` states in its own words


@dataclass(frozen=True)
class Place(Ranking):
    """One task and block size: the best point of each engine, best first."""

    task: str
    block: int
    ranked: list[pd.Series]
    tried: dict[str, int]  # the number of points by variant


def read(results: Results) -> pd.DataFrame:
    """The competing points under closed load, in the order of tasks, blocks and engines, with `task` in words."""
    return _read(results).copy()


@lru_cache(maxsize=8)  # as for stats.points
def _read(results: Results) -> pd.DataFrame:
    return described(results, stats.points(results.closed))


def described(results: Results, found: pd.DataFrame) -> pd.DataFrame:
    """The competing points with `task`, in order; empty if the catalogue has no figures."""
    if found.empty or BYTES not in found:
        return found.iloc[:0].assign(task=[], place=[], **{_IN_GPU: []})
    found = found[found["variant"].isin(results.contest)]
    cached = found["cache_pages"].fillna(0) if "cache_pages" in found else pd.Series(0, found.index)
    found = found.assign(**{_IN_GPU: pd.to_numeric(cached, errors="coerce").fillna(0) > 0})
    order = pd.DataFrame(
        {
            "write": found["operation"] == "write",
            "direct": found["direct"] == "yes",
            "cold": found["residency"] == "cold",
            "unordered": found["access"] != "sequential",
            "pass": found["lifetime"] == "pass",
            "rest": [str(point) for point in found[["machine", *task_axes(results)]].itertuples(index=False)],
            "block": found["block_bytes"],
            "place": found["engine"].map(place),
            "depth": found["depth"],
            "rate": found["rate"],
        }
    )
    words = [task(results, point) for _, point in found.iterrows()]
    in_order = order.sort_values(list(order.columns), kind="stable").index
    return found.assign(task=words, place=order["place"]).loc[in_order]


def place(engine: str) -> tuple[int, str]:
    return (ORDER.index(engine) if engine in ORDER else len(ORDER), engine)


def task_axes(results: Results) -> list[str]:
    """The axes that must be equal for a comparison of engines at one block size."""
    known = results.experiment.axes
    others = ("engine", "device", "block_bytes", *_LOAD, *_SHARED_SETTINGS)
    shared = [axis for axis in results.axes if axis not in others and not (axis in known and known[axis].owners)]
    return [*shared, _IN_GPU]


def task(results: Results, point: pd.Series) -> str:
    """The task in words, without the block size: 'read, random, O_DIRECT'."""
    cache = "O_DIRECT" if point["direct"] == "yes" else f"{point['residency']} page cache"
    if point[_IN_GPU]:
        cache = "page cache in GPU memory"
    passes = ["each pass opens and closes the files"] if point["lifetime"] == "pass" else []
    varying = tables.varying(results)
    rest = tables.place(results, point, [one for one in task_axes(results) if one not in _NAMED and one in varying])
    return ", ".join([point["operation"], point["access"], cache, *passes, *([rest] if rest else [])])


def setting(results: Results, point: pd.Series) -> str:
    """The engine's settings in words: depth, threads and its own axes, without those that have their defaults."""
    shared = tables.place(results, point, _unusual(results, point, ["threads"]))
    parts = (tables.place(results, point, ["depth"]), shared, own_setting(results, point))
    return ", ".join(part for part in parts if part)


def own_setting(results: Results, point: pd.Series) -> str:
    """The engine's own axes in words, without those that have their defaults."""
    known = results.experiment.axes
    own = [axis for axis in results.axes if axis in known and point["engine"] in known[axis].owners]
    return tables.place(results, point, _unusual(results, point, own))


def _unusual(results: Results, point: pd.Series, axes: list[str]) -> list[str]:
    known = results.experiment.axes
    return [axis for axis in axes if axis not in known or point[axis] != known[axis].default]


def places(results: Results, metric: str = BYTES, larger: bool = True) -> list[Place]:
    """All places, each with its engines ranked by the metric."""
    measured = read(results).dropna(subset=[metric])
    found = []
    keys = ["machine", *task_axes(results), "block_bytes"]
    for _, some in measured.groupby(keys, sort=False, dropna=False):
        ranked = some.sort_values(metric, ascending=not larger, kind="stable").drop_duplicates("variant")
        points = [point for _, point in ranked.iterrows()]
        tried = some["variant"].value_counts().to_dict()
        found.append(Place(points[0]["task"], int(points[0]["block_bytes"]), points, tried))
    return found


def engine_cell(results: Results, place: Place, point: pd.Series) -> str:
    """The engine with its settings and, if several of its settings compete, their number."""
    several = place.tried[point["variant"]]
    return "\n".join(
        part
        for part in (
            point["variant"],
            setting(results, point),
            f"best of {several} settings" if several > 1 else "",
        )
        if part
    )


def cores_per_gb(seconds_per_gib: float) -> str:
    """CPU seconds per GiB as cores per GB/s, which have the same unit except for the size of a GiB."""
    return units.ratio(seconds_per_gib / GIB_IN_GB)
