"""Takes an API key out of the arguments of the process, where all who list processes see it.

    qserver sql --key svc_k_…  ─►  the same process starts anew (exec), with QSERVER_API_KEY

The environment of a process is its user's alone. Between the two starts the key can be seen for a
moment; who sets the variable, or names a file, avoids that, too.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

FLAGS: Final = ("--key", "--api-key")


def hide_key(options: Namespace) -> None:
    """Start the process again without its key among the arguments, if that is there."""
    key = getattr(options, "key", None) or getattr(options, "api_key", None)
    if key is None:
        return
    arguments = without_key(sys.orig_argv, key)
    if len(arguments) < len(sys.orig_argv):  # else it would never end
        sys.stdout.flush()
        os.environ["QSERVER_API_KEY"] = key
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
