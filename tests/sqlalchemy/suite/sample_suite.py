"""A part of the tests, for `make test`: to collect all of them takes seconds."""

from __future__ import annotations

from sqlalchemy.testing.suite.test_rowcount import *  # noqa: F403
from sqlalchemy.testing.suite.test_update_delete import *  # noqa: F403
