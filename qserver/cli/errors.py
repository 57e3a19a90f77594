"""Prints errors for people: one or two lines on standard error with a next step; no traceback.

qserver: cannot reach http://127.0.0.1:8000: connection refused
Is the server running (qserver serve), and is the URL right?
"""

from __future__ import annotations

import sys
from typing import Final

from qserver.errors import Forbidden, QserverError, RateLimited, Unauthorized

# For errors whose own text does not know the command line.
_NEXT: Final[dict[type[QserverError], str]] = {
    Unauthorized: "Pass a good key with --key or --key-file, or set QSERVER_API_KEY.",
    Forbidden: "Use a key that has the scope; qserver key list shows the scopes of each.",
    RateLimited: "Wait a moment, then try again.",
}


def report_error(error: QserverError) -> int:
    """Print the error; return the exit code of a failed command."""
    sys.stderr.write(f"qserver: {sentence(error)}\n")
    following = error.hint or _NEXT.get(type(error))
    if following:
        sys.stderr.write(f"{following}\n")
    return 1


def sentence(error: QserverError) -> str:
    """The message and any detail, on one line."""
    text = f"{error.message} ({error.detail})" if error.detail else error.message
    return " ".join(text.split())
