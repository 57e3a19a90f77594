"""The types of columns and parameters, where PostgreSQL's of SQLAlchemy are not right as they are.

A parameter is JSON, which does not tell a date from a text: each is rendered with a cast,
`$1::DATE`, so that the server never guesses. Rows have Python's values already; what is left to do
is Decimal or float, as the column of SQLAlchemy wants it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.json import JSONPathType
from sqlalchemy.dialects.postgresql.types import OID, REGCLASS
from sqlalchemy.engine import Dialect, processors
from sqlalchemy.sql import sqltypes

from qserver.client.python_values import plain_name

Processor = Callable[[Any], Any] | None

_FLOATS: Final = frozenset({"real", "double precision"})


class _Numbers(sqltypes.NumericCommon[Any]):
    render_bind_cast = True

    def bind_processor(self, dialect: Dialect) -> None:
        return None

    def result_processor(self, dialect: Dialect, coltype: object) -> Processor:
        has_floats = plain_name(str(coltype)) in _FLOATS
        if self.asdecimal:
            scale = self._effective_decimal_return_scale
            return processors.to_decimal_processor_factory(Decimal, scale) if has_floats else None
        return None if has_floats else processors.to_float


class _Numeric(_Numbers, sqltypes.Numeric[Any]):
    pass


class _Float(_Numbers, sqltypes.Float[Any]):
    pass


class _OfJson(sqltypes.JSON):
    """JSON arrives as values; a deserializer of the user's own wants the text."""

    render_bind_cast = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Processor:
        own = dialect._json_deserializer
        if own is None:
            return None

        def read(value: Any) -> Any:
            return None if value is None else own(json.dumps(value))

        return read


class _Json(_OfJson, postgresql.JSON):
    pass


class _Jsonb(_OfJson, postgresql.JSONB):
    pass


class _JsonIndex(sqltypes.JSON.JSONIndexType):
    pass


class _JsonIntIndex(sqltypes.JSON.JSONIntIndexType):
    __visit_name__ = "json_int_index"
    render_bind_cast = True


class _JsonStrIndex(sqltypes.JSON.JSONStrIndexType):
    __visit_name__ = "json_str_index"
    render_bind_cast = True


class _JsonPath(JSONPathType):
    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        def written(value: Any) -> Any:
            """A text is a path already; anything else are its steps."""
            return value if isinstance(value, str) else [str(each) for each in value or ()]

        return written


class _Interval(postgresql.INTERVAL):
    render_bind_cast = True

    @classmethod
    def adapt_emulated_to_native(cls, interval: Any, **kw: Any) -> Any:  # type: ignore[override]
        return _Interval(precision=interval.second_precision)


class _Array(postgresql.ARRAY[Any]):
    render_bind_cast = True


class _Enum(postgresql.ENUM):
    render_bind_cast = True


def _with_cast(kind: type[Any]) -> type[Any]:
    """The type, whose parameters are rendered with a cast."""
    return type(f"_{kind.__name__}", (kind,), {"render_bind_cast": True, "__module__": __name__})


COLUMN_TYPES: Final[dict[type[Any], type[Any]]] = {
    **{
        kind: _with_cast(kind)
        for kind in (
            sqltypes.String,
            sqltypes.CHAR,
            sqltypes.Integer,
            sqltypes.SmallInteger,
            sqltypes.BigInteger,
            sqltypes.Boolean,
            sqltypes.Date,
            sqltypes.DateTime,
            sqltypes.Time,
            sqltypes.LargeBinary,
            sqltypes.Uuid,
            postgresql.BYTEA,
            OID,
            REGCLASS,
        )
    },
    sqltypes.Numeric: _Numeric,
    sqltypes.Float: _Float,
    sqltypes.Interval: _Interval,
    postgresql.INTERVAL: _Interval,
    sqltypes.JSON: _Json,
    postgresql.JSONB: _Jsonb,
    sqltypes.JSON.JSONPathType: _JsonPath,
    sqltypes.JSON.JSONIndexType: _JsonIndex,
    sqltypes.JSON.JSONIntIndexType: _JsonIntIndex,
    sqltypes.JSON.JSONStrIndexType: _JsonStrIndex,
    sqltypes.Enum: _Enum,
    sqltypes.ARRAY: _Array,
}
