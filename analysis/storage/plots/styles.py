"""The style of each engine, the same in every figure: a colour and a marker."""

STYLES = {
    "pread": ("#7F7F7F", "x"),
    "pread_pinned": ("#E69F00", "v"),
    "threads": ("#D55E00", "o"),
    "mmap": ("#009E73", "^"),
    "io_uring": ("#0072B2", "s"),
    "cufile": ("#CC79A7", "D"),
    "nvme_user": ("#56B4E9", "P"),
}
OTHER = ("#8A7F00", "h")
MEDIANS = "Markers are medians of the repetitions, and whiskers are 95 % intervals."


def style(engine: str) -> dict:
    """The colour and the marker as keyword arguments."""
    colour, marker = STYLES.get(engine, OTHER)
    return {"color": colour, "marker": marker}
