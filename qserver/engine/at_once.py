"""Running a statement right where one stands: in one go, or not at all.

Whoever calls `SqlDatabase.read_nowait` keeps everybody else waiting meanwhile, and begins again in
the ordinary way when nothing comes of it. So a run that is at once must not

    give way, or come to where it could not but should       `check` is called there
    draw from a sequence, or set one                         a second run would draw again

and ends with `NotAtOnce` when it is about to.
"""

from __future__ import annotations

from typing import Never

from qserver.engine.request import Request, RequestContext
from qserver.storage.view import View


class NotAtOnce(Exception):  # news for the gateway, not for users
    """The statement has to be run in the ordinary way. Nothing has been done."""


class AtOnceContext(RequestContext):
    """The context of a run that is at once."""

    @staticmethod
    def of(request: Request, view: View) -> AtOnceContext:
        context = AtOnceContext(request, view)
        context.check = _not_at_once
        return context

    def check_deadline(self) -> None:
        """One long step is allowed: who asks again for the like is given it in turns."""

    @property
    def sequences(self) -> Never:  # type: ignore[override]
        _not_at_once()


def _not_at_once() -> Never:
    raise NotAtOnce
