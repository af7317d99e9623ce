"""What of a tool and of a query is embedded. The program does the same."""

import re

# A description says first what the tool is for, then examples and advice, which only blur its vector.
LONGEST_DOCUMENT, LONGEST_QUERY = 48, 64

_boundary = re.compile(r"(?<=[^\W_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_separators = re.compile(r"[\W_]+")
_space = re.compile(r"\s+")


def split_name(name):
    """The words of an identifier: `createIssue`, `create_issue` and `create-issue` are `create issue`."""
    return _separators.sub(" ", _boundary.sub(" ", name)).strip().lower()


def document(server, name, description):
    """A tool's text: server and name in words, then what is said of it. Parameters' names only blur it."""
    names = f"{split_name(server)} {split_name(name)}".strip()
    return f"{names}: {_space.sub(' ', description).strip()}"
