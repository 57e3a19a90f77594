"""All tests that SQLAlchemy has for dialects of others."""

from __future__ import annotations

from sqlalchemy.testing.suite import *  # noqa: F403
