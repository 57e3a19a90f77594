"""What a family of databases must hold: a root, branches of it, and branches of those.

    may_hold    what a member holds: one content, or two while a request has no answer
    versions    what each version held when it was made, also those from before the branch
    ended       when a version ceased to be the newest, at the earliest

One client writes a family, one request after the other. So all of it is known, but for the last
request of a life, and the first look after a restart settles that.

A version must be readable for as long as history goes back. A member whose history was short for a
moment may have lost what had ended before that moment: `lost_until` says what. A branch has the
versions from before it was made for as long as its parent has them, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Final, TypeAlias

from tests.torture.model import Presence

Content: TypeAlias = dict[int, int] | None
"""The values by their keys; None: there is no table yet."""

HISTORY_DEFAULT: Final = 86_400


@dataclass(eq=False)
class Member:
    name: str
    parent: Member | None = None
    base: int = 0
    """The version of the parent at which it was made."""
    may_hold: list[Content] = field(default_factory=lambda: [None])
    newest: int = 0
    presence: Presence = Presence.OPEN
    id: str | None = None
    versions: dict[int, Content] = field(default_factory=dict)
    ended: dict[int, float] = field(default_factory=dict)
    history: list[float] = field(default_factory=lambda: [HISTORY_DEFAULT])
    """For how many seconds versions are kept; two numbers while a request has no answer."""
    lost_until: float = -inf
    sent: float = inf
    """When the last change was sent."""

    @property
    def content(self) -> Content:
        return self.may_hold[0]

    def branch(self, name: str, version: int) -> Member:
        """Return a branch at a version, which has the same past."""
        content = self.versions[version]
        return Member(
            name,
            self,
            version,
            [content],
            version,
            versions={each: held for each, held in self.versions.items() if each <= version},
            ended={each: when for each, when in self.ended.items() if each < version},
            history=list(self.history),
        )

    def begin_change(self, after: Content, now: float) -> None:
        self.may_hold, self.sent = [self.content, after], now

    def hold(self, content: Content, version: int) -> Iterator[str]:
        """Note what it holds now; yield what is wrong with it."""
        if content not in self.may_hold:
            expected = " or ".join(map(_told, self.may_hold))
            yield f"{self.name} holds {_told(content)}, not {expected}"
        if version < self.newest:
            yield f"{self.name} is at version {version}, and was at {self.newest}"
        if version > self.newest:
            self.ended[self.newest] = self.sent
        self.may_hold, self.newest = [content], version
        yield from self.compare(version, content)

    def compare(self, version: int, content: Content) -> Iterator[str]:
        """Compare what a version holds with what it held before."""
        known = self.versions.setdefault(version, content)
        if known != content:
            yield f"version {version} of {self.name} holds {_told(content)}, not {_told(known)}"

    # --- history ---

    def horizon(self, now: float) -> float:
        """Versions that ended before this time may be gone."""
        return max(self.lost_until, now - min(self.history))

    def begin_history(self, seconds: float) -> None:
        self.history = [self.history[0], seconds]

    def keep_history(self, seconds: float, now: float) -> Iterator[str]:
        """Note how long versions are kept from now on."""
        if seconds not in self.history:
            yield f"the history of {self.name} is {seconds}, not one of {self.history}"
        self.lost_until = self.horizon(now)
        self.history = [seconds]

    def must_have(self, version: int, now: float) -> bool:
        """Return whether a version must be readable."""
        ended = self.ended.get(version)
        if ended is None:
            return True
        member = self
        while member.horizon(now) < ended:
            if version >= member.base:
                return True
            assert member.parent is not None
            member = member.parent
            if member.presence is not Presence.THERE:
                return False
        return False


def _told(content: Content) -> str:
    """A content in few words: most values are 0."""
    if content is None:
        return "no table"
    changed = {key: value for key, value in content.items() if value}
    return f"{len(content)} rows with {changed}"
