"""Access lists: what acldefault gives, and aclexplode reads.

Only the schema public has a list of its own: relacl and its kin are NULL, which means the default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from qserver.errors import InvalidParameterValue, InvalidTextRepresentation
from qserver.query.catalog.objects import CatalogObjects as Objects
from qserver.query.catalog.roles import ROLE_NAMES, ROLES


class _Default(NamedTuple):
    public: str
    owner: str


_DEFAULTS: Final[Mapping[str, _Default]] = {
    "c": _Default("", ""),
    "r": _Default("", "arwdDxt"),
    "s": _Default("", "rwU"),
    "d": _Default("Tc", "CTc"),
    "f": _Default("X", "X"),
    "l": _Default("U", "U"),
    "L": _Default("", "rw"),
    "n": _Default("", "UC"),
    "p": _Default("", "sA"),
    "t": _Default("", "C"),
    "F": _Default("", "U"),
    "S": _Default("", "U"),
    "T": _Default("U", "U"),
}
"""By the kind of an object: a table is r, a schema n, a type T."""
_PRIVILEGES: Final = {
    "r": "SELECT",
    "a": "INSERT",
    "w": "UPDATE",
    "d": "DELETE",
    "D": "TRUNCATE",
    "x": "REFERENCES",
    "t": "TRIGGER",
    "X": "EXECUTE",
    "U": "USAGE",
    "C": "CREATE",
    "T": "TEMPORARY",
    "c": "CONNECT",
    "s": "SET",
    "A": "ALTER SYSTEM",
}
_ITEM: Final = re.compile(r'(?:group |user )?("(?:[^"]|"")*"|[^="]*)=([a-zA-Z*]*)/(.+)')


def default_list(objects: Objects, kind: str, owner: int) -> tuple[str, ...]:
    found = _DEFAULTS.get(kind)
    if found is None:
        raise InvalidParameterValue(f"unrecognized object type abbreviation: {kind}")
    name = ROLE_NAMES.get(owner) or str(int(owner))
    lists = [("", found.public), (name if owner else "", found.owner)]
    return tuple([f"{grantee}={letters}/{name}" for grantee, letters in lists if letters])


def exploded(objects: Objects, items: Any) -> Iterator[tuple[int, int, str, bool]]:
    """Yield grantor, grantee, privilege, and whether the grantee may pass it on."""
    for item in items:
        match = _ITEM.fullmatch(item)
        if match is None:
            raise InvalidTextRepresentation(f'invalid access list entry: "{item}"')
        grantee, letters, grantor = match.groups()
        for letter, star in re.findall(r"([a-zA-Z])(\*?)", letters):
            yield _role(grantor), _role(grantee), _PRIVILEGES[letter], bool(star)


def _role(name: str) -> int:
    return int(name) if name.isdecimal() else ROLES.get(name, 0)
