"""The tables of the grammar are made once, and kept beside the bytecode."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from qserver.sql import parser
sys.pycache_prefix = sys.argv[1]  # only now: the program itself has its bytecode
parser.load_grammar()
print(parser.parse("SELECT 1").statement)
print("made" if made else "read")
"""
COUNTED = """
import lark.parsers.lalr_analysis as analysis
made = []
compute = analysis.LALR_Analyzer.compute_lalr
def noted(self):
    made.append(self)
    compute(self)
analysis.LALR_Analyzer.compute_lalr = noted
"""


def parse_in_a_new_process(bytecode: Path) -> str:
    """Parse a statement with tables kept in that folder, and tell whether they were made."""
    command = [sys.executable, "-c", COUNTED + PROGRAM, str(bytecode)]
    run = subprocess.run(command, env={}, check=True, capture_output=True, text=True)
    statement, tables = run.stdout.splitlines()
    assert statement.startswith("Query(")
    return tables


@pytest.mark.long
def test_the_second_process_reads_what_the_first_made(tmp_path: Path) -> None:
    assert parse_in_a_new_process(tmp_path) == "made"
    assert parse_in_a_new_process(tmp_path) == "read"


@pytest.mark.long
def test_a_process_makes_them_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert parse_in_a_new_process(tmp_path / "file") == "made"
