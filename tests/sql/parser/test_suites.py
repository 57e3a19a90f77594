"""Statements of public suites, where they are at hand.

QSERVER_SLT names the folder of the suites; beside it lies `run.py`, which reads their files.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from qserver.errors import FeatureNotSupported, QserverError
from qserver.lexing.fingerprint import parameterize
from qserver.sql.parser import parse
from tests.given import GIVEN

VARIABLE = "QSERVER_SLT"
STEP = 17  # every so many statements of each file: enough to see a hole, and quick


def load_runner(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("suites_runner", folder.parent / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_postgresql_runs_can_be_parsed() -> None:
    folder = Path(GIVEN.get(VARIABLE, ""))
    if not GIVEN.get(VARIABLE) or not (folder.parent / "run.py").exists():
        pytest.skip(f"{VARIABLE} names no folder of sqllogictest suites")
    runner = load_runner(folder)
    step = int(GIVEN.get("QSERVER_SLT_STEP", STEP))
    failures: list[str] = []
    count = 0
    for path, key in runner.collect([str(folder)]):
        for at, record in enumerate(runner.parse(path)):
            if at % step or record.kind == "control" or record.expect == "error":
                continue
            if not runner.applies(record.conds, "postgresql"):
                continue
            count += 1
            try:
                parsed, parameterized = parse(record.sql), parameterize(record.sql)
            except FeatureNotSupported:
                continue
            except QserverError as error:
                failures.append(f"{key}:{record.line}: {error!r}")
                continue
            assert (parsed.literals, parsed.kinds) == (
                parameterized.literals,
                parameterized.kinds,
            ), record.sql
    assert failures == []
    assert count > 0
