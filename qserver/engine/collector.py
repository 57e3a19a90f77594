"""Configures Python's cyclic garbage collector for a process that holds databases.

Rows, keys and pages hold no cycles: reference counts free them. Each commit makes some hundred
objects, many of which history keeps for a while. By default the collector would scan them again and
again and find nothing, for a sixth of the time of a commit. So it runs less often, and never scans
what existed when the process began to serve.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (2_000, 5, 8_000)
"""New objects before a scan of the youngest; how many such scans before one of the older.

A scan of the second generation sees what the scans of the youngest have left: 10,000 objects. Each
takes a millisecond at most, in which nothing else runs. Ten times as many at a time take as long in
sum, and nobody is served for up to 20 ms.

Nearly every cycle dies young. Older objects are pages of recent versions: long lists that take most
of the time and never hold a cycle.
"""


def scan_youngest() -> None:
    """Scan what has come since the last scan.

    Python counts new objects less those that were freed. While much is freed, that never reaches
    the threshold, and the next scan would be of all that has come since: with 200 statements that
    each hold a page of rows, of 200,000 objects.
    """
    gc.collect(0)


def scan_in_turn(number: int) -> None:
    """Scan the youngest, and now and then the second generation, while much is freed."""
    gc.collect(0 if number % THRESHOLDS[1] else 1)


def start_collector() -> None:
    """Exempt the program itself, which has been imported without the collector.

    Of its objects one in a hundred is garbage: a scan costs more than it frees.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()


def settle_collector() -> None:
    """Exempt what is in memory now, and scan new objects less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
