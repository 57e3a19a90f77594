"""The SQL types, and the Python values that a column of each type takes.

    SQL                        Python                          stored as
    boolean                    bool                            itself
    smallint integer bigint    int, not bool                   itself, in range
    real                       float, int, Decimal             float, rounded to 32 bits
    double precision           float, int, Decimal             float
    numeric, numeric(p,s)      Decimal, int                    Decimal with the column's scale
    text, varchar(n)           str                             itself; no NUL, no lone surrogate
    char(n)                    str                             without trailing blanks
    date                       date, not datetime              itself
    timestamp                  datetime without zone           itself
    timestamptz                datetime with zone              in UTC
    time, timetz               time, ZonedTime                 itself; 24:00 does not exist
    interval                   Interval                        itself: months, days, microseconds
    uuid                       UUID                            itself
    bytea                      bytes                           itself
    json                       str                             itself, if it is JSON
    jsonpath                   str                             as PostgreSQL prints it
    jsonb                      Jsonb                           its canonical text, see `jsonb`
    enum                       Label, str                      Label: a str that sorts by position
    array                      tuple, nested by dimension      rectangular, elements admitted
    name, "char"               str                             cut to 63 bytes, to one
    oid, xid, cid              int                             itself, from 0 to 2³² - 1
    regclass, regtype …        ObjectName                      (never in a column)
    int2vector, oidvector      tuple                           an array that counts from 0
    record                     Record                          (never in a column)

Arrays of every dimension have one type, as in PostgreSQL, and count from 1. NULL is None
everywhere, also within an array.

`admission` assigns a value: it returns the stored value or raises, and never changes a value
silently beyond what PostgreSQL's assignment does (rounding to the column's scale, cutting surplus
blanks). Admission is idempotent. Other conversions are explicit casts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from qserver.errors import InvalidParameterValue
from qserver.limits import (
    NUMERIC_PRECISION_MAX,
    NUMERIC_SCALE_MAX,
    SECOND_DIGITS_MAX,
    VARCHAR_LENGTH_MAX,
)
from qserver.values.enumeration import Enumeration, Label
from qserver.values.interval import Interval
from qserver.values.jsonb import Jsonb
from qserver.values.object_names import ObjectName
from qserver.values.records import Record
from qserver.values.zoned_time import ZonedTime


class Kind(Enum):
    """A type without its parameters. The value is PostgreSQL's name."""

    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    REAL = "real"
    DOUBLE = "double precision"
    NUMERIC = "numeric"
    TEXT = "text"
    VARCHAR = "character varying"
    CHAR = "character"
    DATE = "date"
    TIMESTAMP = "timestamp without time zone"
    TIMESTAMPTZ = "timestamp with time zone"
    TIME = "time without time zone"
    TIMETZ = "time with time zone"
    INTERVAL = "interval"
    UUID = "uuid"
    BYTEA = "bytea"
    JSON = "json"
    JSONB = "jsonb"
    JSONPATH = "jsonpath"
    ENUM = "enum"
    ARRAY = "array"
    RECORD = "record"

    # Those of catalogs.
    NAME = "name"
    INTERNAL_CHAR = '"char"'
    OID = "oid"
    XID = "xid"
    CID = "cid"
    REGCLASS = "regclass"
    REGTYPE = "regtype"
    REGPROC = "regproc"
    REGPROCEDURE = "regprocedure"
    REGOPER = "regoper"
    REGOPERATOR = "regoperator"
    REGNAMESPACE = "regnamespace"
    REGROLE = "regrole"
    REGCOLLATION = "regcollation"
    REGCONFIG = "regconfig"
    REGDICTIONARY = "regdictionary"
    PG_NODE_TREE = "pg_node_tree"
    ACLITEM = "aclitem"
    PG_LSN = "pg_lsn"
    XID8 = "xid8"
    TID = "tid"
    INET = "inet"
    PG_NDISTINCT = "pg_ndistinct"
    PG_DEPENDENCIES = "pg_dependencies"
    PG_MCV_LIST = "pg_mcv_list"
    PG_STATISTIC = "pg_statistic"

    # Types without values: of a literal or NULL before its type is known, and of placeholders in
    # signatures of functions.
    UNKNOWN = "unknown"
    VOID = "void"
    ANY = '"any"'
    ANYELEMENT = "anyelement"
    ANYARRAY = "anyarray"
    ANYNONARRAY = "anynonarray"
    ANYENUM = "anyenum"
    ANYCOMPATIBLE = "anycompatible"
    ANYCOMPATIBLEARRAY = "anycompatiblearray"

    # Members are singletons, so the identity hash is correct, and fast: plans look up many.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type as declared: NUMERIC may have precision and scale, VARCHAR and CHAR a length.

    For times and intervals `precision` is the number of fractional digits of the second; for
    intervals `fields` may restrict them ("year to month"). An array has `element`, which is no
    array itself, and the name of a vector as `fields` if it is one. An enum has `enum`, a record
    may have `columns`, its names and types. `oid` is the number of a type that the database
    defines: that of a relation's rows, and in what clients are told also that of an enum.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    element: SqlType | None = None
    enum: Enumeration | None = None
    fields: str | None = None
    columns: tuple[tuple[str, SqlType], ...] = ()
    oid: int = 0

    def __str__(self) -> str:
        """As PostgreSQL prints it."""
        if self.element is not None:
            return self.fields or f"{self.element}[]"
        if self.enum is not None:
            return str(self.enum)
        name = self.kind.value
        if self.fields is not None:
            name = f"{name} {self.fields}"
        if self.scale is not None:
            return f"{name}({self.precision},{self.scale})"
        if self.precision is not None:
            first, *rest = name.split(" ", 1) if self.kind in _PRECISION_INSIDE else [name]
            return " ".join([f"{first}({self.precision})", *rest])
        if self.length is not None:
            return f"{name}({self.length})"
        return name

    @property
    def bare(self) -> SqlType:
        """The same type without length, precision or fields, as in signatures."""
        if self.element is not None:
            element = self.element.bare
            return self if element is self.element else replace(self, element=element)
        if self.precision is None and self.length is None and self.fields is None:
            return self
        return SqlType(self.kind)

    def to_plain(self) -> list[Any]:
        plain: list[Any] = [self.kind.name, self.precision, self.scale, self.length]
        if self.element is not None or self.enum is not None or self.fields is not None:
            element = None if self.element is None else self.element.to_plain()
            enum = None if self.enum is None else self.enum.to_plain()
            plain += [element, enum, self.fields]
        return plain

    @staticmethod
    def from_plain(plain: Any) -> SqlType:
        name, precision, scale, length, *rest = plain
        if not rest:
            return SqlType(Kind[name], precision, scale, length)
        element, enum, fields = rest
        return SqlType(
            Kind[name],
            precision,
            scale,
            length,
            None if element is None else SqlType.from_plain(element),
            None if enum is None else Enumeration.from_plain(enum),
            fields,
        )


BOOLEAN: Final = SqlType(Kind.BOOLEAN)
SMALLINT: Final = SqlType(Kind.SMALLINT)
INTEGER: Final = SqlType(Kind.INTEGER)
BIGINT: Final = SqlType(Kind.BIGINT)
REAL: Final = SqlType(Kind.REAL)
DOUBLE: Final = SqlType(Kind.DOUBLE)
NUMERIC: Final = SqlType(Kind.NUMERIC)
TEXT: Final = SqlType(Kind.TEXT)
VARCHAR: Final = SqlType(Kind.VARCHAR)
DATE: Final = SqlType(Kind.DATE)
TIMESTAMP: Final = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ: Final = SqlType(Kind.TIMESTAMPTZ)
TIME: Final = SqlType(Kind.TIME)
TIMETZ: Final = SqlType(Kind.TIMETZ)
INTERVAL: Final = SqlType(Kind.INTERVAL)
UUID_TYPE: Final = SqlType(Kind.UUID)
BYTEA: Final = SqlType(Kind.BYTEA)
JSON: Final = SqlType(Kind.JSON)
JSONB: Final = SqlType(Kind.JSONB)
JSONPATH: Final = SqlType(Kind.JSONPATH)
RECORD: Final = SqlType(Kind.RECORD)
NAME: Final = SqlType(Kind.NAME)
INTERNAL_CHAR: Final = SqlType(Kind.INTERNAL_CHAR)
OID: Final = SqlType(Kind.OID)
XID: Final = SqlType(Kind.XID)
REGCLASS: Final = SqlType(Kind.REGCLASS)
REGTYPE: Final = SqlType(Kind.REGTYPE)
INT2VECTOR: Final = SqlType(Kind.ARRAY, element=SMALLINT, fields="int2vector")
OIDVECTOR: Final = SqlType(Kind.ARRAY, element=OID, fields="oidvector")
UNKNOWN: Final = SqlType(Kind.UNKNOWN)
VOID: Final = SqlType(Kind.VOID)
ANY: Final = SqlType(Kind.ANY)
ANYELEMENT: Final = SqlType(Kind.ANYELEMENT)
ANYARRAY: Final = SqlType(Kind.ANYARRAY)
ANYNONARRAY: Final = SqlType(Kind.ANYNONARRAY)
ANYENUM: Final = SqlType(Kind.ANYENUM)
ANYCOMPATIBLE: Final = SqlType(Kind.ANYCOMPATIBLE)
ANYCOMPATIBLEARRAY: Final = SqlType(Kind.ANYCOMPATIBLEARRAY)

INTEGER_KINDS: Final = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
FLOAT_KINDS: Final = (Kind.REAL, Kind.DOUBLE)
NUMBER_KINDS: Final = (*INTEGER_KINDS, Kind.NUMERIC, *FLOAT_KINDS)
TEXT_KINDS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
STRING_KINDS: Final = (*TEXT_KINDS, Kind.NAME, Kind.INTERNAL_CHAR)
REG_KINDS: Final = (
    *(Kind.REGCLASS, Kind.REGTYPE, Kind.REGPROC, Kind.REGPROCEDURE, Kind.REGOPER),
    *(Kind.REGOPERATOR, Kind.REGNAMESPACE, Kind.REGROLE, Kind.REGCOLLATION, Kind.REGCONFIG),
    Kind.REGDICTIONARY,
)
"""Kinds whose values are `ObjectName`s."""

NUMBERING_KINDS: Final = (Kind.OID, Kind.XID, Kind.CID)
"""Kinds of numbers without a sign, of 32 bits."""

OPAQUE_KINDS: Final = (
    *(Kind.PG_NODE_TREE, Kind.ACLITEM, Kind.PG_LSN, Kind.XID8, Kind.INET),
    *(Kind.PG_NDISTINCT, Kind.PG_DEPENDENCIES, Kind.PG_MCV_LIST, Kind.PG_STATISTIC),
)
"""Kinds that only columns of the catalog have. Their values are texts."""

UNSTORED_KINDS: Final = (*REG_KINDS, *OPAQUE_KINDS, Kind.TID)
"""Kinds that no column of a user's table has."""

DATETIME_KINDS: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
TIME_KINDS: Final = (Kind.TIME, Kind.TIMETZ)
PSEUDO_KINDS: Final = (
    *(Kind.UNKNOWN, Kind.VOID, Kind.ANY, Kind.ANYELEMENT, Kind.ANYARRAY, Kind.ANYNONARRAY),
    *(Kind.ANYENUM, Kind.ANYCOMPATIBLE, Kind.ANYCOMPATIBLEARRAY),
)

CAREFUL_KINDS: Final = frozenset(
    {*FLOAT_KINDS, Kind.NUMERIC, Kind.INTERVAL, Kind.TIMETZ, Kind.JSONB, Kind.ARRAY, Kind.RECORD}
)
"""Kinds with values that are not their own key elements, see `keys`."""

PLAIN_KINDS: Final = frozenset(
    {Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.TEXT, Kind.VARCHAR, Kind.CHAR}
)
"""Kinds whose values are their own key elements, and are stored just as they are."""

INTEGER_BITS: Final = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}

# `timestamp(3) without time zone`
_PRECISION_INSIDE: Final = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.TIMETZ)

INTERVAL_FIELDS: Final = (
    *("year", "month", "day", "hour", "minute", "second", "year to month", "day to hour"),
    *("day to minute", "day to second", "hour to minute", "hour to second", "minute to second"),
)
"""The fields that may follow INTERVAL; only those that end in seconds take a precision."""


def numeric(precision: int, scale: int = 0) -> SqlType:
    """NUMERIC(precision, scale); a negative scale rounds before the point."""
    if not 1 <= precision <= NUMERIC_PRECISION_MAX:
        raise InvalidParameterValue(
            f"NUMERIC precision {precision} must be between 1 and {NUMERIC_PRECISION_MAX}"
        )
    if not -NUMERIC_SCALE_MAX <= scale <= NUMERIC_SCALE_MAX:
        raise InvalidParameterValue(
            f"NUMERIC scale {scale} must be between -{NUMERIC_SCALE_MAX} and {NUMERIC_SCALE_MAX}"
        )
    return SqlType(Kind.NUMERIC, precision=precision, scale=scale)


def varchar(length: int) -> SqlType:
    """VARCHAR(length); without a length it is `VARCHAR`."""
    return SqlType(Kind.VARCHAR, length=_checked_length("varchar", length))


def char(length: int = 1) -> SqlType:
    return SqlType(Kind.CHAR, length=_checked_length("char", length))


def with_second_digits(sql_type: SqlType, precision: int) -> SqlType:
    """TIMESTAMP(p), TIMESTAMPTZ(p), TIME(p), TIMETZ(p), INTERVAL(p); more than 6 are 6."""
    assert sql_type.kind in (*_PRECISION_INSIDE, Kind.INTERVAL), f"{sql_type} has no seconds"
    if precision < 0:
        name = str(replace(sql_type, precision=precision)).upper()
        raise InvalidParameterValue(f"{name} precision must not be negative")
    return replace(sql_type, precision=min(precision, SECOND_DIGITS_MAX))


def interval(fields: str | None = None, precision: int | None = None) -> SqlType:
    """INTERVAL, INTERVAL YEAR TO MONTH, INTERVAL DAY TO SECOND(3) …"""
    assert fields is None or fields in INTERVAL_FIELDS, f"no such fields: {fields}"
    sql_type = SqlType(Kind.INTERVAL, fields=fields)
    return sql_type if precision is None else with_second_digits(sql_type, precision)


def array_of(element: SqlType) -> SqlType:
    """The array type of the element; dimensions are not part of the type.

    Of int2vector and oidvector it is the array of what they are of: one dimension more.
    """
    if is_vector(element):
        return SqlType(Kind.ARRAY, element=element.element)
    return element if element.kind is Kind.ARRAY else SqlType(Kind.ARRAY, element=element)


CATALOG_KINDS: Final = (
    *(Kind.NAME, Kind.INTERNAL_CHAR, *NUMBERING_KINDS),
    *UNSTORED_KINDS,
)
"""Kinds that are there for catalogs."""


def is_vector(sql_type: SqlType) -> bool:
    """Is it int2vector or oidvector?"""
    return sql_type.element is not None and sql_type.fields is not None


def record_of(columns: tuple[tuple[str, SqlType], ...], oid: int = 0) -> SqlType:
    return SqlType(Kind.RECORD, columns=columns, oid=oid)


def _checked_length(name: str, length: int) -> int:
    if length < 1:
        raise InvalidParameterValue(f"length for type {name} must be at least 1")
    if length > VARCHAR_LENGTH_MAX:
        raise InvalidParameterValue(f"length for type {name} cannot exceed {VARCHAR_LENGTH_MAX}")
    return length


def type_of_value(value: Any) -> SqlType:
    """The SQL type of a Python value alone, as for a constant in a statement."""
    kind = type(value)
    if kind is int:
        if -(2**31) <= value < 2**31:
            return INTEGER
        return BIGINT if -(2**63) <= value < 2**63 else NUMERIC
    if kind is datetime:
        return TIMESTAMP if value.tzinfo is None else TIMESTAMPTZ
    if kind is tuple:
        known = (type_of_value(item) for item in value if item is not None)
        return array_of(next(known, UNKNOWN))
    return _TYPE_BY_CLASS[kind]


_TYPE_BY_CLASS: dict[type, SqlType] = {
    bool: BOOLEAN,
    time: TIME,
    ZonedTime: TIMETZ,
    float: DOUBLE,
    Decimal: NUMERIC,
    str: TEXT,
    Label: TEXT,  # only its column knows the enum type
    date: DATE,
    Interval: INTERVAL,
    UUID: UUID_TYPE,
    bytes: BYTEA,
    Jsonb: JSONB,
    Record: RECORD,
    ObjectName: OID,
}
