"""Rankings of points: the best, the runner-up, whether they clearly differ, and their figures in tables."""

from collections.abc import Callable

import pandas as pd

from . import figure_text, stability


class Ranking:
    """Base of classes with `ranked`: at least one point, best first."""

    ranked: list[pd.Series]

    @property
    def best(self) -> pd.Series:
        return self.ranked[0]

    @property
    def second(self) -> pd.Series | None:
        return self.ranked[1] if len(self.ranked) > 1 else None


def clearly_better(first: pd.Series, second: pd.Series, metric: str, larger: bool) -> bool:
    """Whether the first is better and the intervals do not overlap. False without an interval, or if the second's
    figure is only a bound, because its true value may be better."""
    better, worse = (first, second) if larger else (second, first)
    # The comparison is false if an end is NaN.
    return bool(better[f"{metric}_low"] > worse[f"{metric}_high"] and not second["limited"])


def ranked_figure(formatter: Callable, point: pd.Series, metric: str, larger: bool, stable_if: str) -> str:
    """The figure by which a point is ranked, with lines that warn of a single repetition, which has no interval, and of
    unstable repetitions. `stable_if`: the metric's name in a point's `unstable`."""
    alone = "\none repetition" if point["repetitions"] == 1 else ""
    return f"{figure_text.figure(formatter, point, metric, larger)}{alone}{stability.mark(point, stable_if)}"
