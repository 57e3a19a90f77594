"""`%sql` in a real IPython with JupySQL: the cells of docs/notebooks.md show what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.dbapi.served import KEY, client_of, served
from tests.patience import PATIENCE_SECONDS
from tests.web.contract.servers import Server

PAGE: Final = Path(__file__).parents[2] / "docs" / "notebooks.md"
CELL: Final = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL
)
CONNECT: Final = """
from sqlalchemy import create_engine
engine = create_engine({url!r})
%load_ext sql
%config SqlMagic.named_parameters = "enabled"
%config SqlMagic.feedback = 0
%sql engine --alias main
"""


KINDS: Final = (
    "%sql SELECT 1.50::numeric AS n, NULL AS nothing, DATE '2030-01-02' AS day,"
    " '{\"a\": [1]}'::jsonb AS j, true AS yes",
    "numbers = [1, 3]\n%sql SELECT n FROM generate_series(1, 3) n WHERE n = ANY(:numbers)",
    "try:\n"
    "    get_ipython().run_line_magic('sql', 'SELECT nope')\n"
    "except Exception as error:\n"
    "    print(error)",
    "%sql CREATE TABLE t (id INT PRIMARY KEY)\n"
    "%sql INSERT INTO t VALUES (1)\n"
    "%sql SELECT id FROM t",
    "%sqlcmd columns --table t",
    'name = "x\'); DROP TABLE t; --"\n%sql SELECT :name AS name, count(*) FROM t',
)


def shown(server: Server, folder: Path, cells: list[str]) -> list[str]:
    """What cells show, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("cells.py"))],
        input=json.dumps(cells),
        env={
            **os.environ,
            "HOME": str(folder),
            "PLOOMBER_STATS_ENABLED": "false",  # JupySQL would tell its makers
            "URL": server.url,
            "KEY": KEY,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[0])  # then JupySQL says goodbye
    return found


def stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@pytest.mark.long
def test_the_cells_of_the_page_show_what_it_says(tmp_path: Path) -> None:
    cells = CELL.findall(PAGE.read_text(encoding="utf-8"))
    assert len(cells) >= 10
    with served(tmp_path) as server:
        found = shown(server, tmp_path, [cell for cell, _ in cells])
    for (cell, wanted), answer in zip(cells, found, strict=True):
        if wanted:
            assert stripped(answer) == stripped(wanted), cell


@pytest.mark.long
def test_values_of_all_kinds_and_failures_are_shown(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        with client_of(server) as client:
            client.create_database("nb")
        url = f"qserver://:{KEY}@127.0.0.1:{server.port}/nb"
        found = shown(server, tmp_path, [CONNECT.format(url=url), *KINDS])
    _, kinds, arrays, failure, after, inspected, injected = found
    assert stripped(kinds)[3] == "| 1.50 |   None  | 2030-01-02 | {'a': [1]} | True |"
    assert stripped(arrays)[3:5] == ["| 1 |", "| 3 |"]
    assert "42703" in failure or 'column "nope" does not exist' in failure
    assert stripped(after)[-2] == "| 1  |"
    assert "|  id  | INTEGER |  False   |" in inspected
    assert "| x'); DROP TABLE t; -- |   1   |" in injected
