"""Tables described by their columns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ..document import Table


@dataclass(frozen=True)
class Column:
    heading: str
    cell: Callable  # returns the cell of a point
    right: bool = False  # aligned to the right


number = partial(Column, right=True)


def table(columns: Iterable[Column], points: Iterable) -> Table:
    """A table with one line per point."""
    columns = list(columns)
    rows = [[column.cell(point) for column in columns] for point in points]
    right = {place for place, column in enumerate(columns) if column.right}
    return Table([column.heading for column in columns], rows, right)
