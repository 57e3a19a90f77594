"""The settings of the service: each declared once, with its default, its meaning and its check.

    flag of `qserver serve`  ─►  environment  ─►  default          the first that is given counts

`SETTINGS` is the only list: the command line makes its flags from it, and the documentation its
table. A name in the environment that begins with `QSERVER_` and is not in the list is an error,
because a silently ignored typo shows itself on the worst day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from qserver import limits
from qserver.errors import InvalidSetting

PREFIX: Final = "QSERVER_"
_LOG: Final = re.compile(r"(nats|tls)://[^\s,/]+(,[^\s,/]+)*")
_NODE: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of a service."""

    host: str
    port: int
    data: str
    api_key: str | None
    shards: int
    processes: int
    replicas: int
    log: str | None
    log_token: str | None
    log_copies: int
    node: str | None
    take_over: bool
    append_timeout_s: float
    data_url: str | None
    alias_url: str | None
    control_url: str | None
    cors_origins: tuple[str, ...]
    compression: bool
    open_signup: bool
    signups_per_address: int
    signups_per_hour: int
    trust_forwarded: bool
    default_tier: str
    tls_certificate: str | None
    tls_key: str | None
    access_log: bool
    connections_max: int
    header_timeout_s: float
    idle_timeout_s: float
    drain_timeout_s: float
    database_idle_s: float
    databases_open_max: int
    statement_timeout: float
    statement_timeout_max: float | None
    history: float
    memory: int | None
    memory_bytes_max: int
    value_bytes_max: int
    stall_s: float | None

    def __repr__(self) -> str:
        """Contains no secret: settings end up in logs."""
        return f"settings: {self.host}:{self.port}, data in {self.data}, {self.shards} shards"


def load(environ: Mapping[str, str], flags: Mapping[str, str] | None = None) -> Settings:
    """The settings of a process; `flags` are those of the command line, by field."""
    _refuse_unknown(environ)
    flags = flags or {}
    values = {each.field: _value(each, environ, flags) for each in SETTINGS if each.field}
    settings = Settings(**values)
    _check_together(settings)
    return settings


def _value(setting: Setting, environ: Mapping[str, str], flags: Mapping[str, str]) -> Any:
    for source, text in _given(setting, environ, flags):
        try:
            return setting.parse(text)
        except ValueError as error:
            shown = "" if setting.secret else f" {text!r}"
            raise InvalidSetting(
                f"{source}{shown} is wrong: {error}", hint=f"{setting.name}: {setting.meaning}"
            ) from None
    return setting.parse(setting.default)


def _given(
    setting: Setting, environ: Mapping[str, str], flags: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Where a setting is given, strongest first. A platform's `PORT` implies all addresses."""
    given = []
    if setting.field in flags:
        given.append((setting.flag, flags[setting.field]))
    if environ.get(setting.name):
        given.append((setting.name, environ[setting.name]))
    if environ.get("PORT") and setting.field == "port":
        given.append(("PORT", environ["PORT"]))
    if environ.get("PORT") and setting.field == "host":
        given.append(("PORT", "0.0.0.0"))
    return given


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = {each.name for each in SETTINGS}
    unknown = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    if unknown:
        raise InvalidSetting(
            f"unknown setting {', '.join(unknown)}",
            hint="Known are: " + ", ".join(sorted(known)) + ".",
        )


def _check_together(settings: Settings) -> None:
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise InvalidSetting(
            "a certificate needs its key, and a key its certificate",
            hint="Set both QSERVER_TLS_CERTIFICATE and QSERVER_TLS_KEY, or neither.",
        )
    if settings.processes != 1 and settings.data == IN_MEMORY:
        raise InvalidSetting(
            "several processes need a data folder: memory is lost with each of them",
            hint="Set QSERVER_DATA_DIR to a folder, or QSERVER_PROCESSES to 1.",
        )
    if settings.log is not None and settings.data == IN_MEMORY:
        raise InvalidSetting(
            "a replicated log needs a data folder for its copies",
            hint="Set QSERVER_DATA_DIR to a folder, or leave out QSERVER_LOG.",
        )
    if settings.log is None and settings.take_over:
        raise InvalidSetting(
            "there is nothing to take over without a replicated log",
            hint="Set QSERVER_LOG, or leave out QSERVER_TAKE_OVER.",
        )
    most = settings.statement_timeout_max
    if most is not None and most < settings.statement_timeout:
        raise InvalidSetting(
            "QSERVER_STATEMENT_TIMEOUT_MAX is less than QSERVER_STATEMENT_TIMEOUT",
            hint="Set both: what a request has unless it says otherwise, and the most it may ask.",
        )
    if settings.alias_url is not None and settings.data_url is None:
        raise InvalidSetting(
            "QSERVER_ALIAS_URL needs QSERVER_DATA_URL: an alias is another name of that host"
        )


# --- parsers of values ---------------------------------------------------------------------------


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


def _memory(text: str) -> int | None:
    if not text:
        return None
    number, unit = text.strip().upper().rstrip("B"), 1
    for at, letter in enumerate("KMG", start=1):
        if number.endswith(letter):
            number, unit = number[:-1], 1024**at
    if not number.isdecimal():
        raise ValueError("it is a number of bytes, or one with KB, MB or GB behind it")
    if int(number) * unit < limits.CACHE_BYTES_MIN:
        raise ValueError(f"it is at least {limits.CACHE_BYTES_MIN >> 20}MB")
    return int(number) * unit


def _log(text: str) -> str | None:
    if not text:
        return None
    if not _LOG.fullmatch(text):
        raise ValueError("it names no nodes, such as nats://host:4222,host:4222")
    return text


def _copies(text: str) -> int:
    if text not in ("1", "3", "5"):
        raise ValueError("it is neither 1 nor 3 nor 5")
    return int(text)


def _node(text: str) -> str | None:
    if text and not _NODE.fullmatch(text):
        raise ValueError("a name has letters, digits, - and _, at most 60")
    return text or None


def _optional(text: str) -> str | None:
    return text or None


def _key(text: str) -> str | None:
    if not text:
        return None
    rest = text.removeprefix("svc_k_")
    if rest == text or len(rest) < 16 or not rest.replace("-", "").replace("_", "").isalnum():
        raise ValueError("a key is svc_k_ and then at least 16 letters, digits, - or _")
    return text


def _url(text: str) -> str | None:
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is not a URL such as https://data.example.com")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("a URL of a host has no path")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _switch(text: str) -> bool:
    answers = {"1": True, "true": True, "yes": True, "on": True}
    answers |= {"0": False, "false": False, "no": False, "off": False}
    if text.lower() not in answers:
        raise ValueError("it is neither 1 nor 0")
    return answers[text.lower()]


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(each.strip() for each in text.split(",") if each.strip())
    for origin in origins:
        if origin != "*" and not origin.startswith(("http://", "https://")):
            raise ValueError(f"{origin!r} is not an origin such as https://app.example.com")
    return origins


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"it is none of {', '.join(words)}")
        return text

    return parse


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ValueError(f"it is not a whole number from {least} to {most}")
        return int(text)

    return parse


_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def history_seconds(text: str) -> float:
    """A length of history in seconds; ValueError says what is wrong."""
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    if not (number.isascii() and number.isdigit() and len(number) < 12):
        raise ValueError("it is a number of seconds, or one with m, h or d behind it, such as 24h")
    if int(number) * unit > limits.HISTORY_SECONDS_MAX:
        raise ValueError(f"it is at most {limits.HISTORY_SECONDS_MAX / 86_400:.0f}d")
    return float(int(number) * unit)


def _seconds(text: str) -> float:
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise ValueError(
            "it is not a number of seconds, or one with m or h, more than 0 and at most 86400"
        )
    return seconds


def _seconds_or_none(text: str) -> float | None:
    return _seconds(text) if text else None


def _seconds_or_never(text: str) -> float | None:
    return None if text == "0" else _seconds(text)


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "QSERVER_HOST",
        "host",
        "127.0.0.1",
        "Address to listen on. With PORT set, as a platform does, the default is 0.0.0.0.",
        _text,
    ),
    Setting(
        "QSERVER_PORT",
        "port",
        "8000",
        "Port to listen on, 0 for any free one. PORT, without the prefix, means the same.",
        _whole(0, 65_535),
    ),
    Setting(
        "QSERVER_DATA_DIR",
        "data",
        "./qserver-data",
        f"Folder that holds the databases; made if absent. {IN_MEMORY} keeps nothing.",
        _text,
    ),
    Setting(
        "QSERVER_API_KEY",
        "api_key",
        "",
        "The first API key (svc_k_…). Without it one is made and printed at the first start.",
        _key,
        secret=True,
    ),
    Setting(
        "QSERVER_SHARDS",
        "shards",
        str(limits.SHARDS_DEFAULT),
        "Shards of a database. It may change from one start to the next.",
        _whole(1, limits.SHARDS_MAX),
    ),
    Setting(
        "QSERVER_PROCESSES",
        "processes",
        "1",
        "Processes that share the databases; 0: one for each core. It may change at each start.",
        _whole(0, limits.PROCESSES_MAX),
    ),
    Setting(
        "QSERVER_REPLICAS",
        "replicas",
        "0",
        "Other processes that follow each database and answer reads of it; a database may say"
        " otherwise. With one process there are none.",
        _whole(0, limits.PROCESSES_MAX - 1),
    ),
    Setting(
        "QSERVER_LOG",
        "log",
        "",
        "Nodes of a replicated log, nats://host:4222,host:4222 or tls://…; without it files alone.",
        _log,
    ),
    Setting(
        "QSERVER_LOG_TOKEN",
        "log_token",
        "",
        "The secret that the log's nodes ask for.",
        _optional,
        secret=True,
    ),
    Setting(
        "QSERVER_LOG_COPIES",
        "log_copies",
        "3",
        "On how many of the log's nodes everything is: 1, 3 or 5.",
        _copies,
    ),
    Setting(
        "QSERVER_NODE",
        "node",
        "",
        "Name of this server among those of a replicated log. Without it, that of the machine.",
        _node,
    ),
    Setting(
        "QSERVER_TAKE_OVER",
        "take_over",
        "0",
        "1 serves the databases of a replicated log in place of another node: stop that one first.",
        _switch,
    ),
    Setting(
        "QSERVER_APPEND_TIMEOUT_S",
        "append_timeout_s",
        "20",
        "Seconds that a commit waits for a replicated log; then its outcome is unknown.",
        _seconds,
    ),
    Setting(
        "QSERVER_DATA_URL",
        "data_url",
        "",
        "URL of the host that serves queries. Without it any host serves everything.",
        _url,
    ),
    Setting(
        "QSERVER_ALIAS_URL",
        "alias_url",
        "",
        "URL of a second host for queries, kept for old clients; control routes redirect there.",
        _url,
    ),
    Setting(
        "QSERVER_CONTROL_URL",
        "control_url",
        "",
        "URL of the host that serves sessions, databases and keys.",
        _url,
    ),
    Setting(
        "QSERVER_CORS_ORIGINS",
        "cors_origins",
        "*",
        "Origins of web pages that may call, separated by commas; * for all.",
        _origins,
    ),
    Setting(
        "QSERVER_COMPRESSION",
        "compression",
        "1",
        "1 compresses long answers for clients that accept it; 0: never, as a proxy may do it.",
        _switch,
    ),
    Setting(
        "QSERVER_OPEN_SIGNUP",
        "open_signup",
        "0",
        "1 lets anyone make an organization with POST /v1/signup.",
        _switch,
    ),
    Setting(
        "QSERVER_SIGNUPS_PER_ADDRESS",
        "signups_per_address",
        str(limits.SIGNUPS_OF_ADDRESS_MAX),
        "Signups an hour from one address (of IPv6, from one /64); more are answered with 429.",
        _whole(1, 1_000_000),
    ),
    Setting(
        "QSERVER_SIGNUPS_PER_HOUR",
        "signups_per_hour",
        str(limits.SIGNUPS_MAX),
        "Signups an hour from all addresses together; more are answered with 429.",
        _whole(1, 1_000_000),
    ),
    Setting(
        "QSERVER_TRUST_FORWARDED",
        "trust_forwarded",
        "0",
        "1 takes the address of a caller from the end of X-Forwarded-For: only behind a proxy.",
        _switch,
    ),
    Setting(
        "QSERVER_DEFAULT_TIER",
        "default_tier",
        "unlimited",
        "Tier of the organization `default`: free, pro or unlimited.",
        _one_of("free", "pro", "unlimited"),
    ),
    Setting(
        "QSERVER_TLS_CERTIFICATE",
        "tls_certificate",
        "",
        "File with the certificate chain (PEM); with it the server speaks HTTPS.",
        _optional,
    ),
    Setting(
        "QSERVER_TLS_KEY", "tls_key", "", "File with the certificate's private key.", _optional
    ),
    Setting(
        "QSERVER_ACCESS_LOG",
        "access_log",
        "0",
        "1 writes one line a request to standard output.",
        _switch,
    ),
    Setting(
        "QSERVER_CONNECTIONS_MAX",
        "connections_max",
        str(limits.CONNECTIONS_MAX),
        "Connections open at once; the next is answered with 503.",
        _whole(1, 1_000_000),
    ),
    Setting(
        "QSERVER_HEADER_TIMEOUT_S",
        "header_timeout_s",
        str(limits.HEADER_SECONDS_MAX),
        "Seconds that a client may take to send the head of a request.",
        _seconds,
    ),
    Setting(
        "QSERVER_IDLE_TIMEOUT_S",
        "idle_timeout_s",
        str(limits.IDLE_SECONDS_MAX),
        "Seconds that a connection without a request stays open.",
        _seconds,
    ),
    Setting(
        "QSERVER_DRAIN_TIMEOUT_S",
        "drain_timeout_s",
        str(limits.DRAIN_SECONDS_MAX),
        "Seconds that requests under way have to end after SIGTERM.",
        _seconds,
    ),
    Setting(
        "QSERVER_DATABASE_IDLE_S",
        "database_idle_s",
        str(limits.DATABASE_IDLE_SECONDS),
        "Seconds after which a database that nobody uses is closed; the next request opens it.",
        _seconds,
    ),
    Setting(
        "QSERVER_DATABASES_OPEN_MAX",
        "databases_open_max",
        str(limits.DATABASES_OPEN_MAX),
        "Databases open at once; past it the one unused for longest is closed.",
        _whole(1, 100_000),
    ),
    Setting(
        "QSERVER_STATEMENT_TIMEOUT",
        "statement_timeout",
        str(limits.STATEMENT_SECONDS),
        "Seconds, or such as 5m, that a request may take unless it sets `timeout_ms`.",
        _seconds,
    ),
    Setting(
        "QSERVER_STATEMENT_TIMEOUT_MAX",
        "statement_timeout_max",
        "",
        "The most that `timeout_ms` may ask for; empty: as much as QSERVER_STATEMENT_TIMEOUT.",
        _seconds_or_none,
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
        "QSERVER_MEMORY",
        "memory",
        "",
        "Memory for the data of all databases, such as 512MB or 4GB; empty: half of what there is.",
        _memory,
    ),
    Setting(
        "QSERVER_MEMORY_BYTES_MAX",
        "memory_bytes_max",
        str(limits.MEMORY_BYTES_MAX),
        "Bytes that statements and unread answers may hold together; past it one ends with 53200.",
        _whole(limits.VALUE_BYTES_MAX, 1 << 48),
    ),
    Setting(
        "QSERVER_VALUE_BYTES_MAX",
        "value_bytes_max",
        str(limits.VALUE_BYTES_MAX),
        "Bytes of the largest value; a longer one is refused with 54000.",
        _whole(limits.REQUEST_BODY_BYTES_MAX, limits.TEXT_RESULT_LENGTH_MAX),
    ),
    Setting(
        "QSERVER_STALL_S",
        "stall_s",
        str(limits.STALL_SECONDS_MAX),
        "Seconds that the event loop may stand still before the process ends; 0: never.",
        _seconds_or_never,
    ),
    Setting(
        "QSERVER_URL",
        "",
        "http://127.0.0.1:8000",
        "Where the commands of `qserver` find the server; `serve` does not use it.",
        _url,
    ),
)
