"""The same on real files: nothing of a deleted database is left, a restart finds the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from qserver.durability.data_folder import DataFolder
from qserver.errors import NotFound
from tests.control.planes import opened_plane


async def test_a_restart_on_files_keeps_all_and_a_deletion_leaves_no_file(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    async with opened_plane(folder) as opened:
        shop = await opened.plane.records.create(opened.grant, "shop")
        await opened.run(opened.grant, "create table t (id integer primary key)", "shop")
        await opened.run(opened.grant, "insert into t values (1)", "shop")
        gone = await opened.plane.records.create(opened.grant, "gone")
        assert gone.id in folder.names()
        await opened.plane.records.delete(opened.grant, "gone")
        _, token = await opened.plane.sessions.create(opened.grant, "shop")
        _, facts = await opened.plane.records.find(opened.grant, "shop")
        assert facts.size_bytes > 0
    main = [name for name in folder.names() if name not in ("control", shop.id)]
    assert len(main) == 1 and len(folder.names()) == 3
    assert not any(gone.id in name for name in names_in(tmp_path))
    async with opened_plane(folder) as opened:
        session = await opened.plane.authenticate(token)
        assert await opened.run(session, "select id from t") == [(1,)]
        with pytest.raises(NotFound):
            await opened.plane.database(opened.grant, "gone")


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]
