"""COPY."""

from __future__ import annotations

from qserver.errors import FeatureNotSupported
from qserver.pgwire.state import State
from qserver.pgwire.waits import Waits


def copy(state: State, text: str, *, commits: bool = True) -> Waits[None]:
    raise FeatureNotSupported("COPY is not supported")
    yield
