"""Answers of commits, kept in memory for as long as a commit can be asked for again.

A commit that changes something stores its answer itself, see `engine.stored_answers`; that one
survives a restart, and its times end where the commit begins. A commit that changes nothing makes
no version, so its answer is only here. The oldest answers of an organization make room for newer
ones: who asks for one of them is told that there is no such transaction, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from qserver.limits import COMMIT_ANSWER_SECONDS, COMMIT_ANSWERS_MAX


class CommitAnswers:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._kept: dict[str, dict[bytes, tuple[float, bytes]]] = {}
        """Of each organization, by their names, oldest first: when they end, and their texts."""

    def keep(self, organization_id: str, name: bytes, text: bytes) -> None:
        own = self._kept.setdefault(organization_id, {})
        own[name] = self._now() + COMMIT_ANSWER_SECONDS, text
        if len(own) > COMMIT_ANSWERS_MAX:
            del own[next(iter(own))]

    def find(self, organization_id: str, name: bytes) -> bytes | None:
        expires, text = self._kept.get(organization_id, {}).get(name, (0.0, b""))
        return text if self._now() < expires else None

    def sweep(self) -> None:
        """Forget answers that have expired."""
        now = self._now()
        for organization_id, own in list(self._kept.items()):
            for name, (expires, _) in list(own.items()):
                if now < expires:
                    break
                del own[name]
            if not own:
                del self._kept[organization_id]

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def __repr__(self) -> str:
        return f"answers of {len(self)} commits"
