"""A ranking of points, with access to the best and the runner-up."""

import pandas as pd


class Ranking:
    """Base of classes with `ranked`: at least one point, best first."""

    ranked: list[pd.Series]

    @property
    def best(self) -> pd.Series:
        return self.ranked[0]

    @property
    def second(self) -> pd.Series | None:
        return self.ranked[1] if len(self.ranked) > 1 else None
