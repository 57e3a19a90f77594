"""A real server under writes beside a real continuous backup, and what is restored from that."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from threading import Event, Thread

import httpx
import pytest
import trio

from qserver.archive.continuous import Continuous, Options
from qserver.archive.folder_objects import FolderObjects
from qserver.archive.status import StatusFile
from qserver.cli import main
from tests.archive.site import Site
from tests.cli.continuous.backups import (
    Backup,
    Server,
    backing_up,
    client_at,
    contents_at,
    contents_of,
    moment_of,
)
from tests.cli.real_server import KEY, real_server

DAY = 86_400.0
QUICK = ("--every", "0.1")


def restore(target: str, folder: Path, *flags: str) -> Path:
    assert main(["restore", target, "--data", str(folder), *flags]) == 0
    return folder


def rename(url: str, name: str, to: str) -> None:
    httpx.patch(
        f"{url}/v1/databases/{name}",
        json={"name": to},
        headers={"Authorization": f"Bearer {KEY}"},
        timeout=600,
    ).raise_for_status()


@pytest.mark.long
def test_any_moment_of_a_served_folder_is_restored_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Databases and branches are made, renamed and deleted meanwhile; the backup is killed."""
    data, target = tmp_path / "data", str(tmp_path / "target")
    backup = Backup(data, target, tmp_path / "said")
    with real_server(data) as url, client_at(url) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
        client.query("INSERT INTO t SELECT g, g FROM generate_series(1, 300) g")
        with backing_up(backup, *QUICK):
            backup.wait_until(1.0)
            client.create_database("late")
            client.query("CREATE TABLE t (id bigint PRIMARY KEY)", database="late")
            client.query("INSERT INTO t VALUES (1), (2)", database="late")
            client.query("DELETE FROM t WHERE id > 200")
            client.create_database("branch", "main")
            client.query("UPDATE t SET n = 0 WHERE id <= 10", database="branch")
            names = ["branch", "late", "main"]
            early, at = moment_of(client)
            expected = contents_at(client, early, names)
            version = client.query("INSERT INTO t VALUES (5000, 1)").version
            client.query("UPDATE t SET n = 7", database="branch")
            client.delete_database("late")
            rename(url, "branch", "twig")
            later, at = moment_of(client)
            expected_later = contents_at(client, later, ["main", "twig"])
            backup.wait_until(at)
        backup.start(*QUICK)
        client.query("DELETE FROM t")
        _, at = moment_of(client)
        backup.wait_until(at)
        assert backup.stop() == 0
        assert "going on with" in backup.lines and "stopped; saved until" in backup.lines
    assert contents_of(restore(target, tmp_path / "early", "--at", early)) == expected
    assert contents_of(restore(target, tmp_path / "later", "--at", later)) == expected_later
    newest = restore(target, tmp_path / "newest")
    assert contents_of(newest) == {**expected_later, "main": []}
    flags = ("--database", "main", "--version", str(version))
    one = contents_of(restore(target, tmp_path / "one", *flags))
    assert one == {"main": expected_later["main"]}
    capsys.readouterr()
    assert main(["check", target]) == 0
    assert "the newest moment: restored, 2 databases" in capsys.readouterr().out
    assert main(["check", "--data", str(newest)]) == 0
    with real_server(newest) as url, client_at(url) as client:
        assert contents_at(client, later, ["main", "twig"]) == expected_later, "history is there"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str]:
    """A backup, killed; moments in it, after as many rows each; and one that is not in it."""
    folder = tmp_path_factory.mktemp("target")
    backup = Backup(folder / "data", str(folder / "target"), folder / "said")
    with real_server(folder / "data") as url, client_at(url) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
        before, _ = moment_of(client)
        moments = []
        with backing_up(backup, *QUICK):
            backup.wait_until(1.0)
            for number in range(6):
                client.query("INSERT INTO t VALUES ($1, 0)", [number])
                moment, at = moment_of(client)
                moments.append(moment)
                if number % 2:
                    client.create_database(f"branch{number}", "main")
                backup.wait_until(at)
    return folder / "target", moments, before


@pytest.mark.half
def test_what_was_acknowledged_at_a_moment_is_restored(
    target: tuple[Path, list[str], str], tmp_path: Path
) -> None:
    place, moments, _ = target
    rows = [(number, 0) for number in range(6)]
    third = contents_of(restore(str(place), tmp_path / "third", "--at", moments[2]))
    assert third == {"main": rows[:3], "branch1": rows[:2]}
    newest = contents_of(restore(str(place), tmp_path / "newest"))
    branches = {"branch1": rows[:2], "branch3": rows[:4]}
    assert newest == {"main": rows, **branches} | ({"branch5": rows} if len(newest) > 3 else {})
    assert main(["check", "--data", str(tmp_path / "third")]) == 0


def copied(target: Path, to: Path) -> Path:
    for path in target.rglob("*"):
        if path.is_file():
            copy = to / path.relative_to(target)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return to


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == 1
    return capsys.readouterr().err


def test_a_long_log_is_saved_as_checkpoints_while_it_is_restored(
    target: tuple[Path, list[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So it is not replayed again in memory, by the check and by the server."""
    monkeypatch.setattr("qserver.archive.rebuilding.CHECKPOINT_LOG_BYTES", 1)
    monkeypatch.setattr("qserver.archive.rebuilding.APPLIED_AT_ONCE_BYTES", 1)
    place, moments, _ = target
    folder = restore(str(place), tmp_path / "new", "--at", moments[5])
    assert contents_of(folder)["main"] == [(number, 0) for number in range(6)]
    capsys.readouterr()
    assert main(["check", "--data", str(folder)]) == 0
    found = capsys.readouterr().out
    assert "history with" in found and "warning" not in found


def test_a_moment_that_is_not_kept_is_refused_with_those_that_are(
    target: tuple[Path, list[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, _, before = target
    new = str(tmp_path / "new")
    for moment in (before, "2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"):
        said = refused(capsys, "restore", str(place), "--data", new, "--at", moment)
        assert "is not in" in said and "What can be restored: 2" in said
    said = refused(
        capsys, "restore", str(place), "--data", new, "--database", "main", "--version", "99"
    )
    assert "version 99 of db_" in said and "It has " in said
    said = refused(capsys, "restore", str(place), "--data", new, "--database", "nobody")
    assert "there was no database nobody" in said and "There were " in said
    assert not Path(new).exists() and not Path(f"{new}.unfinished").exists()


def test_a_restore_replaces_nothing(
    target: tuple[Path, list[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert "is not empty" in refused(capsys, "restore", str(target[0]), "--data", str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("kind", ["missing", "torn", "damaged", "of another"])
def test_a_segment_that_is_not_whole_ends_what_can_be_restored(
    target: tuple[Path, list[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    place = copied(target[0], tmp_path / "copy")
    segments = sorted(place.rglob("segments/*"))
    bad = segments[3]
    data = bad.read_bytes()
    if kind == "missing":
        bad.unlink()
    elif kind == "torn":
        bad.write_bytes(data[: len(data) // 2])
    elif kind == "damaged":
        bad.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    else:
        bad.write_bytes(segments[2].read_bytes())
    new = str(tmp_path / "new")
    said = refused(capsys, "restore", str(place), "--data", new)
    assert ("missing" if kind == "missing" else "is damaged") in said
    assert "can be restored" in said and not Path(new).exists()
    never = ("--at", "2999-01-01T00:00:00Z")
    assert "can be restored" in refused(capsys, "restore", str(place), "--data", new, *never)
    assert main(["check", str(place)]) == 1
    found = capsys.readouterr().out
    assert "DAMAGED" in found and "CANNOT BE RESTORED" in found
    moment = said.partition(" to ")[2].split()[0] if kind != "missing" else said.split()[-1]
    assert main(["restore", str(place), "--data", new, "--at", moment.rstrip(".")]) == 0
    assert len(contents_of(Path(new))["main"]) >= 1


def test_a_copied_file_that_is_damaged_is_refused(
    target: tuple[Path, list[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = copied(target[0], tmp_path / "copy")
    part = next(place.rglob("files/db_*"))
    part.write_bytes(part.read_bytes()[:-1])
    said = refused(capsys, "restore", str(place), "--data", str(tmp_path / "new"))
    assert f"{part.name} is damaged" in said and "nothing else" in said
    part.unlink()
    said = refused(capsys, "restore", str(place), "--data", str(tmp_path / "new"))
    assert "is not there" in said


def test_what_can_be_restored_is_listed(
    target: tuple[Path, list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", "--list", str(target[0])]) == 0
    assert "Any moment can be restored:\n  from 2" in capsys.readouterr().out
    assert main(["backup", "--list", str(target[0]), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    (generation,) = listed["generations"]
    assert generation["complete"] and generation["segments"] >= 6 and not generation["missing"]
    assert listed["restorable"] == [[generation["begins"], generation["until"]]]


def test_what_is_no_place_for_a_continuous_backup_is_refused(
    tmp_path: Path, target: tuple[Path, list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    data, empty = str(target[0].parent / "data"), tmp_path / "empty"
    empty.mkdir()
    assert "is not a data folder" in refused(
        capsys, "backup", "--continuous", str(tmp_path / "t"), "--data", str(empty)
    )
    inside = f"{data}/backups"
    assert "in the data folder itself" in refused(
        capsys, "backup", "--continuous", inside, "--data", data
    )
    assert "is no place for backups" in refused(
        capsys, "backup", "--continuous", "ftp://host/x", "--data", data
    )
    (empty / "file").write_text("mine", encoding="utf-8")
    assert "has other things in it" in refused(
        capsys, "backup", "--continuous", str(empty), "--data", data
    )
    assert "has no continuous backup" in refused(capsys, "backup", "--list", str(empty))
    assert "qserver backup --log makes a folder" in refused(
        capsys, "backup", "--continuous", str(tmp_path / "t"), "--log", "nats://h", "--data", data
    )
    assert "Name it with --database" in refused(
        capsys, "restore", str(target[0]), "--data", str(tmp_path / "t"), "--version", "3"
    )


@pytest.mark.long
def test_a_server_that_is_told_to_backs_itself_up_to_its_end(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "target"
    said: list[str] = []
    backup = Backup(data, str(target), tmp_path / "said")
    settings = {"QSERVER_BACKUP": str(target), "QSERVER_LOG_FORMAT": "json"}
    with real_server(data, settings, said) as url, client_at(url) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY)")
        backup.wait_until(1.0)
        headers = {"Authorization": f"Bearer {KEY}"}
        page = httpx.get(f"{url}/metrics", headers=headers, timeout=600).text
        assert f'qserver_backup_lag_seconds{{target="{target}"}}' in page
        client.query("INSERT INTO t VALUES (1)")
    assert contents_of(restore(str(target), tmp_path / "new")) == {"main": [(1,)]}
    told = [json.loads(line) for line in said]
    assert any("stopped; saved until" in line["message"] for line in told)


@pytest.mark.long
def test_a_backup_that_is_killed_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    random = Random(11)
    data, target = tmp_path / "data", str(tmp_path / "target")
    backup = Backup(data, target, tmp_path / "said")
    moments: list[tuple[str, float]] = []
    with real_server(data) as url, client_at(url) as client:
        client.query("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
        stop = Event()
        with client_at(url) as other:

            def write() -> None:
                number = 0
                while not stop.is_set():
                    number += 1
                    other.query("INSERT INTO t VALUES ($1, 0)", [number])
                    other.query("UPDATE t SET n = n + 1 WHERE id % 7 = $1", [number % 7])

            writer = Thread(target=write)
            writer.start()
            try:
                for _ in range(8):
                    flags = ("--base-every", "1s") if random.random() < 0.5 else ()
                    backup.start("--every", "0.1", *flags)
                    stop.wait(random.uniform(0.2, 2.5))
                    backup.kill()
                    moments.append(moment_of(client))
            finally:
                stop.set()
                writer.join()
        with backing_up(backup, *QUICK):
            moments.append(moment_of(client))
            backup.wait_until(moments[-1][1])
        restored = 0
        for number, (moment, _) in enumerate(moments):
            folder = tmp_path / f"restored-{number}"
            if main(["restore", target, "--data", str(folder), "--at", moment]) == 0:
                assert contents_of(folder) == contents_at(client, moment, ["main"])
                restored += 1
            else:  # before the first copy of the files was complete
                assert not restored and not folder.exists()
        assert restored
    assert main(["check", target]) == 0


@pytest.mark.long
def test_what_a_server_acknowledged_before_it_was_killed_is_restored(tmp_path: Path) -> None:
    """Its files are as the kill has left them, and the next server cuts and goes on with them."""
    random = Random(5)
    data, target = tmp_path / "data", str(tmp_path / "target")
    backup = Backup(data, target, tmp_path / "said")
    acknowledged: list[int] = []
    for turn in range(4):
        server = Server(data, tmp_path / f"server-{turn}")
        try:
            with client_at(server.url) as client:
                if turn == 0:
                    client.query("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)")
                    backup.start(*QUICK)
                if turn == 2:
                    client.create_database("branch", "main")
                for _ in range(random.randrange(20, 200)):
                    number = len(acknowledged)
                    client.query("INSERT INTO t VALUES ($1, 0)", [number])
                    acknowledged.append(number)
                if turn == 1:
                    backup.kill()
                    backup.start(*QUICK)
        finally:
            server.kill()
    before = backup.until
    backup.wait_until(before + 0.5)
    assert backup.stop() == 0
    restored = contents_of(restore(target, tmp_path / "new"))
    assert restored == contents_of(data)
    assert [number for number, _ in restored["main"]] == acknowledged
    assert 0 < len(restored["branch"]) < len(acknowledged)
    assert main(["check", target]) == 0


def test_flags_and_places_that_do_not_fit_are_refused(
    tmp_path: Path, target: tuple[Path, list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    place, data, new = str(target[0]), str(target[0].parent / "data"), str(tmp_path / "new")
    one = ("backup", new, "--data", data)
    for flags in (("--every", "2"), ("--keep", "5d"), ("--base-every", "1d"), ("--keep-trying",)):
        assert f"{flags[0]} is for --continuous" in refused(capsys, *one, *flags)
        assert f"{flags[0]} is for --continuous" in refused(
            capsys, "backup", "--list", place, *flags
        )
    assert "--json is for --list" in refused(capsys, *one, "--json")
    assert "--endpoint-url is for" in refused(capsys, *one, "--endpoint-url", "http://x")
    assert "names no place" in refused(capsys, "backup", "--continuous", "", "--data", data)
    s3 = ("backup", "--list", "s3://bucket/x", "--endpoint-url")
    assert "begins with http" in refused(capsys, *s3, "minio:9000")
    inside = ("restore", place, "--data", f"{place}/new", "--at", target[1][0])
    assert "in the backup itself" in refused(capsys, *inside)
    assert not Path(new).exists()


@pytest.mark.parametrize("moment", ["0001-01-01", "0001-01-01T00:00:00+23:00", "1969-12-31"])
def test_a_moment_of_no_clock_is_no_time(moment: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["restore", "target", "--at", moment])
    assert "is not a time such as" in capsys.readouterr().err


def test_what_is_refused_leaves_nothing_behind(
    target: tuple[Path, list[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, data = str(target[0]), target[0].parent / "data"
    deep = tmp_path / "a" / "b" / "c"
    for flags in (("--at", "1970-01-01T00:00:00Z"), ("--database", "nobody")):
        said = refused(capsys, "restore", place, "--data", str(deep), *flags)
        assert "What can be restored" in said or "there was no database" in said
    assert not any(tmp_path.iterdir())
    before = sorted(data.iterdir())
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    said = refused(capsys, "backup", "--continuous", f"{tmp_path}/file", "--data", str(data))
    assert "cannot be used" in said and sorted(data.iterdir()) == before


def test_a_version_of_a_database_that_was_deleted_is_restored_by_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, place = tmp_path / "data", tmp_path / "target"
    data.mkdir()
    gone = trio.run(backed_up_and_deleted, data, place)
    one = ("--database", gone, "--version", "3")
    restore(str(place), tmp_path / "new", *one)
    assert "version 3, 2 rows" in capsys.readouterr().out
    said = refused(capsys, "restore", str(place), "--data", str(tmp_path / "x"), *one[:3], "9")
    assert f"version 9 of {gone} is not in" in said and "It has " in said
    said = refused(
        capsys,
        "restore",
        str(place),
        "--data",
        str(tmp_path / "x"),
        "--database",
        "nobody",
        *one[2:],
    )
    assert "there is no database nobody" in said


async def backed_up_and_deleted(data: Path, place: Path) -> str:
    """Back up a database, and its deletion; return its id."""
    site = Site(data)
    await site.start()
    await site.create()
    status = StatusFile(data, str(place))
    backup = Continuous(
        *(data, FolderObjects(place), status, Options(1.0, DAY, DAY)),
        *(lambda: site.clock, lambda: "ab", lambda text: None, "a test"),
    )
    await backup.begin()
    await backup.copy()
    await backup.send()
    gone = await site.create()
    for _ in range(3):
        await site.write(gone)
    await backup.send()
    await site.delete(gone)
    await backup.send()
    await site.close()
    status.close()
    return gone
