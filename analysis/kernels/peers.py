"""The best peer of a point, the reason if there is none, and the peers that are absent."""

from collections import Counter

import pandas as pd

from .. import figure_text, units
from ..load import Results
from . import points as kernels
from . import rungs
from .ladders import Ladder
from .points import ALONE, SHARE


def best(results: Results, point: pd.Series) -> str:
    """The name of the fastest peer in most rows of a point; empty if no row has a peer."""
    fastest = [min(peers, key=peers.get) for peers in kernels.row_values(results, point, "peers") if peers]
    return Counter(fastest).most_common(1)[0][0] if fastest else ""


def share_cell(results: Results, ladder: Ladder, point: pd.Series) -> str:
    """The share of the best peer with its name, and whether the two clearly differ; without a peer, the reason."""
    if point["step"] == 0 or point[SHARE] != point[SHARE]:
        return units.NOTHING if point["step"] == 0 else f"no peer: {why_none(results, ladder, point)}"
    lines = [figure_text.figure(units.ratio, point, SHARE, True), f"of {best(results, point)}"]
    return "\n".join(lines if _differs(point) else [*lines, "no clear difference"])


def _differs(point: pd.Series) -> bool:
    """Whether the interval excludes a share of 1; false without an interval."""
    return bool(point[f"{SHARE}_low"] > 1 or point[f"{SHARE}_high"] < 1)


def why_none(results: Results, ladder: Ladder, point: pd.Series) -> str:
    """The reason why a rung's point has no share."""
    if point["against"] == ALONE:
        return "it was timed alone"
    failed = sorted({name for one in kernels.row_values(results, point, "failed_peers") for name in one})
    if failed:
        return f"{', '.join(failed)} failed"
    possible = rungs.peers_of(ladder.known, point["rung"])
    if not possible:
        return "the ladder has none for this device"
    if any(peer["rung"] in {one.name for one in possible} for peer in ladder.peers):
        return "none was timed in turn"
    missing = [one.name for one in possible if one.unavailable]
    if len(missing) == len(possible):
        return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} unavailable"
    return "none solves this problem"


def sentences(results: Results, found: list[Ladder]) -> list[str]:
    """One sentence per peer that is unavailable, and one per problem in which a peer was not timed or failed."""
    entries: dict[str, None] = {}
    for ladder in found:
        possible = {one.name: one for point in ladder.rungs for one in rungs.peers_of(ladder.known, point["rung"])}
        timed = {point["rung"] for point in ladder.peers}
        timed |= {name for point in ladder.rungs for one in kernels.row_values(results, point, "peers") for name in one}
        failed = {
            name: text
            for point in ladder.rungs
            for one in kernels.row_values(results, point, "failed_peers")
            for name, text in one.items()
        }
        for one in possible.values():
            if one.unavailable and one.name not in timed:
                entries[f"The library {one.name} is absent: {one.unavailable}."] = None
        timed |= failed.keys()
        others = [one.name for one in possible.values() if not one.unavailable and one.name not in timed]
        if others:
            names = ", ".join(others)
            entries[f"{ladder.problem}: {names} {'was' if len(others) == 1 else 'were'} not timed."] = None
        for name, text in failed.items():
            entries[f"{ladder.problem}: {name} failed and was not timed: {text}."] = None
    return list(entries)
