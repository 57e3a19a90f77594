"""Counts connections, requests and bytes, for metrics.

The caller makes one `Counters`, and gives it to `serve` and to the metrics page.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    """The counters at one moment. All but `connections_open` only grow."""

    connections_open: int
    connections_accepted: int
    connections_refused: int
    """Closed with a 503: too many connections."""
    connections_moved_out: int
    """Given to another process."""
    connections_moved_in: int
    """Taken from another process, or back from where they could not go."""
    requests: int
    """Requests that reached the application."""
    requests_refused: int
    """Requests that the server answered itself: malformed, too large, too slow."""
    bytes_in: int
    bytes_out: int
    log_lines_lost: int
    """Lines that the access log could not take."""


class Counters:
    """The running counters. Plain attributes: each request updates several of them."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections_accepted",
        "connections_moved_in",
        "connections_moved_out",
        "connections_open",
        "connections_refused",
        "log_lines_lost",
        "requests",
        "requests_refused",
    )

    def __init__(self) -> None:
        self.connections_open = 0
        self.connections_accepted = 0
        self.connections_refused = 0
        self.connections_moved_out = 0
        self.connections_moved_in = 0
        self.requests = 0
        self.requests_refused = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.log_lines_lost = 0

    def statistics(self) -> ServerStatistics:
        return ServerStatistics(
            connections_open=self.connections_open,
            connections_accepted=self.connections_accepted,
            connections_refused=self.connections_refused,
            connections_moved_out=self.connections_moved_out,
            connections_moved_in=self.connections_moved_in,
            requests=self.requests,
            requests_refused=self.requests_refused,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            log_lines_lost=self.log_lines_lost,
        )

    def __repr__(self) -> str:
        return (
            f"<{self.connections_open} connections open of {self.connections_accepted}, "
            f"{self.requests} requests, {self.bytes_in} bytes in, {self.bytes_out} bytes out>"
        )
