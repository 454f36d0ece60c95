"""The one error a user can cause."""


class BadInput(Exception):
    """An argument that cannot be used: the message names it, its value and what is allowed. Exit code 2."""

    def __init__(self, argument: str, value: object, problem: str, allowed: str):
        super().__init__(f"{argument} '{value}': {problem}; allowed: {allowed}")
