"""Oids with the names of their objects: values of regclass, regtype, regproc and their kin.

Such a value is the object's number, and compares, joins and hashes like it. What it prints, its
`text`, is the name that the object has in the catalog of the statement: whoever makes the value
looks it up, so that nobody needs a catalog to print it. Where it went as a plain oid, it prints as
the number that it is.
"""

from __future__ import annotations

from typing import Final, final


@final
class ObjectName(int):
    """An oid that prints as a name; 0 is no object and prints as a dash."""

    text: str

    def __new__(cls, oid: int, text: str) -> ObjectName:
        value = super().__new__(cls, oid)
        value.text = text
        return value

    def __reduce__(self) -> tuple[type[ObjectName], tuple[int, str]]:
        return ObjectName, (int(self), self.text)

    def __repr__(self) -> str:
        return f"ObjectName({int(self)}, {self.text!r})"

    __str__ = int.__repr__


NO_OBJECT: Final = ObjectName(0, "-")
