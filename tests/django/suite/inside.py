"""Runs Django's runtests.py on databases that are there: its path, then its arguments."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.backends.postgresql.creation import DatabaseCreation

from tests.django.suite.databases import PREPARED, WITHOUT_INET

_create = DatabaseCreation._execute_create_test_db


def create_others(self: Any, cursor: Any, parameters: dict[str, str], keepdb: bool = False) -> None:
    if parameters["dbname"].strip('"') not in PREPARED.values():
        _create(self, cursor, parameters, keepdb)


DatabaseCreation._execute_create_test_db = create_others
if WITHOUT_INET in os.environ:
    DatabaseWrapper.data_types["GenericIPAddressField"] = "text"
script = Path(sys.argv.pop(1))
sys.argv[0] = str(script)
sys.path.insert(0, str(script.parent))
runpy.run_path(str(script), run_name="__main__")
