"""Names: the key under which the catalog has one, and how SQL writes it."""

from __future__ import annotations

import re
from typing import Final

PUBLIC: Final = "public"
_AMBIGUOUS: Final = re.compile(r'[.,]|^"')
_LISTED: Final = re.compile(r'(?>"(?>[^"]|"")*+"|[^,])*+')


def catalog_key(schema: str, name: str) -> str:
    """The catalog's key: the name, after its schema if that is not public.

    No name holds a NUL, so keys are unambiguous.
    """
    return name if schema == PUBLIC else f"{schema}\0{name}"


class Named:
    """What has a name in a schema."""

    __slots__ = ()

    name: str
    schema: str

    @property
    def key(self) -> str:
        """Its key in the catalog."""
        return catalog_key(self.schema, self.name)

    @property
    def path(self) -> tuple[str, ...]:
        """The names that a statement may use for it, whatever its search_path is."""
        return self.schema, self.name

    @property
    def label(self) -> str:
        """The name that clients are shown: after its schema if that is not public."""
        return self.name if self.schema == PUBLIC else f"{self.schema}.{self.name}"


def name_of_key(key: str) -> str:
    """The name that a key stands for: after its schema and a dot; of a schema, its own.

    A part is in quotes only if it has a dot or a comma or begins with a quote, so that it can be
    told from two parts, and from two names.
    """
    parts = key.removesuffix("\0").split("\0")
    return ".".join([quoted(part) if _AMBIGUOUS.search(part) else part for part in parts])


def key_of_name(name: str) -> str:
    """The inverse of `name_of_key`, for a relation."""
    *schemas, last = identifiers(name, fold=False)
    return catalog_key(".".join(schemas) if schemas else PUBLIC, last)


def names_in(text: str) -> list[str]:
    """The names in a list with commas between them; within quotes a comma is part of a name."""
    names, at = list[str](), 0
    while at <= len(text):
        found = _LISTED.match(text, at)
        assert found is not None, "it matches the empty text"
        names.append(found.group().strip())
        at = found.end() + 1
    return names


def stored_name(key: str) -> str:
    """The name of a key as SQL, always after its schema: no search_path changes what it means."""
    schema, _, name = key.rpartition("\0")
    return f"{quote_identifier(schema or PUBLIC)}.{quote_identifier(name)}"


def qualified(schema: str, name: str) -> str:
    """The name as SQL, after its schema if that is not public."""
    if schema == PUBLIC:
        return quote_identifier(name)
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)

# Words that need quotes as names in PostgreSQL 15.
RESERVED: Final = frozenset(
    re.findall(
        r"\w+",
        """
    all analyse analyze and any array as asc asymmetric authorization between bigint binary
    bit boolean both case cast char character check coalesce collate collation column
    concurrently constraint create cross current_catalog current_date current_role
    current_schema current_time current_timestamp current_user dec decimal default
    deferrable desc distinct do else end except exists extract false fetch float for foreign
    freeze from full grant greatest group grouping having ilike in initially inner inout int
    integer intersect interval into is isnull join lateral leading least left like limit
    localtime localtimestamp national natural nchar none normalize not notnull null nullif
    numeric offset on only or order out outer overlaps overlay placing position precision
    primary real references returning right row select session_user setof similar smallint
    some substring symmetric table tablesample then time timestamp to trailing treat trim
    true union unique user using values varchar variadic verbose when where window with
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi
    xmlroot xmlserialize xmltable
    """,
    )
)


def quote_identifier(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) and name not in RESERVED else quoted(name)


def quoted(name: str) -> str:
    """Return a name in quotes, also where it needs none."""
    return '"' + name.replace('"', '""') + '"'


def identifiers(text: str, *, fold: bool = True) -> list[str]:
    """The parts of a name in a text, such as nextval takes: `s.t`, `"s.t"`."""
    parts: list[str] = []
    rest, dot = text.strip(), "."
    while rest or dot:
        if rest.startswith('"'):
            part, _, rest = rest[1:].partition('"')
            while rest.startswith('"'):
                more, _, rest = rest[1:].partition('"')
                part += '"' + more
            rest = rest.strip()
            dot, rest = rest[:1] if rest.startswith(".") else "", rest.removeprefix(".")
        else:
            part, dot, rest = rest.partition(".")
            part = part.strip().lower() if fold else part
        parts.append(part)
    return parts
