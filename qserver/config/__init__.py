"""The settings of the service: each declared once, with its default, its meaning and its check.

    flag of `qserver serve`  ─►  environment  ─►  default          the first that is given counts

declared     the settings
parsing      how their values are read

`SETTINGS` is the only list: the command line makes its flags from it, and the documentation its
table. A name in the environment that begins with `QSERVER_` and is not in the list is an error,
because a silently ignored typo shows itself on the worst day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from qserver.config.declared import IN_MEMORY as IN_MEMORY
from qserver.config.declared import SETTINGS as SETTINGS
from qserver.config.declared import Setting as Setting
from qserver.config.parsing import history_seconds as history_seconds
from qserver.errors import InvalidSetting

PREFIX: Final = "QSERVER_"


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
    link: str | None
    node_url: str | None
    cluster_key: str | None
    lease_s: float
    data_url: str | None
    alias_url: str | None
    control_url: str | None
    cors_origins: tuple[str, ...]
    compression: bool
    console: bool
    open_signup: bool
    signups_per_address: int
    signups_per_hour: int
    trust_forwarded: bool
    default_tier: str
    tls_certificate: str | None
    tls_key: str | None
    pg_port: int | None
    pg_plaintext: bool
    access_log: bool
    log_format: str
    slow_ms: float | None
    audit: str | None
    audit_statements: bool
    traces: str | None
    connections_max: int
    header_timeout_s: float
    idle_timeout_s: float
    drain_timeout_s: float
    database_idle_s: float
    databases_open_max: int
    statement_timeout: float
    statement_timeout_max: float | None
    history: float
    backup: str | None
    backup_keep: float
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
    if settings.audit_statements and settings.audit is None:
        raise InvalidSetting(
            "statements are to be audited, but there is no audit log",
            hint="Set QSERVER_AUDIT to a file or to stderr, or QSERVER_AUDIT_STATEMENTS to 0.",
        )
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
    if settings.backup is not None and (settings.data == IN_MEMORY or settings.log is not None):
        raise InvalidSetting(
            "a continuous backup is one of a data folder, without a replicated log",
            hint="Leave out QSERVER_BACKUP. A replicated log has copies; qserver backup --log makes"
            " a folder of it.",
        )
    _check_node(settings)
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


def _check_node(settings: Settings) -> None:
    if settings.link is None:
        if settings.cluster_key is not None:
            raise InvalidSetting(
                "a key of a cluster is for nodes, and this is none",
                hint="Set QSERVER_LINK, or leave out QSERVER_CLUSTER_KEY.",
            )
        return
    if settings.log is None or settings.cluster_key is None:
        raise InvalidSetting(
            "nodes share a replicated log and a secret",
            hint="Set QSERVER_LOG and QSERVER_CLUSTER_KEY, or leave out QSERVER_LINK.",
        )
    if settings.processes != 1:
        raise InvalidSetting(
            "a node is one process",
            hint="Leave out QSERVER_PROCESSES, and run a node for each core.",
        )
