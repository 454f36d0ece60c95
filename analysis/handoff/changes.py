"""Sentences on which way is cheapest at which sizes, and on the cost of moving the bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from .. import units
from ..load import Results
from . import points as handoff
from .cheapest import Place

USES = {"cached": "Tensors that the readers have received before (cached)", "first": "New tensors (first)"}


@dataclass(frozen=True)
class Stretch:
    """Neighbouring sizes, and the ways that are cheapest, or not clearly slower than the cheapest, at all of them."""

    ways: list[str]
    places: list[Place]

    @property
    def clear(self) -> bool:
        return all(place.clear for place in self.places)

    @property
    def open(self) -> bool:
        """Whether no two ways clearly differ at any of these sizes."""
        return all(len(place.alike) == len(place.ranked) > 1 for place in self.places)


def stretches(places: Iterable[Place]) -> list[Stretch]:
    """The stretches of one use, by size. A stretch continues as long as one of its ways is still among the cheapest, so
    a different ranking that is only due to noise does not start a new one."""
    found: list[Stretch] = []
    for place in places:
        shared = [way for way in found[-1].ways if way in place.alike] if found else []
        if shared:
            found[-1] = Stretch(shared, [*found[-1].places, place])
        else:
            found.append(Stretch(place.alike, [place]))
    return found


def sentences(results: Results, found: Sequence[Place]) -> list[str]:
    """One entry per use. Sizes at which some ways were not requested are left out, because one of those may be
    cheaper there."""
    entries = []
    for use in dict.fromkeys(place.use for place in found):
        some = [place for place in found if place.use == use and place.complete]
        parts = [_sentence(stretch) for stretch in stretches(some)]
        parts += [moved] if (moved := _moved_sentence(results, some)) else []
        entries += [f"{USES.get(use, use)}: {' '.join(parts)}"] if parts else []
    return entries


def _sentence(stretch: Stretch) -> str:
    first = stretch.places[0]
    at = _range([place.size for place in stretch.places])
    if len(first.ranked) == 1 and all(place.second is None for place in stretch.places):
        return f"Only {first.best['variant']} was measured {at}."
    if stretch.open:
        return f"The ways do not clearly differ {at}."
    names = listed(sorted(stretch.ways, key=handoff.place))
    doubt = "" if stretch.clear else ", or not clearly slower than the cheapest"
    return f"{names} {'are' if len(stretch.ways) > 1 else 'is'} cheapest {at}{doubt}."


def _range(sizes: list[int]) -> str:
    if len(sizes) == 1:
        return f"at {units.size(sizes[0])}"
    return f"from {units.size(sizes[0])} to {units.size(sizes[-1])}"


def listed(names: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _moved_sentence(results: Results, places: list[Place]) -> str:
    """A sentence on the best way that moves the bytes over the bus, compared with the best way that moves none,
    at the smallest and the largest size at which both were measured. Empty if there is no such size; the CPU device has
    no bus."""
    moving = {one["name"] for one in results.experiment.members.get("way", ()) if one.get("moves_over_bus", 0)}
    on_gpu = [place for place in places if place.best["device"] != "cpu"]
    pairs = [(place.size, *pair) for place in on_gpu if (pair := _pair(place, moving))]
    if not pairs:
        return ""
    ends = [pairs[0], *pairs[-1:]] if len(pairs) > 1 else pairs
    parts = [
        f"{units.ratio(mover[handoff.TIME] / other[handoff.TIME])} times as long at {units.size(size)} "
        f"({mover['variant']})"
        for size, mover, other in ends
    ]
    return f"Compared with the best way that moves no bytes over the bus, the best that does takes {listed(parts)}."


def _pair(place: Place, moving: set[str]) -> tuple[pd.Series, pd.Series] | None:
    mover = next((point for point in place.ranked if point["way"] in moving), None)
    other = next((point for point in place.ranked if point["way"] not in moving), None)
    return None if mover is None or other is None else (mover, other)
