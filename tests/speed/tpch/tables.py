"""The tables of TPC-H, made by `tpchgen-cli` and loaded into qserver and DuckDB."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Final

import duckdb

from qserver.query.sql_database import SqlDatabase
from tests.speed.in_process import insert_texts, opened_duckdb

TABLES: Final = {
    "region": "r_regionkey INTEGER PRIMARY KEY, r_name VARCHAR(25) NOT NULL,"
    " r_comment VARCHAR(152) NOT NULL",
    "nation": "n_nationkey INTEGER PRIMARY KEY, n_name VARCHAR(25) NOT NULL,"
    " n_regionkey INTEGER NOT NULL, n_comment VARCHAR(152) NOT NULL",
    "supplier": "s_suppkey INTEGER PRIMARY KEY, s_name VARCHAR(25) NOT NULL,"
    " s_address VARCHAR(40) NOT NULL, s_nationkey INTEGER NOT NULL, s_phone VARCHAR(15) NOT NULL,"
    " s_acctbal NUMERIC(15, 2) NOT NULL, s_comment VARCHAR(101) NOT NULL",
    "customer": "c_custkey INTEGER PRIMARY KEY, c_name VARCHAR(25) NOT NULL,"
    " c_address VARCHAR(40) NOT NULL, c_nationkey INTEGER NOT NULL, c_phone VARCHAR(15) NOT NULL,"
    " c_acctbal NUMERIC(15, 2) NOT NULL, c_mktsegment VARCHAR(10) NOT NULL,"
    " c_comment VARCHAR(117) NOT NULL",
    "part": "p_partkey INTEGER PRIMARY KEY, p_name VARCHAR(55) NOT NULL,"
    " p_mfgr VARCHAR(25) NOT NULL, p_brand VARCHAR(10) NOT NULL, p_type VARCHAR(25) NOT NULL,"
    " p_size INTEGER NOT NULL, p_container VARCHAR(10) NOT NULL,"
    " p_retailprice NUMERIC(15, 2) NOT NULL, p_comment VARCHAR(23) NOT NULL",
    "partsupp": "ps_partkey INTEGER NOT NULL, ps_suppkey INTEGER NOT NULL,"
    " ps_availqty INTEGER NOT NULL, ps_supplycost NUMERIC(15, 2) NOT NULL,"
    " ps_comment VARCHAR(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
    "orders": "o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL,"
    " o_orderstatus VARCHAR(1) NOT NULL, o_totalprice NUMERIC(15, 2) NOT NULL,"
    " o_orderdate DATE NOT NULL, o_orderpriority VARCHAR(15) NOT NULL,"
    " o_clerk VARCHAR(15) NOT NULL, o_shippriority INTEGER NOT NULL,"
    " o_comment VARCHAR(79) NOT NULL",
    "lineitem": "l_orderkey INTEGER NOT NULL, l_partkey INTEGER NOT NULL,"
    " l_suppkey INTEGER NOT NULL, l_linenumber INTEGER NOT NULL,"
    " l_quantity NUMERIC(15, 2) NOT NULL, l_extendedprice NUMERIC(15, 2) NOT NULL,"
    " l_discount NUMERIC(15, 2) NOT NULL, l_tax NUMERIC(15, 2) NOT NULL,"
    " l_returnflag VARCHAR(1) NOT NULL, l_linestatus VARCHAR(1) NOT NULL,"
    " l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL,"
    " l_shipinstruct VARCHAR(25) NOT NULL, l_shipmode VARCHAR(10) NOT NULL,"
    " l_comment VARCHAR(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
}


def generator() -> Path | None:
    """Return the program that makes the data; None if it is not installed."""
    path = Path(sys.executable).with_name("tpchgen-cli")
    return path if path.exists() else None


def generate(folder: Path, scale: float) -> None:
    program = generator()
    assert program is not None, "tpchgen-cli is not installed"
    arguments = ["csv", "--scale-factor", str(scale), "--output-dir", str(folder)]
    subprocess.run([program, *arguments], check=True, capture_output=True)


async def load(folder: Path, database: SqlDatabase) -> None:
    for table, columns in TABLES.items():
        await database.execute(f"CREATE TABLE {table} ({columns})")
        with (folder / f"{table}.csv").open(newline="") as file:
            _, *rows = csv.reader(file)
        for text in insert_texts(table, rows):
            await database.execute(text)


def load_duckdb(folder: Path) -> duckdb.DuckDBPyConnection:
    duck = opened_duckdb()
    for table, columns in TABLES.items():
        duck.execute(f"CREATE TABLE {table} ({columns})")
        duck.execute(f"COPY {table} FROM '{folder / table}.csv' (HEADER true)")
    return duck
