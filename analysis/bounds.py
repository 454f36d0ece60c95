"""Bounds of figures in words; in rows, a bound is an expression over limits."""

from . import units

_COUNTS = {2: "two", 3: "three", 4: "four"}
_ONCE = ("window", "batch")  # given values that are divided by a time: messages per time


def words(bound: dict | float | None) -> str:
    """A bound in words, without its unit: 'copy engine both', or 'two Redis round trips and a copy, launch, copy, once
    per window'. Empty if there is no bound."""
    if bound is None:
        return ""
    if not isinstance(bound, dict):
        return f"{bound:g}"
    if name := bound.get("floor") or bound.get("ceiling"):
        return units.words(name)
    if "given" in bound:
        return units.words(bound["given"])
    if "sum" in bound:
        return " and ".join(dict.fromkeys(_term(part) for part in bound["sum"]))
    if isinstance(bound.get("product", [None])[0], (int, float)) and _is_time(bound["product"][1]):
        return _term(bound)
    if "product" in bound:  # numbers and given values times a limit: name only the limit
        return " × ".join(words(part) for part in bound["product"] if _has_limit(part)) or words(bound["product"][-1])
    above, below = bound["quotient"]
    if not _has_limit(above) and _is_time(below):
        once = next((name for name in _ONCE if name in _given_names(above)), "")
        return f"{words(below)}, once per {once}" if once else words(below)
    return words(below) if not _has_limit(above) else words(above)


def ceiling(bound: dict | float | None) -> str:
    """The name of the ceiling if a bound is a ceiling per message or per byte; otherwise empty."""
    if not isinstance(bound, dict):
        return ""
    if "quotient" in bound and _given_names(bound["quotient"][1]):
        return ceiling(bound["quotient"][0])
    if "product" in bound and _given_names(bound["product"][0]) == {"payload"}:
        return ceiling(bound["product"][-1])
    return bound.get("ceiling", "")


def _has_limit(part: dict | float) -> bool:
    """Whether a part contains a limit; numbers and given values are not limits."""
    if not isinstance(part, dict) or "given" in part:
        return False
    return any(_has_limit(each) for each in part.get("product", ())) or not set(part) <= {"product"}


def _is_time(part: dict | float) -> bool:
    """Whether a part is a time."""
    if not isinstance(part, dict):
        return False
    return "floor" in part or any(_is_time(each) for key in ("sum", "product") for each in part.get(key, ()))


def _given_names(part: dict | float) -> set[str]:
    if not isinstance(part, dict):
        return set()
    return {part["given"]} if "given" in part else set().union(*(_given_names(each) for each in part.get("product", ())))


def _term(part: dict | float) -> str:
    """A term of a sum: 'two Redis round trips', 'a copy, launch, copy'."""
    if isinstance(part, dict) and "floor" in part:
        return f"a {words(part)}"
    if isinstance(part, dict) and "product" in part and isinstance(part["product"][0], (int, float)):
        count, of = part["product"][0], part["product"][1]
        return f"{_COUNTS.get(count, f'{count:g}')} {words(of)}s"
    if isinstance(part, dict) and "quotient" in part and isinstance(part["quotient"][0], dict):
        return f"the {part['quotient'][0].get('given', '')} by {words(part['quotient'][1])}"
    return words(part)
