"""What the last syncs of a log took, and whether the event loop may wait for the next one.

A sync in a thread costs the loop and the thread more time than most disks need for it: two
hand-overs, and the interpreter's lock each time. A sync in the loop costs none, but nobody else is
served meanwhile. So the loop waits while syncs are as short as the hand-overs. It waits longer
while the client that commits is alone, because nobody would be served.

What is long once is chance: the average of the last syncs decides. After a doubt all syncs take a
thread for so long that a disk that stalls takes only a share of the loop's time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

SHORT_SECONDS: Final = 0.0003
SHORT_SECONDS_ALONE: Final = 0.003
"""The loop waits for syncs that take no longer than this, on average."""

STALL_SECONDS: Final = 0.005
"""One that takes so long is doubted by itself."""

SHARE: Final = 0.01
SHARE_ALONE: Final = 0.1
"""How much of the loop's time a disk may take by stalling."""

NEWEST_SHARE: Final = 0.2
"""The weight of the newest sync in the moving average."""


class SyncTimes:
    """Only syncs in the loop tell how long one takes: others also wait for the interpreter."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.average = 0.0
        self._doubted = inf
        """How long the sync took that began the doubt. A disk has to show first what it is."""
        self._doubted_at = 0.0

    def may_wait(self, is_alone: bool) -> bool:
        """Return whether the loop may wait for a sync; `is_alone`: nobody else would be served."""
        share = SHARE_ALONE if is_alone else SHARE
        if (self._now() - self._doubted_at) * share < self._doubted:
            return False
        if self.average > _limit(is_alone):
            self._doubt(self.average)
            return False
        return True

    def note(self, took: float, here: bool, is_alone: bool) -> None:
        """Note a sync; `here`: in the loop."""
        if took > STALL_SECONDS:
            self._doubt(took)
        elif self._doubted == inf:
            self._doubted = 0.0
        if here:
            limit = _limit(is_alone)
            self.average += NEWEST_SHARE * (min(took, 2 * limit) - self.average)
            if self.average > limit:
                self._doubt(took)

    def _doubt(self, took: float) -> None:
        self._doubted, self._doubted_at = took, self._now()
        self.average = 0.0

    def __repr__(self) -> str:
        doubt = f", doubted after {self._doubted * 1e3:.1f} ms" if self._doubted else ""
        return f"syncs of {self.average * 1e3:.2f} ms{doubt}"


def _limit(is_alone: bool) -> float:
    return SHORT_SECONDS_ALONE if is_alone else SHORT_SECONDS
