from __future__ import annotations

from tests.cli.databases import empty_database

__all__ = ["empty_database"]
