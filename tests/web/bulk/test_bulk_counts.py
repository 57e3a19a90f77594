"""What rows in bulk count: what was inserted or changed, however much of a batch was there."""

from __future__ import annotations

import json

import pytest

from tests.web.served import message, serving

THERE = 1500
"""Rows that are there already: more than one batch, with the keys 1 to 1500."""

BODIES: dict[str, list[int]] = {
    "nothing": [],
    "new": list(range(2000, 5000)),
    "there": list(range(1, THERE + 1)),
    "a whole batch there, then new": [*range(1, 1001), *range(3000, 4000)],
    "new, then a whole batch there": [*range(3000, 4000), *range(1, 1001)],
    "every other": list(range(1000, 2000)),
    "twice": [*range(3000, 3500), *range(3000, 3500)],
    "one of them there": [*range(3000, 3700), 7, *range(3700, 4000)],
}


@pytest.mark.long
@pytest.mark.parametrize("kind", BODIES)
async def test_rows_count_by_what_became_of_them(kind: str) -> None:
    keys = BODIES[kind]
    fresh = {each for each in keys if each > THERE}
    wanted = {
        "ignore": len(fresh),
        "update": len(keys),
        "error": len(keys) if len(fresh) == len(keys) else None,
    }
    lines = b"".join(b'{"id": %d, "n": 1}\n' % each for each in keys)
    rows = b"id,n\n" + b"".join(b"%d,1\n" % each for each in keys)
    bodies = {
        "application/x-ndjson": lines,
        "text/csv": rows,
        "application/json": b"[%b]" % lines.strip().replace(b"\n", b","),
    }
    async with serving() as opened, await opened.client() as client:
        fill = f"insert into t select i, 0 from generate_series(1, {THERE}) as i"
        for sql in ("create table t (id int primary key, n int)", fill):
            await opened.admin("POST", "/v1/query", {"sql": sql})
        start = (await opened.admin("POST", "/v1/query", {"sql": "select 1"}))["version"]
        for on_conflict, affected in wanted.items():
            for media, body in bodies.items():
                address = f"/v1/tables/t/rows?on_conflict={on_conflict}"
                sent = message("POST", address, body, headers={"Content-Type": media})
                answer = json.loads((await client.ask(sent, "POST")).body)
                sql = f"select count(*) as n from t where n = 1 or id > {THERE}"
                found = await opened.admin("POST", "/v1/query", {"sql": sql})
                changed = found["rows"][0]["n"]
                if affected is None:
                    assert answer["error"]["code"] == "23505" and changed == 0
                    continue
                assert answer["affected_rows"] == affected, (on_conflict, media)
                assert changed == (len(fresh) if on_conflict == "ignore" else len(set(keys)))
                if not changed:  # nothing was changed: there is no version
                    assert answer["version"] == found["version"] == start
                if changed:
                    back = {"as_of": start}
                    await opened.admin("POST", "/v1/databases/main/restore", back)
                    now = await opened.admin("POST", "/v1/query", {"sql": "select 1"})
                    start = now["version"]
