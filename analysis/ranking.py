"""What is ranked, with the two that matter most."""

import pandas as pd


class Ranking:
    """Has `ranked`: points, the best first; one at least."""

    ranked: list[pd.Series]

    @property
    def best(self) -> pd.Series:
        return self.ranked[0]

    @property
    def second(self) -> pd.Series | None:
        return self.ranked[1] if len(self.ranked) > 1 else None
