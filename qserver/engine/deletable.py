"""What users are told when a database was deleted under them, at its owner or at a replica."""

from __future__ import annotations

from qserver.errors import DatabaseDropped


class Deletable:
    is_deleted = False
    """Whether it is being closed because the database was deleted."""

    def check_not_deleted(self, name: str) -> None:
        if self.is_deleted:
            raise DatabaseDropped(
                f"database {name} was deleted", hint="It is gone: use another, or make it anew."
            )
