"""Definitions of tables, columns and indexes, and the keys and index entries of a row.

A table's rows are in one tree under their primary key; each index is another tree that leads to
primary keys:

    table           (7,)           ->  (7, 'ada', None)     key  ->  row
    unique index    ('ada',)       ->  (7,)                 indexed  ->  primary key
    other index     ('ada', 7)     ->  (7,)                 indexed + primary key  ->  primary key
    NULL in it      (NULL_KEY, 7)  ->  (7,)                 also when unique: NULLs are distinct

A table without a primary key has a hidden last column `row_id`, which is its key. An index over an
expression, or a partial index, has hidden generated columns before that. Definitions are frozen
values; a changed table is another `Table`. The constructor compiles what each row needs (key
functions, admission of values) once. `define_table` makes a definition from names, as a statement
has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, ClassVar, NoReturn

from qserver.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    DuplicateTable,
    InvalidName,
    InvalidTableDefinition,
    NameTooLong,
    NotNullViolation,
    QserverError,
    TooManyColumns,
    UndefinedColumn,
    UndefinedObject,
)
from qserver.limits import COLUMNS_MAX, IDENTIFIER_BYTES_MAX, INDEX_COLUMNS_MAX
from qserver.values.admission import Admitter, admitter
from qserver.values.constraints import Check, ForeignKey
from qserver.values.identifiers import PUBLIC, Named
from qserver.values.keys import Key, KeyFunction, KeysFunction, Row, make_key, make_keys
from qserver.values.plain import PlainFields, each_by
from qserver.values.text_output import shown
from qserver.values.types import BIGINT, CAREFUL_KINDS, PLAIN_KINDS, SqlType, type_of_value

ROW_ID = "row_id"

EntryFunction = Callable[[Row], tuple[Key, Row]]


@dataclass(frozen=True, slots=True)
class Column(PlainFields):
    """A column; a hidden one is stored, but no statement can name it.

    `default` and `generated` are source texts of expressions; a generated column is computed from
    the others of its row and stored. `identity` is "always" or "by default": then `sequence` names
    the sequence of its values. A SERIAL column has that in its default.
    """

    name: str
    type: SqlType
    nullable: bool = True
    hidden: bool = False
    default: str | None = None
    generated: str | None = None
    identity: str | None = None
    sequence: str | None = None
    collation: str | None = None
    """The collation that was written, which is only shown: there is one order of texts."""
    default_oid: int | None = field(default=None, compare=False)
    """The object id of its default; see `numbering`, also for the other oids."""

    def __post_init__(self) -> None:
        check_name(self.name)

    READERS: ClassVar = {"type": SqlType.from_plain}

    def to_plain(self) -> dict[str, Any]:
        plain = PlainFields.to_plain(self)
        return {name: value for name, value in plain.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Index(PlainFields):
    """An index over the columns at some positions of its table.

    `constraint`: it enforces a UNIQUE constraint of the same name. `nulls_distinct`: NULL is no
    duplicate of NULL, the default. `deferral`: as of a foreign key, if the constraint may wait for
    the end of a transaction. Then the tree holds duplicates meanwhile, so it is not `unique`.
    `nulls_moved`: NULLS FIRST was written where NULL comes last, or NULLS LAST where it comes
    first. That is only shown: the tree has one order.
    """

    id: int
    name: str
    columns: tuple[int, ...]
    unique: bool
    descending: tuple[bool, ...] = ()
    constraint: bool = False
    nulls_distinct: bool = True
    oid: int = field(default=0, compare=False)
    deferral: str = ""  # "deferrable", "deferred"
    nulls_moved: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)
        assert not (self.deferral and self.unique), "what may wait is not held by the tree"
        assert self.columns, "an index has at least one column"
        assert not self.descending or len(self.descending) == len(self.columns)
        if len(self.columns) > INDEX_COLUMNS_MAX:
            raise TooManyColumns(f"cannot use more than {INDEX_COLUMNS_MAX} columns in an index")
        if not any(
            self.descending
        ):  # one form of "all ascending", so that equal indexes compare equal
            object.__setattr__(self, "descending", ())
        if not any(self.nulls_moved):
            object.__setattr__(self, "nulls_moved", ())

    @property
    def orders(self) -> tuple[tuple[bool, bool], ...]:
        """Of each column, whether it is descending, and whether its NULLs come first."""
        usual = (False,) * len(self.columns)
        pairs = zip(self.descending or usual, self.nulls_moved or usual, strict=True)
        return tuple([(down, down != moved) for down, moved in pairs])


def order_words(descending: bool, nulls_first: bool) -> str:
    """Return what stands behind a column of an index, where it is not the default."""
    words = " DESC" if descending else ""
    if nulls_first == descending:
        return words
    return f"{words} NULLS {'FIRST' if nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class Table(Named, PlainFields):
    """A table; equal to another if the definitions are equal.

    `primary_key_name` is the constraint's name, which stays when the table is renamed; empty if the
    key is a row id. `comments` have a subject: "" is the table itself, "column a" and "constraint
    c" are parts of it. `referenced_by` are the tables whose foreign keys reference this one: a
    delete must check them.
    """

    id: int
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[int, ...]
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    primary_key_name: str = ""
    comments: tuple[tuple[str, str], ...] = ()
    referenced_by: tuple[str, ...] = ()
    schema: str = PUBLIC
    oid: int = field(default=0, compare=False)
    primary_key_oid: int = field(default=0, compare=False)

    READERS: ClassVar = {
        "columns": each_by(Column.from_plain),
        "indexes": each_by(Index.from_plain),
        "checks": each_by(Check.from_plain),
        "foreign_keys": each_by(ForeignKey.from_plain),
    }

    key_of: KeyFunction = field(init=False, compare=False, repr=False)
    keys_of: KeysFunction = field(init=False, compare=False, repr=False)
    positions: dict[str, int] = field(init=False, compare=False, repr=False)
    """The positions of the visible columns, by name. Do not mutate."""
    _admitters: tuple[Admitter, ...] = field(init=False, compare=False, repr=False)
    _required: tuple[int, ...] = field(init=False, compare=False, repr=False)
    _entries: dict[int, EntryFunction] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_table(self)
        if not self.primary_key_name and not self.has_row_id:
            object.__setattr__(self, "primary_key_name", f"{self.name}_pkey")
        careful = _needs_care(self.columns, self.primary_key)
        compiled = {
            "key_of": make_key(self.primary_key, careful),
            "keys_of": make_keys(self.primary_key, careful),
            "positions": {
                column.name: at for at, column in enumerate(self.columns) if not column.hidden
            },
            "_admitters": tuple(admitter(column.type) for column in self.columns),
            "_required": tuple(at for at, each in enumerate(self.columns) if not each.nullable),
        }
        for name, value in compiled.items():
            object.__setattr__(self, name, value)
        entries = {index.id: _entry_function(self, index) for index in self.indexes}
        object.__setattr__(self, "_entries", entries)

    @property
    def is_plain(self) -> bool:
        """Do its rows hold only values that are stored just as they are? See `encoding`."""
        return all(column.type.kind in PLAIN_KINDS for column in self.columns)

    @property
    def has_tree(self) -> bool:
        """Are its rows in a tree, in the order of the key? Those of the catalog are in none."""
        return self.id > 0

    @property
    def has_row_id(self) -> bool:
        """Is the key a hidden row id, because the table has no primary key?"""
        return self.columns[self.primary_key[0]].hidden

    def position(self, name: str) -> int:
        """The position of a visible column in a row."""
        try:
            return self.positions[name]
        except KeyError:
            message = f'column "{name}" of relation "{self.name}" does not exist'
            raise UndefinedColumn(message, table=self.name, column=name) from None

    def column(self, name: str) -> Column:
        return self.columns[self.position(name)]

    def index(self, name: str) -> Index:
        for index in self.indexes:
            if index.name == name:
                return index
        raise UndefinedObject(f'index "{name}" does not exist', table=self.name)

    def with_index(self, index: Index) -> Table:
        return replace(self, indexes=(*self.indexes, index))

    def without_index(self, name: str) -> Table:
        dropped = self.index(name)
        return replace(self, indexes=tuple(each for each in self.indexes if each is not dropped))

    def entry_function(self, index: Index) -> EntryFunction:
        """The function from a row to its entry, `(key, primary key)`, in one of the indexes."""
        return self._entries[index.id]

    def entries(self, index: Index, row: Row) -> tuple[Key, Row]:
        """The entry of a row in an index: its key there, and the primary key."""
        return self._entries[index.id](row)

    def row(self, values: Mapping[str, Any] | Sequence[Any]) -> Row:
        """The row to store for the values of all columns, in order or by name.

        By name, a missing value is NULL. Values are admitted, not cast.
        """
        if type(values) is not tuple and isinstance(values, Mapping):
            values = self._in_order(values)
        assert len(values) == len(self.columns), "a value for each column, hidden ones too"
        try:
            row = tuple(
                [admit(value) for admit, value in zip(self._admitters, values, strict=True)]
            )
        except QserverError:
            self._refuse(values)
        for at in self._required:
            if row[at] is None:
                raise self._null_in(self.columns[at], row)
        return row

    def _in_order(self, values: Mapping[str, Any]) -> list[Any]:
        row: list[Any] = [None] * len(self.columns)
        for name, value in values.items():
            hidden = name == ROW_ID and self.has_row_id and ROW_ID not in self.positions
            row[self.primary_key[0] if hidden else self.position(name)] = value
        return row

    def _refuse(self, values: Sequence[Any]) -> NoReturn:
        """Find the value that was not admitted, and raise its error with the column."""
        for column, admit, value in zip(self.columns, self._admitters, values, strict=True):
            try:
                admit(value)
            except DatatypeMismatch:
                message = (
                    f'column "{column.name}" is of type {column.type}'
                    f" but expression is of type {_name_type(value)}"
                )
                raise DatatypeMismatch(message, table=self.name, column=column.name) from None
            except QserverError as error:
                error.table, error.column = self.name, column.name
                raise
        raise AssertionError("a value was refused once and then admitted")

    def _null_in(self, column: Column, row: Row) -> NotNullViolation:
        message = (
            f'null value in column "{column.name}" of relation "{self.name}"'
            " violates not-null constraint"
        )
        detail = f"Failing row contains ({self.describe(row)})."
        return NotNullViolation(message, detail=detail, table=self.name, column=column.name)

    def describe(self, row: Row) -> str:
        """The visible values of a row for an error message, long ones cut."""
        texts = []
        for column, value in zip(self.columns, row, strict=True):
            if not column.hidden:
                text = "null" if value is None else shown(value, column.type)
                texts.append(text if len(text) <= 64 else text[:64] + "...")
        return ", ".join(texts)

    def describe_key(self, positions: Sequence[int], row: Row) -> str:
        """Names and values of a key for an error message: (a, b)=(1, x)."""
        names, texts = [], []
        for at in positions:
            column = self.columns[at]
            if not is_predicate(column):
                names.append(column.generated or column.name if column.hidden else column.name)
                texts.append("null" if row[at] is None else shown(row[at], column.type))
        return f"({', '.join(names)})=({', '.join(texts)})"


def define_table(
    id: int, name: str, columns: Sequence[Column], primary_key: Sequence[str] = ()
) -> Table:
    """A table from names: key columns become NOT NULL; without a key it gets a row id."""
    key = tuple(_find(columns, column) for column in primary_key)
    if not key:
        columns = (*columns, Column(ROW_ID, BIGINT, nullable=False, hidden=True))
        return Table(id, name, columns, (len(columns) - 1,))
    defined = [
        replace(column, nullable=False) if at in key else column
        for at, column in enumerate(columns)
    ]
    return Table(id, name, tuple(defined), key)


def predicate_of(text: str) -> str:
    """The generated expression of a partial index's hidden column: true or NULL."""
    return f"{_PREDICATE[0]}{text}{_PREDICATE[1]}"


def is_predicate(column: Column) -> bool:
    """Does the hidden column decide whether a row is in a partial index?"""
    return (
        column.hidden
        and column.generated is not None
        and column.generated.startswith(_PREDICATE[0])
        and column.generated.endswith(_PREDICATE[1])
    )


_PREDICATE = ("CASE WHEN (", ") THEN true END")


def predicate_text(column: Column) -> str:
    """The condition of a partial index, as it was written."""
    assert is_predicate(column) and column.generated is not None
    return column.generated[len(_PREDICATE[0]) : -len(_PREDICATE[1])]


def check_name(name: str) -> None:
    """Raise unless the name has 1 to 63 bytes of UTF-8 without NUL."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidName(f"name {name!r} is not valid Unicode") from None
    if size == 0:
        raise InvalidName("zero-length delimited identifier")
    if "\0" in name:
        raise InvalidName(f"name {name!r} must not contain a zero character")
    if size > IDENTIFIER_BYTES_MAX:
        raise NameTooLong(f'identifier "{name}" is longer than {IDENTIFIER_BYTES_MAX} bytes')


# --- compiled when a definition is made ----------------------------------------------------------


def _entry_function(table: Table, index: Index) -> EntryFunction:
    careful = _needs_care(table.columns, index.columns)
    key_of = table.key_of
    unique_key = make_key(index.columns, careful, index.descending)
    if not any(index.descending):
        longer = make_key(
            (*index.columns, *table.primary_key),
            careful or _needs_care(table.columns, table.primary_key),
        )
    else:
        longer = _joined(unique_key, key_of)
    if not index.unique:
        return lambda row: (longer(row), key_of(row))

    nullable = tuple(at for at in index.columns if table.columns[at].nullable)
    if not nullable or not index.nulls_distinct:
        return lambda row: (unique_key(row), key_of(row))
    if len(nullable) == 1:
        (at,) = nullable
        return lambda row: ((longer if row[at] is None else unique_key)(row), key_of(row))
    pick = itemgetter(*nullable)
    return lambda row: ((longer if None in pick(row) else unique_key)(row), key_of(row))


def _joined(first: KeyFunction, second: KeyFunction) -> KeyFunction:
    return lambda row: first(row) + second(row)


def _needs_care(columns: Sequence[Column], positions: Sequence[int]) -> bool:
    return any(columns[at].nullable or columns[at].type.kind in CAREFUL_KINDS for at in positions)


# --- checks --------------------------------------------------------------------------------------


def _check_table(table: Table) -> None:
    check_name(table.name)
    visible = [column.name for column in table.columns if not column.hidden]
    if len(visible) > COLUMNS_MAX:
        raise TooManyColumns(f"tables can have at most {COLUMNS_MAX} columns", table=table.name)
    if len(set(visible)) < len(visible):
        name = next(name for at, name in enumerate(visible) if name in visible[:at])
        message = f'column "{name}" specified more than once'
        raise DuplicateColumn(message, table=table.name, column=name)
    behind = table.columns[len(visible) :]
    assert all(column.hidden for column in behind), "hidden columns are the last"
    _check_primary_key(table)
    names: set[str] = set()
    for index in table.indexes:
        _check_positions(table, index.columns)
        if index.name in names:
            raise DuplicateTable(f'relation "{index.name}" already exists', table=table.name)
        names.add(index.name)
    assert len({index.id for index in table.indexes}) == len(names), "two indexes have one id"


def _check_primary_key(table: Table) -> None:
    key = table.primary_key
    assert key, "a table without a primary key has a row id"
    _check_positions(table, key)
    if len(key) > INDEX_COLUMNS_MAX:
        raise TooManyColumns(f"cannot use more than {INDEX_COLUMNS_MAX} columns in an index")
    for place, at in enumerate(key):
        column = table.columns[at]
        if at in key[:place]:
            message = f'column "{column.name}" appears twice in primary key constraint'
            raise DuplicateColumn(message, table=table.name, column=column.name)
        if column.nullable:
            message = f'column "{column.name}" in primary key must be marked NOT NULL'
            raise InvalidTableDefinition(message, table=table.name, column=column.name)


def _check_positions(table: Table, positions: Sequence[int]) -> None:
    assert all(0 <= at < len(table.columns) for at in positions), "a position past the last column"


def _find(columns: Sequence[Column], name: str) -> int:
    for at, column in enumerate(columns):
        if column.name == name and not column.hidden:
            return at
    raise UndefinedColumn(f'column "{name}" named in key does not exist', column=name)


def _name_type(value: Any) -> str:
    try:
        return str(type_of_value(value))
    except KeyError:
        return type(value).__name__
