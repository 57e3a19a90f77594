"""Results as columns of Apache Arrow, for notebooks and programs that compute.

    stream of Arrow ──► pyarrow.Table ──► pandas, polars, DuckDB …

pyarrow, pandas and polars are imported when they are used: the client needs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from qserver.client.answers import success_of
from qserver.client.extras import module_of
from qserver.client.failures import ConnectionLost, unexpected_answer
from qserver.client.requests import ARROW

_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""What a whole stream of Arrow ends with."""
_AGAIN: Final = "These are not all rows: run the query again."


class Columns:
    """A result, column by column; `table` is the `pyarrow.Table`."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {', '.join(self.columns) or 'no columns'}>"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    @property
    def types(self) -> tuple[str, ...]:
        """The SQL types."""
        return tuple(
            (field.metadata or {})[b"qserver:type"].decode() for field in self.table.schema
        )

    def dicts(self) -> Iterator[dict[str, Any]]:
        return (row for batch in self.table.to_batches() for row in batch.to_pylist())

    def to_pandas(self, **options: Any) -> Any:
        """A DataFrame; the options are those of `pyarrow.Table.to_pandas`."""
        module_of("pandas")
        return self.table.to_pandas(**options)

    def to_polars(self) -> Any:
        """A polars DataFrame, without a copy where that can be."""
        return module_of("polars").from_arrow(self.table)


def require() -> None:
    """Tell before anything is sent that the answer could not be read."""
    module_of("pyarrow")


def columns_of(status: int, headers: Mapping[str, str], body: bytes) -> Columns:
    if status != 200 or not headers.get("content-type", "").startswith(ARROW):
        success_of(status, headers, body)  # raises, if it is an error
        raise unexpected_answer(status, body)
    if not body.endswith(_END):
        raise ConnectionLost("the answer ended before the result did", hint=_AGAIN)
    pyarrow = module_of("pyarrow")

    try:
        with pyarrow.ipc.open_stream(body) as reader:
            table = reader.read_all()
    except (pyarrow.ArrowException, OSError) as error:
        raise ConnectionLost(f"the columns are not whole: {error}", hint=_AGAIN) from error
    return Columns(table)
