"""The exception of the package, which the native part raises."""


class Error(Exception):
    """A failure. Its text has no secrets of the configuration.

    `kind` is for a program that acts on it: `Config`, `UnknownServer`, `UnknownTool`, `Arguments`, `Denied`, `Unavailable`, `Login`, `Timeout`,
    `Lost`, `Server`, `Tool`, `Answer`, `Search`, `Filter`, `Io` or `Ended`.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return (type(self), (self.kind, str(self)))
