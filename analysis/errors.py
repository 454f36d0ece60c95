"""Errors that end a command with a one-line message."""


class BadInput(Exception):
    """An invalid argument. The message names the argument, its value and the allowed values. Exit code 2."""

    def __init__(self, argument: str, value: object, problem: str, allowed: str):
        super().__init__(f"{argument} '{value}': {problem}; allowed: {allowed}")


class CannotWrite(Exception):
    """A file that could not be written. The message names the file and the cause. Exit code 1."""

    def __init__(self, file: object, cause: OSError):
        super().__init__(f"cannot write {file}: {cause.strerror or cause}")
