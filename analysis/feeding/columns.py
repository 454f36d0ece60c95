"""Tables described by their columns, and the columns that several tables share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

from .. import units
from ..document import Table


@dataclass(frozen=True)
class Column:
    heading: str
    cell: Callable  # returns the cell of a point
    right: bool = False  # aligned to the right


number = partial(Column, right=True)


def table(columns: Iterable[Column], points: Iterable) -> Table:
    """A table with one row per point."""
    columns = list(columns)
    rows = [[column.cell(point) for column in columns] for point in points]
    right = {place for place, column in enumerate(columns) if column.right}
    return Table([column.heading for column in columns], rows, right)


TASK = Column("task", itemgetter("task"))
VARIANT = Column("queue + transfer", lambda point: f"{point['variant']}\n{point['setting']}".strip())
COST = (
    number("host threads", lambda point: units.number(point.get("host_threads"))),
    number("cores used", lambda point: units.ratio(point.get("own_cores"))),
    number("server's cores", lambda point: units.ratio(point.get("service_cores"))),
    number("SMs", lambda point: units.number(point.get("sms"))),
    number("GPU power", lambda point: units.of_unit("W")(point.get("power_w"))),
    Column("delivery", lambda point: point.get("delivery") or units.NOTHING),
)
