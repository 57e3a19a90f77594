"""Rows as objects of the caller's classes, and what is told when they do not fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pydantic
import pytest

from qserver.client import Client
from qserver.errors import InvalidRequest
from tests.client.fake_server import KEY, FakeServer, rows

COLUMNS = ["id", "price", "day", "at", "tags", "key", "raw"]
TYPES = [
    *("integer", "numeric(8,2)", "date", "timestamp with time zone", "text[]", "uuid", "bytea"),
]
ROW = [
    *(1, "1.50", "2024-02-29", "2024-02-29T10:00:00Z", ["a", None]),
    *("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "AP8="),
]


@dataclass
class Plain:
    id: int
    price: Decimal
    day: date
    at: datetime
    tags: list[str | None]
    key: UUID
    raw: bytes
    more: list[int] = field(default_factory=list)


class Named(NamedTuple):
    raw: bytes
    id: int
    price: Decimal
    day: date
    at: datetime
    tags: list[str | None]
    key: UUID
    more: int = 7


class Struct(msgspec.Struct):
    id: int
    price: Decimal
    day: date
    at: datetime
    tags: list[str | None]
    key: UUID
    raw: bytes


class Model(pydantic.BaseModel):
    id: int
    price: Decimal
    day: date
    at: datetime
    tags: list[str | None]
    key: UUID


@pytest.mark.parametrize("made", [Plain, Named, Struct, Model])
@pytest.mark.parametrize("values", ["json", "python"])
def test_rows_become_objects_with_the_types_of_the_fields(
    server: FakeServer, made: Any, values: Any
) -> None:
    last = -1 if made is Model else None  # pydantic knows no base64 without being told
    server.answer("SELECT", rows(COLUMNS[:last], TYPES[:last], [ROW[:last]]))
    with Client(server.url, KEY, values=values) as client:
        found = client.query("SELECT", into=made)
    (one,) = found.rows
    assert isinstance(one, made)
    assert (one.id, one.price, one.day) == (1, Decimal("1.50"), date(2024, 2, 29))
    assert one.at == datetime(2024, 2, 29, 10, tzinfo=UTC) and one.tags == ["a", None]
    assert one.key == UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
    assert found.version == 17 and found.columns[0] == "id"


@pytest.mark.parametrize("kind", ["dataclass", "tuple", "struct", "model"])
def test_what_does_not_fit_is_named(server: FakeServer, kind: str) -> None:
    made = {"dataclass": Two, "tuple": TwoTuple, "struct": TwoStruct, "model": TwoModel}[kind]
    server.answer("SELECT", rows(["id", "name"], ["integer", "text"], [[1, "a"], [2, None]]))
    with Client(server.url, KEY) as client:
        with pytest.raises(InvalidRequest, match=r'row 2 does not fit into .*column "name"'):
            client.query("SELECT", into=made)
        server.answer("MISSING", rows(["id"], ["integer"], [[1]]))
        with pytest.raises(InvalidRequest, match='"name"'):
            client.query("MISSING", into=made)
        if kind != "model":  # which leaves out what it does not know
            server.answer("MORE", rows(["id", "name", "x"], ["integer", "text", "text"], []))
            with pytest.raises(InvalidRequest, match='no field for the column "x"'):
                client.query("MORE", into=made)


def test_only_classes_with_fields_are_made(server: FakeServer) -> None:
    server.answer("SELECT", rows(["id"], ["integer"], [[1]]))
    with Client(server.url, KEY) as client:
        with pytest.raises(InvalidRequest, match="rows cannot be made into int"):
            client.query("SELECT", into=int)


@dataclass
class Two:
    id: int
    name: str


class TwoTuple(NamedTuple):
    id: int
    name: str


class TwoStruct(msgspec.Struct):
    id: int
    name: str


class TwoModel(pydantic.BaseModel):
    id: int
    name: str
