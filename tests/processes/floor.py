"""What a strong read must show: all that was answered before, and one thing for each version."""

from __future__ import annotations

from collections.abc import Iterator


class Floor:
    """Numbers that grow with each write, by version. All who ask run in one loop."""

    def __init__(self) -> None:
        self.version = 0
        """The greatest that was answered."""
        self._numbers: dict[int, int] = {}

    def raise_to(self, version: int) -> None:
        self.version = max(self.version, version)

    def judge(self, version: int, number: int, floor: int) -> Iterator[str]:
        """What is wrong with a read that began when `floor` had been answered."""
        if version < floor:
            yield f"has version {version}, and {floor} was answered before it began"
        known = self._numbers.setdefault(version, number)
        if known != number:
            yield f"shows {number} in version {version}, which has {known}"
        self.raise_to(version)
