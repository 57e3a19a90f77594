"""The variables that are given to the tests, such as QSERVER_NIGHTLY.

They are read once. Then they are taken out of the environment, because the server refuses names
that begin like its own and are none of its settings, and some tests run it in this process.
"""

from __future__ import annotations

import os
from typing import Final

PREFIX: Final = "QSERVER_"
GIVEN: Final = {name: text for name, text in os.environ.items() if name.startswith(PREFIX)}


def hide() -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
