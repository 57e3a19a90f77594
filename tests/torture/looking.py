"""A look at everything that clients have written, and the sweep that keeps it small."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from qserver.client import TrioClient
from tests.torture.model import Look, Model, Rows

ROWS_BEFORE_SWEEP: Final = 4000
SWEPT: Final = frozenset({"transfer", "batch", "ticket"})

_TABLES: Final = (
    "SELECT id, balance FROM account",
    "SELECT id, source, target, amount FROM ledger",
    "SELECT id, item, payload FROM batch",
    "SELECT id, number FROM ticket",
    "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'made\\_%'",
)
_SWEEP: Final = ("DELETE FROM ledger", "DELETE FROM batch", "DELETE FROM ticket")


async def look(client: TrioClient) -> Look:
    """Read all of it, while nobody writes."""
    done = await client.transaction(_TABLES)
    accounts, ledger, batch, tickets, tables = (each.rows for each in done.results)
    rows: dict[int, list[tuple[object, ...]]] = defaultdict(list)
    for number, *values in (*ledger, *batch):
        rows[number].append(tuple(values))
    for number, _ in tickets:
        rows[number].append(("ticket",))
    for number, found in (await _made_tables(client, [name for (name,) in tables])).items():
        rows[number] += found
    for database in await client.databases():
        if database["name"].startswith("made-"):
            rows[_number(database["name"])].append(("database",))
    for key in await client.keys():
        if key["name"].startswith("made-") and key["state"] == "active":
            rows[_number(key["name"])].append(("key",))
    whole = {number: tuple(each) for number, each in rows.items()}
    return Look(whole, dict(accounts), dict(tickets))


async def _made_tables(client: TrioClient, names: list[str]) -> dict[int, Rows]:
    """The rows of each; a table without any is half of what was written, so it shows as damage."""
    if not names:
        return {}
    done = await client.transaction([f"SELECT n FROM {name}" for name in names])
    found = zip(names, done.results, strict=True)
    return {_number(name): tuple(each.rows) or (("empty",),) for name, each in found}


async def sweep_if_large(client: TrioClient, model: Model, seen: Look) -> None:
    """Remove what was compared often enough. It must never come back, either."""
    if sum(map(len, seen.rows.values())) > ROWS_BEFORE_SWEEP:
        model.unanswered_sweep = (seen, SWEPT)
        await client.transaction(_SWEEP)
        model.unanswered_sweep = None
        model.sweep(seen, SWEPT)


def _number(name: str) -> int:
    return int(name.replace("_", "-").rpartition("-")[2])
