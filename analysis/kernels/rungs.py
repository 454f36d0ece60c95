"""What the catalogue says about the rungs of a ladder and about their peers, which are libraries."""

from dataclasses import dataclass

from ..load import Results


@dataclass(frozen=True)
class Rung:
    """`step`: the place in the ladder, from 1; 0 for a peer. `changes`: what differs from the rung before."""

    name: str
    step: int = 0
    device: str = "cuda"
    one_core: bool = False
    changes: str = ""
    unavailable: str = ""

    @property
    def is_peer(self) -> bool:
        return self.step == 0

    @property
    def label(self) -> str:
        return f"{self.name}\nlibrary" if self.is_peer else f"{self.step}. {self.name}"


def of_ladder(results: Results, ladder: str) -> dict[str, Rung]:
    """The rungs and peers of a ladder by name, in the catalogue's order."""
    known = [one for one in results.experiment.members.get("rung", ()) if one.get("ladder", ladder) == ladder]
    return {
        one["name"]: Rung(
            one["name"],
            one.get("step", 0),
            one.get("device", "cuda"),
            one.get("one_core", False),
            one.get("description", ""),
            one.get("unavailable", ""),
        )
        for one in known
    }


def peers_of(rungs: dict[str, Rung], name: str) -> list[Rung]:
    """The peers that may be timed in turn with a rung: those of its device and, on the CPU, of its number of cores."""
    own = rungs.get(name, Rung(name))
    return [
        one
        for one in rungs.values()
        if one.is_peer and one.name != name and (one.device, one.one_core) == (own.device, own.one_core)
    ]
