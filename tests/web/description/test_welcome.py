"""What the terminal shows at the start names the address that is served, or none."""

from __future__ import annotations

from qserver.config import load
from qserver.web.description.welcome import ADDRESS_UNKNOWN, welcome


def test_the_port_that_is_bound_is_named_and_not_the_one_that_was_wished() -> None:
    settings = load({"QSERVER_PORT": "0", "QSERVER_HOST": "127.0.0.1"})
    said = welcome(settings, "svc_k_1", 4711)
    assert "at http://127.0.0.1:4711, data in" in said
    assert "curl http://127.0.0.1:4711/v1/query" in said


def test_under_another_server_no_address_is_made_up() -> None:
    said = welcome(load({}), "svc_k_1")
    assert "8000" not in said and " at " not in said.splitlines()[0]
    assert f"curl {ADDRESS_UNKNOWN}/v1/query" in said


def test_a_url_that_is_set_is_the_one_to_paste() -> None:
    said = welcome(load({"QSERVER_DATA_URL": "https://data.example"}), "svc_k_1")
    assert "at https://data.example, data in" in said
    assert "curl https://data.example/v1/query" in said
