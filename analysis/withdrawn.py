"""Limits that rows of the same run exceed. A limit that a figure beats by more than 5 % is wrong: something else than the
limit's own measurement was faster. It is taken back for the whole run, so no figure is called a share of it; the rows
that beat it keep their mark."""

import numpy as np
import pandas as pd

from . import flags
from .catalogue import Experiment


def withdraw(cells: pd.DataFrame, experiment: Experiment) -> None:
    """Removes from `cells` the bounds that a counting row of the same directory beats, with the ratios to them."""
    counting = flags.counting(cells)
    for name, figure in experiment.figures.items():
        ratio, bound, ceiling = (f"{name}_{part}" for part in ("ratio", "bound", "ceiling"))
        beaten = cells[ratio] > flags.ABOVE if figure.higher else cells[ratio] < 1 / flags.ABOVE
        wrong = set(zip(cells.loc[beaten & counting, "directory"], cells.loc[beaten & counting, bound]))
        if not wrong:
            continue
        taken_back = [key in wrong for key in zip(cells["directory"], cells[bound])]
        cells.loc[taken_back, ratio] = np.nan
        cells.loc[taken_back, [bound, ceiling]] = ""
