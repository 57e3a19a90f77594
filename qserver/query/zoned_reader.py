"""A transaction whose scans are judged in the session's time zone, also later, by the commit.

A scan's predicate is part of the footprint: shards evaluate it after the statement has ended, when
no session's zone is set. So it brings its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from qserver.values.keys import Bound, Key, Predicate, Row
from qserver.values.zones import InSessionZone


class ZonedReader:
    def __init__(self, reader: Any, zone: tzinfo) -> None:
        self._reader = reader
        self._zone = zone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def before(self) -> ZonedReader:
        return ZonedReader(self._reader.before(), self._zone)

    def scan(
        self,
        tree: int,
        low: Bound = None,
        high: Bound = None,
        predicate: Predicate | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[list[Key], list[Row]]]:
        wanted = self._zoned(predicate)
        pages: Iterator[Any] = self._reader.scan(tree, low, high, wanted, backward, limit)
        return pages

    def scan_values(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[list[Row]]:
        pages: Iterator[Any] = self._reader.scan_values(tree, low, high, self._zoned(predicate))
        return pages

    def scan_chunks(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[Any]:
        chunks: Iterator[Any] = self._reader.scan_chunks(tree, low, high, self._zoned(predicate))
        return chunks

    def _zoned(self, predicate: Predicate | None) -> Predicate | None:
        if predicate is None:
            return None
        zone = self._zone

        def in_zone(row: Row) -> Any:
            with InSessionZone(zone):
                return predicate(row)

        return in_zone
