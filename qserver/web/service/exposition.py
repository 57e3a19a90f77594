"""Metrics as a page for Prometheus. Numbers are read from `metrics` and from `statistics()`.

It is imported when the first page is asked for: prometheus-client takes 2.5 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from qserver.archive.status import BackupStatus
from qserver.control.databases import OpenDatabaseStatistics
from qserver.control.open_transactions import OpenTransactionsStatistics
from qserver.control.replicas import ReplicaStatistics
from qserver.control.space import SpaceStatistics
from qserver.durability.page_cache import CacheStatistics
from qserver.http1 import Counters, ServerStatistics
from qserver.pgwire import Statistics
from qserver.replication.replicated_logs import StreamStatistics
from qserver.web.service.metrics import BUCKETS_SECONDS, Metrics, RouteMetrics


def request_families(metrics: Metrics) -> Iterable[Metric]:
    requests = CounterMetricFamily(
        "qserver_requests", "Requests answered", labels=("route", "status")
    )
    seconds = HistogramMetricFamily(
        "qserver_request_seconds", "From request to answer", labels=("route",)
    )
    for name, route in metrics.routes.items():
        for status, count in route.statuses.items():
            requests.add_metric((name, str(status)), count)
        if route.statuses:
            seconds.add_metric((name,), _buckets(route), route.seconds)
    yield requests
    yield seconds
    errors = CounterMetricFamily("qserver_errors", "Errors, by code", labels=("code",))
    for code, count in metrics.errors.items():
        errors.add_metric((code,), count)
    yield errors
    for name, meaning, value in (
        ("rate_limited", "Requests refused for their number", metrics.rate_limited),
        ("internal_errors", "Requests that met a bug", metrics.internal_errors),
        (
            "idempotent_replays",
            "Requests answered with what an earlier one was answered",
            metrics.replayed,
        ),
        ("bulk_rows", "Rows that were inserted in bulk", metrics.bulk_rows),
        ("bulk_bytes", "Bytes of rows in bulk that have come in", metrics.bulk_bytes),
        (
            "loop_stalls",
            "Times that the event loop stood still for a second or more",
            metrics.loop_stalls,
        ),
    ):
        yield CounterMetricFamily(f"qserver_{name}", meaning, value=value)


def _buckets(route: RouteMetrics) -> list[tuple[str, float]]:
    buckets, total = [], 0
    for bound, count in zip((*BUCKETS_SECONDS, "+Inf"), route.buckets, strict=True):
        total += count
        buckets.append((str(bound), float(total)))
    return buckets


class _Families(Collector):
    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()


def server_text(
    metrics: Metrics,
    databases: tuple[OpenDatabaseStatistics, ...],
    uptime_s: float,
    counters: Counters | None,
    pages: CacheStatistics,
    space: SpaceStatistics,
    live_queries: int,
    feed_readers: int,
    transactions: OpenTransactionsStatistics,
    replicas: Sequence[ReplicaStatistics] = (),
    streams: Sequence[StreamStatistics] = (),
    postgres: Statistics | None = None,
    backups: Sequence[BackupStatus] = (),
    now: float = 0.0,
) -> bytes:
    """The page that Prometheus reads, for the server's operator.

    `counters` is None unless our own server serves, `postgres` unless clients of PostgreSQL are
    served. `now` is the time of which the backups speak.
    """

    def families() -> Iterable[Metric]:
        yield GaugeMetricFamily("qserver_uptime_seconds", "Since the start", value=uptime_s)
        yield GaugeMetricFamily("qserver_databases_open", "Open now", value=len(databases))
        yield GaugeMetricFamily(
            "qserver_column_vectors_bytes",
            "Column vectors that pages keep",
            value=pages.bytes_vectors,
        )
        yield GaugeMetricFamily("qserver_live_queries", "Open now", value=live_queries)
        yield GaugeMetricFamily("qserver_feed_readers", "Reading now", value=feed_readers)
        yield from request_families(metrics)
        yield from database_families(databases)
        yield from page_families(pages)
        yield from open_transaction_families(transactions)
        yield from space_families(space)
        yield from replica_families(replicas)
        yield from stream_families(streams)
        yield from backup_families(backups, now)
        if counters is not None:
            yield from server_families(counters.statistics())
        if postgres is not None:
            yield from postgres_families(postgres)

    return _text(_Families(families), ProcessCollector(registry=None))


def databases_text(databases: tuple[OpenDatabaseStatistics, ...]) -> bytes:
    """The same page for a key that sees only some databases."""
    return _text(_Families(lambda: database_families(databases)))


def merged_text(pages: Mapping[int, bytes], *, is_labelled: bool) -> bytes:
    """The pages of several processes as one; if `is_labelled`, samples have their process."""

    def families() -> Iterable[Metric]:
        merged: dict[str, Metric] = {}
        for process, page in pages.items():
            label = {"process": str(process)} if is_labelled else {}
            for family in text_string_to_metric_families(page.decode()):
                into = merged.setdefault(
                    family.name, Metric(family.name, family.documentation, family.type)
                )
                samples = family.samples
                into.samples += [each._replace(labels={**each.labels, **label}) for each in samples]
        return merged.values()

    return _text(_Families(families))


def _text(*collectors: Collector) -> bytes:
    registry = CollectorRegistry()
    for each in collectors:
        registry.register(each)
    return generate_latest(registry)


def database_families(databases: tuple[OpenDatabaseStatistics, ...]) -> Iterable[Metric]:
    """The statistics of each open database."""
    for name, meaning, read in _COUNTERS:
        family = CounterMetricFamily(name, meaning, labels=("database",))
        for each in databases:
            value = read(each)
            if value is not None:
                family.add_metric((each.id,), value)
        yield family
    versions = GaugeMetricFamily(
        "qserver_database_version", "Newest durable version", labels=("database",)
    )
    users = GaugeMetricFamily(
        "qserver_database_users", "Requests that use it now", labels=("database",)
    )
    sizes = GaugeMetricFamily(
        "qserver_database_bytes", "Bytes that its files take", labels=("database",)
    )
    oldest = GaugeMetricFamily(
        "qserver_history_oldest_version", "First version that can be read", labels=("database",)
    )
    kept = GaugeMetricFamily(
        "qserver_history_log_bytes", "Bytes of the log that history keeps", labels=("database",)
    )
    for each in databases:
        users.add_metric((each.id,), each.users)
        sizes.add_metric((each.id,), each.size_bytes)
        if (history := each.database.history) is not None:
            oldest.add_metric((each.id,), history.oldest)
            kept.add_metric((each.id,), history.log_bytes)
        if each.database.generation is not None:
            versions.add_metric((each.id,), each.database.generation.versions.durable)
    yield from (versions, users, sizes, oldest, kept)


def replica_families(replicas: Sequence[ReplicaStatistics]) -> Iterable[Metric]:
    """What this process follows of others' databases."""
    for field, meaning in _REPLICAS.items():
        kind = CounterMetricFamily if field in ("records", "reads") else GaugeMetricFamily
        family = kind(f"qserver_replica_{field}", meaning, labels=("database",))
        for each in replicas:
            family.add_metric((each.id,), getattr(each, field))
        yield family


_REPLICAS: Final = {
    "version": "Newest version that a replica has",
    "behind": "Durable versions of the owner that a replica has not applied yet",
    "records": "Records that a replica has applied",
    "reads": "Requests that a replica has answered",
}


def space_families(space: SpaceStatistics) -> Iterable[Metric]:
    yield GaugeMetricFamily(
        "qserver_organizations_full",
        "Organizations that store as much as they may",
        value=space.organizations_full,
    )
    if space.disk_free_bytes is not None:
        yield GaugeMetricFamily(
            "qserver_disk_free_bytes", "Left on the disk of the data", value=space.disk_free_bytes
        )


def stream_families(streams: Sequence[StreamStatistics]) -> Iterable[Metric]:
    """The streams of a replicated log, by the database that each is of."""
    for field, name, meaning in (
        ("messages", "messages", "Sequence of the last message"),
        ("logged", "bytes", "Bytes of messages since the last base, about"),
        ("base", "base", "Message at which the last base was made"),
    ):
        family = GaugeMetricFamily(f"qserver_stream_{name}", meaning, labels=("database",))
        for each in streams:
            family.add_metric((each.root,), getattr(each, field))
        yield family


def backup_families(backups: Sequence[BackupStatus], now: float) -> Iterable[Metric]:
    """The continuous backups of the data folder, by their targets."""
    for name, meaning, value in (
        ("lag_seconds", "How far it is behind", lambda each: max(0.0, now - each.until)),
        ("generation_seconds", "Since its files were copied", lambda each: now - each.begins),
        ("bytes_saved", "Bytes that its process has saved", lambda each: each.bytes_saved),
        (
            "databases_copied_anew",
            "Databases whose log was cut before it was saved",
            lambda each: len(each.copied_anew),
        ),
    ):
        family = GaugeMetricFamily(f"qserver_backup_{name}", meaning, labels=("target",))
        for each in backups:
            if each.until:
                family.add_metric((each.target,), value(each))
        yield family


def page_families(pages: CacheStatistics) -> Iterable[Metric]:
    """What the pages of all databases take, and how often they come and go."""
    for field, meaning in _PAGES.items():
        kind = CounterMetricFamily if field in ("loads", "evictions") else GaugeMetricFamily
        yield kind(f"qserver_pages_{field}", meaning, value=getattr(pages, field))


def open_transaction_families(transactions: OpenTransactionsStatistics) -> Iterable[Metric]:
    """How many transactions are open, what they hold, and how they end."""
    yield GaugeMetricFamily("qserver_open_transactions", "Open now", value=transactions.held)
    yield GaugeMetricFamily(
        "qserver_open_transactions_failed",
        "Open transactions that wait for a rollback",
        value=transactions.failed,
    )
    yield GaugeMetricFamily(
        "qserver_open_transactions_bytes",
        "Bytes that open transactions hold, estimated",
        value=transactions.bytes,
    )
    yield GaugeMetricFamily(
        "qserver_open_transactions_oldest_seconds",
        "Age of the oldest open transaction",
        value=transactions.oldest_seconds,
    )
    yield CounterMetricFamily(
        "qserver_open_transactions_opened", "Transactions opened", value=transactions.opened
    )
    ended = CounterMetricFamily(
        "qserver_open_transactions_ended", "Open transactions by their end", labels=("end",)
    )
    for end, count in transactions.ended.items():
        ended.add_metric((end,), count)
    yield ended


_PAGES: Final = {
    "bytes_max": "Bytes of QSERVER_MEMORY, which all these share",
    "bytes_cached": "Bytes of saved pages that are in memory, estimated",
    "bytes_unsaved": "Bytes of pages that no checkpoint has saved yet, estimated",
    "bytes_statements": "Bytes that statements and unread answers hold",
    "bytes_others": "Bytes of column vectors and plans, which go first",
    "cached": "Saved pages that are in memory",
    "loads": "Pages loaded from the disk",
    "evictions": "Pages let go to make room",
}


def server_families(server: ServerStatistics) -> Iterable[Metric]:
    for field, meaning in _SERVER.items():
        value = getattr(server, field)
        kind = GaugeMetricFamily if field == "connections_open" else CounterMetricFamily
        yield kind(f"qserver_http_{field}", meaning, value=value)


_SERVER: Final = {
    "connections_open": "Connections open now",
    "connections_accepted": "Connections accepted",
    "connections_refused": "Connections refused because there were too many",
    "connections_moved_out": "Connections given to another process",
    "connections_moved_in": "Connections taken from another process",
    "requests": "Requests that reached the application",
    "requests_refused": "Requests that were malformed, too large or too slow",
    "bytes_in": "Bytes received",
    "bytes_out": "Bytes sent",
    "log_lines_lost": "Lines that the access log could not take",
}


def postgres_families(statistics: Statistics) -> Iterable[Metric]:
    """The numbers of sessions over PostgreSQL's protocol."""
    for field, meaning in _POSTGRES.items():
        kind = GaugeMetricFamily if field == "connections_open" else CounterMetricFamily
        yield kind(f"qserver_pg_{field}", meaning, value=getattr(statistics, field))


_POSTGRES: Final = {
    "connections_open": "Sessions open now",
    "connections_accepted": "Connections accepted",
    "connections_refused": "Connections refused because there were too many",
    "connections_moved_out": "Connections given to another process",
    "connections_moved_in": "Connections taken from another process",
    "authentications_failed": "Clients that were not let in",
    "cancels": "Requests to cancel a statement",
    "copied_rows": "Rows that COPY has brought in",
    "bytes_in": "Bytes received",
    "bytes_out": "Bytes sent",
}

Read = Callable[[OpenDatabaseStatistics], float | None]


def _of_log(field: str) -> Read:
    return lambda each: (
        None
        if each.database.generation is None
        else float(getattr(each.database.generation.log, field))
    )


def _exclusive(each: OpenDatabaseStatistics) -> float:
    return each.database.gateway.exclusive


def _restarts(each: OpenDatabaseStatistics) -> float:
    return each.database.restarts


_COUNTERS: Final[tuple[tuple[str, str, Read], ...]] = (
    (
        "qserver_transactions",
        "Transactions run",
        lambda each: each.database.gateway.transactions,
    ),
    ("qserver_retries", "Transactions run again", lambda each: each.database.gateway.retries),
    ("qserver_exclusive_commits", "Transactions that nobody could outrun", _exclusive),
    ("qserver_turns", "The old name of qserver_exclusive_commits", _exclusive),
    ("qserver_restarts", "Times that its engine restarted and recovered", _restarts),
    ("qserver_falls", "The old name of qserver_restarts, until the next release", _restarts),
    ("qserver_room_refused", "Statements refused for lack of room", lambda each: each.refused),
    ("qserver_plan_hits", "Statements whose plan was kept", lambda each: each.plans.hits),
    ("qserver_plan_misses", "Statements that were planned", lambda each: each.plans.misses),
    (
        "qserver_live_wakeups",
        "Times that a commit mattered to a live query",
        lambda each: each.database.watches.wakeups,
    ),
    (
        "qserver_page_loads",
        "Pages read because a statement wanted them",
        lambda each: each.database.page_loads,
    ),
    ("qserver_log_groups", "Groups written to the log", _of_log("groups")),
    ("qserver_log_records", "Records written to the log", _of_log("records")),
    ("qserver_log_bytes", "Bytes written to the log", _of_log("bytes")),
)
