"""`qserver doctor` says of a deployment what is well, and of what is not what to change."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from qserver.archive.status import BackupStatus, StatusFile
from qserver.cli import main
from qserver.cli.doctor.certificate import look_at_certificate
from qserver.cli.doctor.exposure import look_at_exposure
from qserver.cli.doctor.finding import Finding
from qserver.cli.doctor.folder import (
    files_with_settings,
    look_at_backups,
    look_at_continuous,
    look_at_folder,
    look_at_keys,
)
from qserver.cli.doctor.machine import look_at_clock, look_at_files, look_at_memory, look_at_syncs
from qserver.cli.doctor.server import look_at_server
from qserver.config import load
from qserver.config.parsing import api_key
from tests.cli.real_server import KEY, real_server

GOOD_KEY = "svc_k_Zq7rT2mNb8xKcV4h"
DAY, NOW = 86_400, 2_000_000_000
TLS = Path(__file__).parents[2] / "http1"


def states(findings: Any) -> dict[str, str]:
    return {each.check: each.state for each in findings}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "control.qserver").touch(0o600)
    return folder


@pytest.fixture(autouse=True)
def away_from_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("QSERVER_") or name == "PORT":
            monkeypatch.delenv(name)


def test_a_deployment_that_is_well_has_no_problem(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "backups" / "monday"
    backup.mkdir(parents=True)
    (backup / "control.qserver").touch()
    arguments = ["doctor", "--data", str(data), "--backups", str(backup.parent)]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["state"] in ("ok", "warning")  # a disk of tests may be slow, or memory
    by_check = {each["check"]: each for each in found["findings"]}
    for name in ("folder", "clock", "files", "memory", "versions", "address", "keys", "backups"):
        assert by_check[name]["state"] == "ok" and by_check[name]["change"] is None
    assert sorted(path.name for path in data.iterdir()) == ["control.qserver"]
    assert main(arguments) == 0
    assert "ok      folder: " in capsys.readouterr().out


def test_a_problem_is_told_by_the_exit_code(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.chmod(0o755)
    assert main(["doctor", "--data", str(data)]) == 1
    printed = capsys.readouterr().out
    assert f"→ chmod 700 {data}" in printed and "PROBLEM folder" in printed


def test_a_setting_that_is_wrong_is_a_problem(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QSERVER_PORT", "many")
    assert main(["doctor", "--data", str(data)]) == 1
    assert "QSERVER_PORT 'many' is wrong" in capsys.readouterr().out


def test_folders_and_files_that_others_may_read_are_found(data: Path, tmp_path: Path) -> None:
    assert states(look_at_folder(tmp_path / "none")) == {"folder": "warning"}
    assert states(look_at_folder(tmp_path)) == {"folder": "warning"}
    assert states(look_at_folder(data)) == {"folder": "ok"}
    (data / "db_1.qserver").touch(0o644)
    assert states(look_at_folder(data))["files of data"] == "warning"


def test_the_disk_is_measured(data: Path) -> None:
    found = look_at_syncs(data)
    assert found.check == "disk" and " ms (" in found.text
    assert list(data.glob("tmp*")) == []


def test_clock_files_and_memory_are_compared_with_what_is_needed() -> None:
    assert look_at_clock(datetime.now(UTC)).state == "ok"
    assert look_at_clock(datetime(1970, 1, 1, tzinfo=UTC)).state == "problem"
    for hard, state in ((2500, "problem"), (2600, "warning"), (20_000, "ok")):
        assert look_at_files(2500, (1024, hard)).state == state
    for wanted, state in (
        (None, "ok"),
        (2 << 30, "ok"),
        (7 << 29, "warning"),
        (4 << 30, "problem"),
    ):
        assert look_at_memory(wanted, 4 << 30).state == state


@pytest.mark.parametrize(
    ("settings", "check", "state"),
    [
        ({}, "address", "ok"),
        ({"QSERVER_HOST": "::1"}, "address", "ok"),
        ({"QSERVER_HOST": "0.0.0.0"}, "address", "warning"),
        ({"PORT": "80"}, "address", "warning"),
        ({"QSERVER_HOST": "0.0.0.0", "TLS": "1"}, "address", "ok"),
        ({"QSERVER_PG_PORT": "5432"}, "postgres", "ok"),
        ({"QSERVER_PG_PORT": "5432", "QSERVER_PG_PLAINTEXT": "1"}, "postgres", "problem"),
        ({"QSERVER_HOST": "::", "QSERVER_OPEN_SIGNUP": "1"}, "signup", "warning"),
        ({"QSERVER_HOST": "::"}, "origins", "warning"),
        ({"QSERVER_HOST": "::", "QSERVER_TRUST_FORWARDED": "1"}, "addresses of callers", "warning"),
    ],
)
def test_what_others_reach_without_tls_is_found(
    settings: dict[str, str], check: str, state: str
) -> None:
    if settings.get("TLS"):
        files = {"QSERVER_TLS_CERTIFICATE": "c.pem", "QSERVER_TLS_KEY": "k.pem"}
        settings = {**files, "QSERVER_HOST": settings["QSERVER_HOST"]}
    assert states(look_at_exposure(load(settings)))[check] == state


def test_a_certificate_is_tried_and_its_end_and_its_key_are_looked_at(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    shutil.copy(TLS / "localhost.pem", certificate)
    shutil.copy(TLS / "localhost.key.pem", key)
    key.chmod(0o600)
    ends = ssl.cert_time_to_seconds("Oct 22 06:07:48 2126 GMT")
    for days, state in ((20, "ok"), (5, "warning"), (-5, "problem")):
        (found,) = look_at_certificate(certificate, key, ends - days * DAY)
        assert found.state == state and str(abs(days)) in found.text
    key.chmod(0o644)
    found = list(look_at_certificate(certificate, key, NOW))[1]
    assert (found.state, found.change) == ("problem", f"chmod 600 {key}")
    for pair in ((tmp_path / "absent.pem", key), (certificate, certificate)):
        (found,) = look_at_certificate(*pair, NOW)
        assert found.state == "problem" and str(pair[0]) in found.text


def test_files_of_tls_that_are_set_are_looked_at(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QSERVER_TLS_CERTIFICATE", "absent.pem")
    monkeypatch.setenv("QSERVER_TLS_KEY", "absent.key.pem")
    assert main(["doctor", "--data", str(data)]) == 1
    assert "PROBLEM certificate: cannot use the certificate absent.pem" in capsys.readouterr().out


def test_keys_of_examples_and_keys_that_lie_open_are_found(tmp_path: Path) -> None:
    def look(key: str, *files: Path) -> list[Finding]:
        return list(look_at_keys({"QSERVER_API_KEY": key}, list(files)))

    assert states(look(GOOD_KEY)) == {"keys": "ok"}
    for key in (KEY, "svc_k_changeme_changeme", "svc_k_aaaaaaaaaaaaaaaa"):
        (found,) = look(key)
        assert found.state == "problem" and key not in found.text
        (command,) = re.findall('echo .*\\)"', found.change or "")
        assert api_key(subprocess.check_output(command, shell=True, text=True).strip())
    file = tmp_path / ".env"
    file.write_text(f"QSERVER_API_KEY={GOOD_KEY}\n", encoding="utf-8")
    file.chmod(0o600)
    assert states(look(GOOD_KEY, file)) == {"keys": "ok"}
    file.chmod(0o644)
    (found,) = look(GOOD_KEY, file)
    assert found.change == f"chmod 600 {file}" and GOOD_KEY not in found.text


def test_a_file_that_is_found_on_two_ways_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / ".env"
    file.touch()
    assert files_with_settings(Path("data"), tmp_path / "data" / ".." / ".env") == [file]


def test_the_age_of_the_newest_backup_is_told(tmp_path: Path) -> None:
    assert look_at_backups(None, NOW).state == "warning"
    assert look_at_backups(tmp_path, NOW).state == "problem"
    for name, days in (("old", 30.0), ("new", 1.0)):
        file = tmp_path / name / "control.qserver"
        file.parent.mkdir()
        file.touch()
        os.utime(file, (0, NOW - days * DAY))
    assert look_at_backups(tmp_path, NOW).state == "ok"
    assert look_at_backups(tmp_path / "old", NOW).state == "problem"
    assert look_at_backups(tmp_path, NOW + 3 * DAY).state == "warning"


def test_a_server_that_runs_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "key"
    file.write_text(KEY, encoding="utf-8")
    file.chmod(0o600)
    with real_server() as address:
        assert main(["doctor", "--url", address, "--key-file", str(file)]) == 0
        printed = capsys.readouterr().out
        assert f"ok      server: {address} is well" in printed
        assert "ok      metrics: GET /metrics has" in printed and KEY not in printed
        assert states(look_at_server(address, None))["metrics"] == "warning"
        *_, refused = look_at_server(address, "svc_k_" + "x" * 20)
        assert (refused.check, refused.state) == ("key", "problem")
        assert refused.text == "the server does not know the key"


def test_a_server_that_does_not_answer_is_a_problem() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert states(look_at_server(address, None)) == {"server": "problem"}


def test_a_continuous_backup_that_has_not_begun_is_a_problem(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QSERVER_BACKUP", "s3://bucket/shop")
    assert main(["doctor", "--data", str(data)]) == 1
    told = f"PROBLEM backups: nothing of {data} has gone to s3://bucket/shop yet"
    assert told in capsys.readouterr().out


def test_a_continuous_backup_is_looked_at(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(look_at_continuous(data, NOW)) == []
    file = StatusFile(data, "s3://bucket/shop")

    def found(**fields: Any) -> Finding:
        file.write(BackupStatus("s3://bucket/shop", 1, **{"written": NOW - 1.0, **fields}))
        (finding,) = look_at_continuous(data, NOW)
        return finding

    assert found().state == "warning", "the first copy is being made"
    well = found(until=NOW - 2.0)
    assert well.state == "ok" and "s3://bucket/shop is 2.0 s behind" in well.text
    assert found(until=NOW - 90.0).state == "problem"
    away = found(until=NOW - 2.0, trouble="The disk is full.")
    assert (away.state, away.change) == ("problem", "The disk is full.")
    assert "db_1 anew" in found(until=NOW - 2.0, copied_anew=["db_1"]).text
    ended = found(until=NOW - 2.0, written=NOW - 100.0)
    assert ended.state == "problem" and "ended 100 s ago" in ended.text
    found(until=1.0, written=1.0)
    file.close()
    assert main(["doctor", "--data", str(data), "--json"]) == 1
    checks = json.loads(capsys.readouterr().out)["findings"]
    assert [each["state"] for each in checks if each["check"] == "backups"] == ["problem"]
