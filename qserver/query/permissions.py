"""Enforces what a request may do. Who may do what is decided elsewhere.

reading                                `read`
INSERT, UPDATE, DELETE, nextval …      `write`, which includes what the statement reads
EXPLAIN                                what its statement needs; it writes nothing without ANALYZE
pg_cancel_backend and its kin          `write`, and for connections of others `administers`
CREATE, ALTER, DROP, TRUNCATE …        `define`, and `read` where the statement reveals rows:
                                       CREATE TABLE AS, a constraint or a type for existing rows
"""

from __future__ import annotations

from typing import Final

import msgspec

from qserver.errors import Forbidden, ReadOnlyTransaction


class Allowed(msgspec.Struct, frozen=True):
    read: bool = True
    write: bool = True
    define: bool = True
    read_only: bool = False
    """Whether the transaction may only read, whatever the key may do."""
    key_id: str = ""
    """Whose key it is."""
    session_id: str | None = None
    """The session of the key that asks, if one does."""
    administers: bool = True
    """Whether it may see and end what others do in the database."""

    def may_see(self, key_id: str, session_id: str | None) -> bool:
        """Return whether it may see, and end, what a key or a session of one does."""
        is_own = key_id == self.key_id and self.session_id in (None, session_id)
        return is_own or self.administers

    def check_read(self) -> None:
        if not self.read:
            raise Forbidden("the key may not read data", hint=_HINT)

    def check_write(self, runs: bool = True) -> None:
        """`runs`: the statement is not only explained."""
        if not self.write:
            raise Forbidden("the key may not change data", hint=_HINT)
        if self.read_only and runs:
            raise ReadOnlyTransaction("the statement writes, and the transaction is read-only")

    def check_define(self, runs: bool = True) -> None:
        """`runs`: the statement is not only explained."""
        if not self.define:
            raise Forbidden("the key may not change definitions", hint=_HINT)
        if self.read_only and runs:
            raise ReadOnlyTransaction("the statement defines, and the transaction is read-only")


_HINT: Final = "Use a key with the scope data:read, data:write or schema, as the statement needs."
EVERYTHING: Final = Allowed()
READING: Final = Allowed(read_only=True)
NOBODY: Final = Allowed(False, False, False, administers=False)
