"""Functions about the server and the session that PostgreSQL's tools call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from qserver.errors import InvalidParameterValue, NumericValueOutOfRange
from qserver.functions.registry import Function, TableFunction
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import (
    ANYARRAY,
    ANYELEMENT,
    BIGINT,
    BOOLEAN,
    INTEGER,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIMESTAMPTZ,
    VOID,
    Kind,
    SqlType,
    array_of,
)

if TYPE_CHECKING:
    from qserver.functions.context import Context

ENCODINGS: Final = (
    *("SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8"),
    *("MULE_INTERNAL", "LATIN1", "LATIN2", "LATIN3", "LATIN4", "LATIN5", "LATIN6", "LATIN7"),
    *("LATIN8", "LATIN9", "LATIN10", "WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R"),
    *("WIN1251", "WIN1252", "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250"),
    *("WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U", "SJIS", "BIG5", "GBK", "UHC"),
    *("GB18030", "JOHAB", "SHIFT_JIS_2004"),
)
"""PostgreSQL's encodings, by their numbers."""

_ALIASES: Final = {"UNICODE": "UTF8", "ISO88591": "LATIN1"}
_BYTES: Final = {
    **dict.fromkeys(("EUC_JP", "EUC_CN", "EUC_KR", "EUC_JIS_2004", "JOHAB"), 3),
    **dict.fromkeys(("EUC_TW", "UTF8", "MULE_INTERNAL", "GB18030"), 4),
    **dict.fromkeys(("SJIS", "BIG5", "GBK", "UHC", "SHIFT_JIS_2004"), 2),
    "EUC_CN": 2,
}
"""Bytes of a character, where that is more than one."""
INET: Final = TYPES_BY_NAME["inet"]
PG_LSN: Final = SqlType(Kind.PG_LSN)
BIGINT_MAX: Final = 2**63 - 1
BIGINT_DIGITS: Final = 19
UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")


def encoding_name(number: int) -> str:
    return ENCODINGS[number] if 0 <= number < len(ENCODINGS) else ""


def encoding_number(name: str) -> int:
    wanted = re.sub(r"\W|_", "", name).upper()
    wanted = _ALIASES.get(wanted, wanted)
    plain = [each.replace("_", "") for each in ENCODINGS]
    return plain.index(wanted) if wanted in plain else -1


def size_pretty(size: int | Decimal) -> str:
    """Print bytes with the unit in which they have up to five digits, as PostgreSQL rounds."""
    if isinstance(size, Decimal) and not size.is_finite():
        return f"{size} bytes"
    amount, unit, limit = int(size), 0, 10 * 1024
    if isinstance(size, Decimal) and unit == 0 and abs(size) < limit:
        return f"{size.normalize():f} bytes"
    halved = False
    while unit < len(UNITS) - 1 and abs(amount) >= (2 * limit - 1 if halved else limit):
        shift = 10 if unit else 9
        amount = abs(amount) // (1 << shift) * (1 if amount > 0 else -1)
        halved, unit = True, unit + 1
    if halved:
        amount = (abs(amount) + 1) // 2 * (1 if amount > 0 else -1)
    return f"{Decimal(amount):f} {UNITS[unit]}"


def size_bytes(text: str) -> int:
    found = re.fullmatch(r"\s*([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[-+]?\.\d+)\s*(\w*)\s*", text)
    units = {unit.lower(): 1024**at for at, unit in enumerate(UNITS)} | {"": 1, "b": 1}
    if found is None or found[2].lower() not in units:
        raise InvalidParameterValue(f'invalid size: "{text}"')
    size = Decimal(found[1])
    if size.adjusted() <= BIGINT_DIGITS:
        whole = int(size * units[found[2].lower()])
        if abs(whole) <= BIGINT_MAX:
            return whole
    raise NumericValueOutOfRange("bigint out of range")


def _constant(name: str, sql_type: SqlType, value: Any) -> Function:
    return Function(name, (), sql_type, lambda: value, gives_null=value is None)


def _started(context: Context) -> Any:
    return context.started


def _session_number(context: Context) -> int:
    return context.session_number


def _client(context: Context) -> str | None:
    return context.client_address


def _blockers(context: Context, number: int) -> tuple[int, ...]:
    return context.blockers_of(number)


def encoding_length(number: int) -> int | None:
    """Return how many bytes a character has at most; None for an encoding that there is not."""
    if not 0 <= number < len(ENCODINGS):
        return None
    return _BYTES.get(ENCODINGS[number], 1)


def _distance(one: str, other: str) -> Decimal:
    """Return the bytes between two places of the log."""
    return Decimal(_place(one) - _place(other))


def _place(position: str) -> int:
    high, low = position.split("/")
    return int(high, 16) << 32 | int(low, 16)


def _name_with_oid(name: str, oid: int) -> str:
    """`name_oid`, with the name cut so that all of it is a name."""
    end = f"_{int(oid)}"
    return name.encode()[: 63 - len(end)].decode(errors="ignore") + end


def _expanded(array: tuple[Any, ...]) -> Iterator[tuple[Any, int]]:
    return ((value, number) for number, value in enumerate(array, 1))


FUNCTIONS: Final = (
    Function("pg_encoding_to_char", (INTEGER,), NAME, encoding_name),
    Function("pg_char_to_encoding", (NAME,), INTEGER, encoding_number),
    Function("pg_size_pretty", (BIGINT,), TEXT, size_pretty),
    Function("pg_size_pretty", (NUMERIC,), TEXT, size_pretty),
    Function("pg_size_bytes", (TEXT,), BIGINT, size_bytes),
    Function("nameconcatoid", (NAME, OID), NAME, _name_with_oid),
    Function("pg_is_other_temp_schema", (OID,), BOOLEAN, lambda oid: False),
    Function("pg_blocking_pids", (INTEGER,), array_of(INTEGER), _blockers, needs_context=True),
    Function("pg_safe_snapshot_blocking_pids", (INTEGER,), array_of(INTEGER), lambda pid: ()),
    Function("pg_encoding_max_length", (INTEGER,), INTEGER, encoding_length, gives_null=True),
    Function("pg_settings_get_flags", (TEXT,), array_of(TEXT), lambda name: ()),
    Function("pg_wal_lsn_diff", (PG_LSN, PG_LSN), NUMERIC, _distance),
    Function("inet_client_addr", (), INET, _client, needs_context=True, gives_null=True),
    _constant("pg_trigger_depth", INTEGER, 0),
    _constant("pg_reload_conf", BOOLEAN, True),
    _constant("pg_stat_clear_snapshot", VOID, ""),
    _constant("pg_stat_reset", VOID, ""),
    _constant("getpgusername", NAME, "qserver"),
    Function("pg_postmaster_start_time", (), TIMESTAMPTZ, _started, needs_context=True),
    Function("pg_conf_load_time", (), TIMESTAMPTZ, _started, needs_context=True),
    Function("pg_backend_pid", (), INTEGER, _session_number, needs_context=True),
    _constant("pg_is_in_recovery", BOOLEAN, False),
    _constant("pg_is_wal_replay_paused", BOOLEAN, False),
    _constant("pg_client_encoding", NAME, "UTF8"),
    _constant("getdatabaseencoding", NAME, "UTF8"),
    _constant("inet_server_addr", INET, None),
    *(_constant(name, INTEGER, None) for name in ("inet_server_port", "inet_client_port")),
    *(
        _constant(name, PG_LSN, None)
        for name in ("pg_last_wal_receive_lsn", "pg_last_wal_replay_lsn")
    ),
)
TABLE_FUNCTIONS: Final = (
    TableFunction("_pg_expandarray", (ANYARRAY,), (("x", ANYELEMENT), ("n", INTEGER)), _expanded),
)
