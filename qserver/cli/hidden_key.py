"""Takes an API key out of the arguments of the process, where all who list processes see it.

    qserver sql --key svc_k_…        ─►  the same process starts anew (exec), with _QSERVER_KEY
    qserver serve --api-key svc_k_…  ─►  the same, with QSERVER_API_KEY, which is that setting

The environment of a process is its user's alone. Between the two starts the key can be seen for a
moment; who sets QSERVER_API_KEY, or names a file, avoids that, too.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

FLAGS: Final = ("--key", "--api-key")
VARIABLES: Final = {"key": "_QSERVER_KEY", "api_key": "QSERVER_API_KEY"}
"""What carries a key to the second start, by the option. A client's key is no setting: the server's
own may stand beside it."""


def hide_key(options: Namespace) -> None:
    """Start the process again without its key among the arguments, if that is there."""
    handed = os.environ.pop(VARIABLES["key"], None)
    if handed is not None and hasattr(options, "key"):
        options.key = handed
        return
    for option, variable in VARIABLES.items():
        key = getattr(options, option, None)
        arguments = sys.orig_argv if key is None else without_key(sys.orig_argv, key)
        if key is not None and len(arguments) < len(sys.orig_argv):  # else it would never end
            sys.stdout.flush()
            os.environ[variable] = key
            os.execv(sys.executable, arguments)


def without_key(arguments: Sequence[str], key: str) -> list[str]:
    """The arguments but for a flag with this key, which argparse also takes if it is cut short."""
    left: list[str] = []
    rest = iter(arguments)
    for each in rest:
        flag, equals, value = each.partition("=")
        if len(flag) < len("--k") or not any(known.startswith(flag) for known in FLAGS):
            left.append(each)
            continue
        value = value if equals else next(rest, "")
        if value != key:
            left += [each] if equals else [each, value]
    return left
