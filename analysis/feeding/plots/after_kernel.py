"""What a lone message takes beyond its kernel, against the kernel's length."""

from matplotlib.ticker import FuncFormatter

from ... import units
from ...load import Results
from ...plots.style import Drawing
from .. import after_kernel
from .styles import Styles

NAME, TITLE = "after_kernel", "Lone messages: time beyond the kernel against the kernel's length"
CAPTION = (
    "Each point is a kernel of one length: the p50 of a message with no other in flight, less the kernel's time. A line "
    "that rises and falls like a saw shows that what follows the kernel begins only at certain times."
)


def draw(results: Results, styles: Styles) -> Drawing | None:
    found = after_kernel.lines(results)
    if found.empty:
        return None
    figure, (axes,) = styles.figure(8, 4.2)
    for (_, _, variant), line in found.groupby(["machine", "rank", "variant"]):
        line = line.sort_values("kernel")
        axes.plot(line["kernel"], line["beyond"], markersize=4, **styles.line(variant))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: units.tick(units.nanoseconds)(value)))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="length of the kernel", ylabel="p50 beyond the kernel")
    styles.legend(figure, [axes])
    return Drawing(NAME, TITLE, CAPTION, figure)
