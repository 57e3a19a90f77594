"""What `up` keeps in its folder, where others find the log, and what is refused before a start."""

from __future__ import annotations

import argparse
import socket
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from qserver.cli import main
from qserver.cli.folders.log_nodes import LogAddress
from qserver.cli.nodes import up
from qserver.cli.nodes.address import address_of
from qserver.cli.nodes.folder import FACTS_FILE, TOKEN_FILE, ClusterFacts, ClusterFolder
from qserver.cli.nodes.layout import layout_at
from qserver.durability.folder import lock_folder
from qserver.errors import InvalidRequest


def options(log: str | None = None, data: str | None = None) -> argparse.Namespace:
    return argparse.Namespace(log=log, data=data)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of log nodes that fails if it is started: nothing here gets that far."""
    monkeypatch.setattr(up, "find_server", lambda: "/bin/false")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["cluster", "up", *arguments]) == 1
    return capsys.readouterr().err


def test_a_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    made, is_new = folder.secret("api.key", "svc_k_")
    assert is_new and made.startswith("svc_k_") and len(made) > 30
    assert folder.secret("api.key", "svc_k_") == (made, False)
    assert stat.S_IMODE((tmp_path / "api.key").stat().st_mode) == 0o600
    assert folder.secret("api.key", "svc_k_", "svc_k_given") == ("svc_k_given", True)
    assert folder.secret("api.key") == ("svc_k_given", False)


def test_without_the_program_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "find_server", lambda: None)
    assert "pip install 'qserver[cluster]'" in refused(capsys)
    assert not list(tmp_path.iterdir())


def test_folders_of_another_kind_are_refused_and_left_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other, file = (tmp_path / name for name in ("one", "other", "file"))
    for folder, name in ((one, "control.qserver"), (other, "thesis.txt")):
        folder.mkdir()
        (folder / name).touch()
    file.touch()
    assert "the data folder of one server" in refused(capsys, "--data", str(one))
    assert "it holds thesis.txt" in refused(capsys, "--data", str(other))
    assert "is no folder" in refused(capsys, "--data", str(file))
    assert [each.name for each in other.iterdir()] == ["thesis.txt"]
    ClusterFolder(other).keep(ClusterFacts("nats://h:1", 3))
    (other / FACTS_FILE).write_text("{")
    assert "is damaged" in refused(capsys, "--data", str(other))


def test_a_folder_is_used_by_one_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with lock_folder(tmp_path / "c", datetime.now(UTC).isoformat()):
        assert "is in use by process" in refused(capsys, "--data", "c")


def test_a_cluster_keeps_its_number_of_log_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ClusterFolder(tmp_path).keep(ClusterFacts("nats://h:1", 3))
    said = refused(capsys, "--data", str(tmp_path), "--log-nodes", "1")
    assert "has 3 log nodes, and keeps them" in said


def test_a_port_in_use_is_named_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    free = layout_at(0, 2, 1)
    for port in free.ports():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            taken.listen()
            said = refused(
                capsys, "--port", str(free.nodes[0].port), "--nodes", "2", "--log-nodes", "1"
            )
        assert f"port {port} is in use" in said


def test_ports_of_a_layout_are_all_different() -> None:
    ports = list(layout_at(0, 16, 5).ports())
    assert len(set(ports)) == len(ports) == 2 * (16 + 5)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nodes", "0"],
        ["--nodes", "17"],
        ["--log-nodes", "2"],
        ["--port", "65000"],
        ["--port", "x"],
    ],
)
def test_numbers_that_make_no_cluster_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["cluster", "up", *arguments])
    assert ended.value.code == 2


def test_a_setting_of_nodes_that_is_wrong_is_refused_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QSERVER_LEASE_S", "1")
    assert "QSERVER_LEASE_S '1' is wrong" in refused(capsys, "--port", "0")


def test_a_log_node_that_ends_at_once_ends_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "--port", "0", "--log-nodes", "1")
    assert "n1 has ended (exit code 1)" in said and "qserver-cluster/n1.log" in said


def test_the_log_is_that_of_the_flag_then_of_the_folder_then_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidRequest, match="no log is named"):
        address_of(options())
    with pytest.raises(InvalidRequest, match="there is no cluster in"):
        address_of(options(data="elsewhere"))
    for name, log_nodes in (("qserver-cluster", 3), ("trial", 1)):
        (tmp_path / name).mkdir()
        folder = ClusterFolder(tmp_path / name)
        folder.keep(ClusterFacts(f"nats://{name}:1", log_nodes))
        (tmp_path / name / TOKEN_FILE).write_text(f"token-{name}\n")
    here = LogAddress("nats://qserver-cluster:1", "token-qserver-cluster", 3)
    trial = LogAddress("nats://trial:1", "token-trial", 1)
    assert address_of(options()) == here
    assert address_of(options(data="trial")) == trial
    monkeypatch.setenv("QSERVER_LOG", "nats://set:1")
    monkeypatch.setenv("QSERVER_LOG_TOKEN", "token-set")
    monkeypatch.setenv("QSERVER_CLUSTER_KEY", "0123456789abcdef")
    assert address_of(options()) == LogAddress("nats://set:1", "token-set", 3)
    assert address_of(options(data="trial")) == trial
    assert address_of(options("nats://flag:1", "trial")) == LogAddress(
        "nats://flag:1", "token-set", 3
    )
