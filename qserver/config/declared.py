"""All settings, each declared once: with its default, its meaning and its check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qserver import limits
from qserver.config.parsing import (
    api_key,
    cluster_key,
    history_seconds,
    host_url,
    kept_seconds,
    lease_seconds,
    link_address,
    log_copies,
    log_nodes,
    memory_size,
    milliseconds_or_none,
    node_name,
    one_of,
    optional,
    origins,
    port_or_none,
    seconds_or_never,
    seconds_or_none,
    some_seconds,
    switch,
    text_of,
    web_address_or_none,
    whole,
)

IN_MEMORY: Final = ":memory:"
"""As a data folder: keep nothing when the process ends."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `field` names it in `Settings`, `flag` on the command line."""

    name: str
    field: str
    default: str
    meaning: str
    parse: Callable[[str], Any]
    secret: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.field.removesuffix("_s").replace("_", "-")


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "QSERVER_HOST",
        "host",
        "127.0.0.1",
        "Address to listen on. With PORT set, as a platform does, the default is 0.0.0.0.",
        text_of,
    ),
    Setting(
        "QSERVER_PORT",
        "port",
        "8000",
        "Port to listen on, 0 for any free one. PORT, without the prefix, means the same.",
        whole(0, 65_535),
    ),
    Setting(
        "QSERVER_DATA_DIR",
        "data",
        "./qserver-data",
        f"Folder that holds the databases; made if absent. {IN_MEMORY} keeps nothing.",
        text_of,
    ),
    Setting(
        "QSERVER_API_KEY",
        "api_key",
        "",
        "The first API key (svc_k_…). Without it one is made and printed at the first start.",
        api_key,
        secret=True,
    ),
    Setting(
        "QSERVER_SHARDS",
        "shards",
        str(limits.SHARDS_DEFAULT),
        "Shards of a database. It may change from one start to the next.",
        whole(1, limits.SHARDS_MAX),
    ),
    Setting(
        "QSERVER_PROCESSES",
        "processes",
        "1",
        "Processes that share the databases; 0: one for each core. It may change at each start.",
        whole(0, limits.PROCESSES_MAX),
    ),
    Setting(
        "QSERVER_REPLICAS",
        "replicas",
        "0",
        "Other processes or nodes that follow each database and answer reads of it; a database may"
        " say otherwise. With one process, and no other node, there are none.",
        whole(0, limits.PROCESSES_MAX - 1),
    ),
    Setting(
        "QSERVER_LOG",
        "log",
        "",
        "Nodes of a replicated log, nats://host:4222,host:4222 or tls://…; without it files alone.",
        log_nodes,
    ),
    Setting(
        "QSERVER_LOG_TOKEN",
        "log_token",
        "",
        "The secret that the log's nodes ask for.",
        optional,
        secret=True,
    ),
    Setting(
        "QSERVER_LOG_COPIES",
        "log_copies",
        "3",
        "On how many of the log's nodes everything is: 1, 3 or 5.",
        log_copies,
    ),
    Setting(
        "QSERVER_NODE",
        "node",
        "",
        "Name of this server among those of a replicated log. Without it, that of the machine.",
        node_name,
    ),
    Setting(
        "QSERVER_TAKE_OVER",
        "take_over",
        "0",
        "1 serves the databases of a replicated log in place of another node: stop that one first.",
        switch,
    ),
    Setting(
        "QSERVER_APPEND_TIMEOUT_S",
        "append_timeout_s",
        "20",
        "Seconds that a commit waits for a replicated log; then its outcome is unknown.",
        some_seconds,
    ),
    Setting(
        "QSERVER_LINK",
        "link",
        "",
        "host:port where other nodes reach this one. With it several nodes share the databases.",
        link_address,
    ),
    Setting(
        "QSERVER_NODE_URL",
        "node_url",
        "",
        "URL where clients reach this node. Without it, the host of QSERVER_LINK and the port.",
        host_url,
    ),
    Setting(
        "QSERVER_CLUSTER_KEY",
        "cluster_key",
        "",
        "The secret that the nodes of a cluster share, 16 characters or more.",
        cluster_key,
        secret=True,
    ),
    Setting(
        "QSERVER_LEASE_S",
        "lease_s",
        "12",
        "Seconds for which a node may answer after it was last heard of: 2 to 120.",
        lease_seconds,
    ),
    Setting(
        "QSERVER_DATA_URL",
        "data_url",
        "",
        "URL of the host that serves queries. Without it any host serves everything.",
        host_url,
    ),
    Setting(
        "QSERVER_ALIAS_URL",
        "alias_url",
        "",
        "URL of a second host for queries, kept for old clients; control routes redirect there.",
        host_url,
    ),
    Setting(
        "QSERVER_CONTROL_URL",
        "control_url",
        "",
        "URL of the host that serves sessions, databases and keys.",
        host_url,
    ),
    Setting(
        "QSERVER_CORS_ORIGINS",
        "cors_origins",
        "*",
        "Origins of web pages that may call, separated by commas; * for all.",
        origins,
    ),
    Setting(
        "QSERVER_COMPRESSION",
        "compression",
        "1",
        "1 compresses long answers for clients that accept it; 0: never, as a proxy may do it.",
        switch,
    ),
    Setting(
        "QSERVER_CONSOLE",
        "console",
        "1",
        "1 serves the page /console; 0: the console is off. It can do what its user's key can.",
        switch,
    ),
    Setting(
        "QSERVER_OPEN_SIGNUP",
        "open_signup",
        "0",
        "1 lets anyone make an organization with POST /v1/signup.",
        switch,
    ),
    Setting(
        "QSERVER_SIGNUPS_PER_ADDRESS",
        "signups_per_address",
        str(limits.SIGNUPS_OF_ADDRESS_MAX),
        "Signups an hour from one address (of IPv6, from one /64); more are answered with 429.",
        whole(1, 1_000_000),
    ),
    Setting(
        "QSERVER_SIGNUPS_PER_HOUR",
        "signups_per_hour",
        str(limits.SIGNUPS_MAX),
        "Signups an hour from all addresses together; more are answered with 429.",
        whole(1, 1_000_000),
    ),
    Setting(
        "QSERVER_TRUST_FORWARDED",
        "trust_forwarded",
        "0",
        "1 takes the address of a caller from the end of X-Forwarded-For: only behind a proxy.",
        switch,
    ),
    Setting(
        "QSERVER_DEFAULT_TIER",
        "default_tier",
        "unlimited",
        "Tier of the organization `default`: free, pro or unlimited.",
        one_of("free", "pro", "unlimited"),
    ),
    Setting(
        "QSERVER_TLS_CERTIFICATE",
        "tls_certificate",
        "",
        "File with the certificate chain (PEM); with it the server speaks HTTPS.",
        optional,
    ),
    Setting("QSERVER_TLS_KEY", "tls_key", "", "File with the certificate's private key.", optional),
    Setting(
        "QSERVER_PG_PORT",
        "pg_port",
        "",
        "Port for clients of PostgreSQL, 0 for any free one; without it there is none. Without a"
        " certificate it is reached from this machine alone.",
        port_or_none,
    ),
    Setting(
        "QSERVER_PG_PLAINTEXT",
        "pg_plaintext",
        "0",
        "1 lets clients of PostgreSQL come from other machines without TLS: whoever can read"
        " packets between them reads keys and rows.",
        switch,
    ),
    Setting(
        "QSERVER_ACCESS_LOG",
        "access_log",
        "0",
        "1 writes one line a request to standard output.",
        switch,
    ),
    Setting(
        "QSERVER_LOG_FORMAT",
        "log_format",
        "text",
        "text, or json: one JSON object a line, in the log and in the access log.",
        one_of("text", "json"),
    ),
    Setting(
        "QSERVER_SLOW_MS",
        "slow_ms",
        "",
        "Milliseconds from which on a statement is written to the log, with its plan and without"
        " its values; empty: none is.",
        milliseconds_or_none,
    ),
    Setting(
        "QSERVER_AUDIT",
        "audit",
        "",
        "File to which each change of databases, keys, sessions and organizations is appended, or"
        " stderr; empty: none is.",
        optional,
    ),
    Setting(
        "QSERVER_AUDIT_STATEMENTS",
        "audit_statements",
        "0",
        "1 writes each statement that has run to the audit log, too, without its values.",
        switch,
    ),
    Setting(
        "QSERVER_TRACES",
        "traces",
        "",
        "URL to which traces are sent by OTLP over HTTP, such as http://localhost:4318/v1/traces;"
        " empty: there are none. Needs pip install 'qserver[otel]'.",
        web_address_or_none,
    ),
    Setting(
        "QSERVER_CONNECTIONS_MAX",
        "connections_max",
        str(limits.CONNECTIONS_MAX),
        "Connections open at once; the next is answered with 503.",
        whole(1, 1_000_000),
    ),
    Setting(
        "QSERVER_HEADER_TIMEOUT_S",
        "header_timeout_s",
        str(limits.HEADER_SECONDS_MAX),
        "Seconds that a client may take to send the head of a request.",
        some_seconds,
    ),
    Setting(
        "QSERVER_IDLE_TIMEOUT_S",
        "idle_timeout_s",
        str(limits.IDLE_SECONDS_MAX),
        "Seconds that a connection without a request stays open.",
        some_seconds,
    ),
    Setting(
        "QSERVER_DRAIN_TIMEOUT_S",
        "drain_timeout_s",
        str(limits.DRAIN_SECONDS_MAX),
        "Seconds that requests under way have to end after SIGTERM.",
        some_seconds,
    ),
    Setting(
        "QSERVER_DATABASE_IDLE_S",
        "database_idle_s",
        str(limits.DATABASE_IDLE_SECONDS),
        "Seconds after which a database that nobody uses is closed; the next request opens it.",
        some_seconds,
    ),
    Setting(
        "QSERVER_DATABASES_OPEN_MAX",
        "databases_open_max",
        str(limits.DATABASES_OPEN_MAX),
        "Databases open at once; past it the one unused for longest is closed.",
        whole(1, 100_000),
    ),
    Setting(
        "QSERVER_STATEMENT_TIMEOUT",
        "statement_timeout",
        str(limits.STATEMENT_SECONDS),
        "Seconds, or such as 5m, that a request may take unless it sets `timeout_ms`.",
        some_seconds,
    ),
    Setting(
        "QSERVER_STATEMENT_TIMEOUT_MAX",
        "statement_timeout_max",
        "",
        "The most that `timeout_ms` may ask for; empty: as much as QSERVER_STATEMENT_TIMEOUT.",
        seconds_or_none,
    ),
    Setting(
        "QSERVER_HISTORY",
        "history",
        "24h",
        "How long older versions of a database are kept, unless it says otherwise itself: seconds,"
        " or such as 30m, 24h, 7d. 0 keeps none.",
        history_seconds,
    ),
    Setting(
        "QSERVER_BACKUP",
        "backup",
        "",
        "Where a process beside the server backs everything up all the time: a folder, or"
        " s3://bucket/prefix with the variables AWS_…; empty: nowhere.",
        optional,
    ),
    Setting(
        "QSERVER_BACKUP_KEEP",
        "backup_keep",
        "7d",
        "How far back that backup can be restored to any moment: seconds, or such as 12h, 30d.",
        kept_seconds,
    ),
    Setting(
        "QSERVER_MEMORY",
        "memory",
        "",
        "Memory for the data of all databases, such as 512MB or 4GB; empty: half of what there is.",
        memory_size,
    ),
    Setting(
        "QSERVER_MEMORY_BYTES_MAX",
        "memory_bytes_max",
        str(limits.MEMORY_BYTES_MAX),
        "Bytes that statements and unread answers may hold together; past it one ends with 53200.",
        whole(limits.VALUE_BYTES_MAX, 1 << 48),
    ),
    Setting(
        "QSERVER_VALUE_BYTES_MAX",
        "value_bytes_max",
        str(limits.VALUE_BYTES_MAX),
        "Bytes of the largest value; a longer one is refused with 54000.",
        whole(limits.REQUEST_BODY_BYTES_MAX, limits.TEXT_RESULT_LENGTH_MAX),
    ),
    Setting(
        "QSERVER_STALL_S",
        "stall_s",
        str(limits.STALL_SECONDS_MAX),
        "Seconds that the event loop may stand still before the process ends; 0: never.",
        seconds_or_never,
    ),
    Setting(
        "QSERVER_URL",
        "",
        "http://127.0.0.1:8000",
        "Where the commands of `qserver` find the server; `serve` does not use it.",
        host_url,
    ),
)
