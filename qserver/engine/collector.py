"""Python's cyclic garbage collector, set for a process that holds databases.

Rows, keys and pages hold no cycles: reference counts free them. The collector does not know that.
Each commit makes some hundred objects of which history keeps many for a while, so by default it
would walk over all of them again and again and find nothing, for a sixth of the time of a commit.
So it is asked to look less often, and never at what was there when the process began to serve.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (20_000, 200, 20)
"""New objects before the youngest are looked at; how many such looks before the older are.

Nearly every cycle dies young. What is older are pages of recent versions, long lists that take
most of the time, and of which nothing is ever found."""


def settle_collector() -> None:
    """Leave what is in memory now alone, and look at what comes less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
