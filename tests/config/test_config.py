"""Settings: each has a default, a flag and a check, and a wrong one is never ignored."""

from __future__ import annotations

from dataclasses import fields

import pytest

from qserver.config import SETTINGS, Setting, Settings, load
from qserver.errors import InvalidSetting

USED = [each for each in SETTINGS if each.field]
KEY = "svc_k_0123456789abcdef"

# For each field: a text, what it means, and texts that are wrong.
EXAMPLES: dict[str, tuple[str, object, tuple[str, ...]]] = {
    "host": ("0.0.0.0", "0.0.0.0", (" ",)),
    "port": ("0", 0, ("65536", "-1", "x", "1.5", "٣")),
    "data": (":memory:", ":memory:", (" ",)),
    "api_key": (KEY, KEY, ("svc_k_short", "abc", "svc_s_0123456789abcdef", "svc_k_0123456789 abc")),
    "shards": ("8", 8, ("0", "65", "many")),
    "processes": ("4", 4, ("-1", "65", "all")),
    "replicas": ("4", 4, ("-1", "65", "all")),
    "log": (
        "nats://h1:4222,h2",
        "nats://h1:4222,h2",
        ("h1:4222", "http://h1", "nats://", "nats://a/b"),
    ),
    "log_token": ("a secret", "a secret", ()),
    "log_copies": ("5", 5, ("0", "2", "three")),
    "node": ("n-1", "n-1", ("a b", "ü", "x" * 61)),
    "take_over": ("0", False, ("perhaps",)),
    "append_timeout_s": ("7", 7.0, ("0", "soon")),
    "link": ("n1.test:7420", "n1.test:7420", ("n1.test", ":7420", "n1:0", "n1:70000", "n1:x")),
    "node_url": ("https://N1.test", "https://n1.test", ("n1.test", "http://x/y")),
    "cluster_key": ("k" * 16, "k" * 16, ("k" * 15,)),
    "lease_s": ("3", 3.0, ("1", "121", "soon")),
    "data_url": ("https://Data.test", "https://data.test", ("data.test", "ftp://x", "http://x/y")),
    "alias_url": ("http://a.test:80", "http://a.test:80", ("http://", "http://x?y=1")),
    "control_url": ("http://c.test/", "http://c.test", ("nonsense", "http://x#y")),
    "cors_origins": (
        "https://a.test, http://b.test",
        ("https://a.test", "http://b.test"),
        ("a.test",),
    ),
    "compression": ("off", False, ("gzip", "2")),
    "console": ("off", False, ("none", "2")),
    "open_signup": ("yes", True, ("2", "maybe")),
    "signups_per_address": ("5", 5, ("0", "-1", "many")),
    "signups_per_hour": ("50", 50, ("0", "1000001")),
    "trust_forwarded": ("1", True, ("proxy",)),
    "default_tier": ("pro", "pro", ("gold", "Free")),
    "tls_certificate": ("cert.pem", "cert.pem", ()),
    "tls_key": ("key.pem", "key.pem", ()),
    "pg_port": ("5432", 5432, ("-1", "65536", "x")),
    "pg_plaintext": ("1", True, ("perhaps",)),
    "access_log": ("1", True, ("x",)),
    "log_format": ("json", "json", ("xml", "JSON")),
    "slow_ms": ("0.5", 0.5, ("-1", "nan", "soon", "1e9")),
    "audit": ("audit.log", "audit.log", ()),
    "audit_statements": ("0", False, ("x",)),
    "traces": ("http://h:4318/v1/traces", "http://h:4318/v1/traces", ("h:4318", "ftp://h")),
    "connections_max": ("5", 5, ("0", "-5", "1000001")),
    "header_timeout_s": ("0.5", 0.5, ("0", "-1", "x", "nan", "inf", "86401")),
    "idle_timeout_s": ("1e1", 10.0, ("0",)),
    "drain_timeout_s": ("3", 3.0, ("soon",)),
    "database_idle_s": ("60", 60.0, ("0",)),
    "databases_open_max": ("10", 10, ("0", "100001")),
    "statement_timeout": ("5m", 300.0, ("0", "soon", "25h", "m")),
    "statement_timeout_max": ("1h", 3600.0, ("0", "2d")),
    "history": ("7d", 604_800.0, ("31d", "-1", "1.5h", "soon")),
    "backup": ("s3://bucket/x", "s3://bucket/x", ()),
    "backup_keep": ("30d", 2_592_000.0, ("0", "-1", "1.5h", "soon")),
    "memory": ("512MB", 512 << 20, ("1000", "much", "12XB", "-1GB")),
    "memory_bytes_max": ("33554432", 33_554_432, ("1000", "much")),
    "value_bytes_max": ("8388608", 8_388_608, ("8388607", "67108865")),
    "stall_s": ("0", None, ("-1", "soon", "86401")),
}
NEEDS = {
    "alias_url": {"QSERVER_DATA_URL": "http://d.test"},
    "link": {"QSERVER_LOG": "nats://h", "QSERVER_CLUSTER_KEY": "k" * 16},
    "cluster_key": {"QSERVER_LOG": "nats://h", "QSERVER_LINK": "h:1"},
    "tls_certificate": {"QSERVER_TLS_KEY": "k"},
    "tls_key": {"QSERVER_TLS_CERTIFICATE": "c"},
}


def value(settings: Settings, setting: Setting) -> object:
    found: object = getattr(settings, setting.field)
    return found


def test_every_field_has_one_setting_and_every_setting_an_example() -> None:
    assert [each.field for each in USED] == [each.name for each in fields(Settings)]
    assert {each.field for each in USED} == EXAMPLES.keys()
    assert len({each.name for each in SETTINGS}) == len(SETTINGS)
    assert len({each.flag for each in USED}) == len(USED)
    assert all(each.name.startswith("QSERVER_") and each.meaning for each in SETTINGS)


@pytest.mark.parametrize("setting", USED, ids=lambda each: each.field)
def test_a_setting_is_taken_from_the_environment(setting: Setting) -> None:
    text, meaning, _ = EXAMPLES[setting.field]
    others = NEEDS.get(setting.field, {})
    assert value(load({setting.name: text, **others}), setting) == meaning
    assert value(load({}), setting) == setting.parse(setting.default)


@pytest.mark.parametrize("setting", USED, ids=lambda each: each.field)
def test_a_flag_counts_before_the_environment(setting: Setting) -> None:
    text, meaning, _ = EXAMPLES[setting.field]
    others = NEEDS.get(setting.field, {})
    given = {setting.name: setting.default or text, **others}
    assert value(load(given, {setting.field: text}), setting) == meaning


@pytest.mark.parametrize(
    ("setting", "text"),
    [(each, text) for each in USED for text in EXAMPLES[each.field][2]],
    ids=lambda each: each.field if isinstance(each, Setting) else repr(each),
)
def test_a_wrong_value_is_refused_with_what_the_setting_means(setting: Setting, text: str) -> None:
    for environ, flags, source in (
        ({setting.name: text}, {}, setting.name),
        ({}, {setting.field: text}, setting.flag),
    ):
        with pytest.raises(InvalidSetting) as caught:
            load(environ, flags)
        assert caught.value.message.startswith(source)
        assert caught.value.hint is not None and setting.meaning in caught.value.hint
        assert (text in caught.value.message) != setting.secret or not text.strip()


def test_an_empty_variable_is_as_good_as_none() -> None:
    assert load(dict.fromkeys((each.name for each in SETTINGS), "")) == load({})


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match="QSERVER_DATADIR") as caught:
        load({"QSERVER_DATADIR": "x", "UNRELATED": "y"})
    assert all(each.name in (caught.value.hint or "") for each in SETTINGS)


def test_a_platform_that_sets_port_gets_all_addresses_unless_it_names_one() -> None:
    settings = load({"PORT": "5000"})
    assert (settings.host, settings.port) == ("0.0.0.0", 5000)
    settings = load({"PORT": "5000", "QSERVER_HOST": "127.0.0.2"})
    assert (settings.host, settings.port) == ("127.0.0.2", 5000)
    settings = load({"PORT": "5000", "QSERVER_PORT": "6000"})
    assert settings.port == 6000
    settings = load({"PORT": "5000"}, {"port": "7000", "host": "::1"})
    assert (settings.host, settings.port) == ("::1", 7000)
    with pytest.raises(InvalidSetting, match="PORT"):
        load({"PORT": "http"})


@pytest.mark.parametrize(
    "environ",
    [
        {"QSERVER_TLS_KEY": "key.pem"},
        {"QSERVER_TLS_CERTIFICATE": "cert.pem"},
        {"QSERVER_ALIAS_URL": "http://alias.test"},
        {"QSERVER_BACKUP": "/backups", "QSERVER_DATA_DIR": ":memory:"},
        {"QSERVER_BACKUP": "/backups", "QSERVER_LOG": "nats://h1"},
        {"QSERVER_STATEMENT_TIMEOUT_MAX": "29"},
        {"QSERVER_STATEMENT_TIMEOUT": "60", "QSERVER_STATEMENT_TIMEOUT_MAX": "59"},
    ],
)
def test_settings_that_need_each_other_come_together(environ: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting):
        load(environ)


def test_what_is_secret_is_not_in_the_text_of_the_settings() -> None:
    assert KEY not in repr(load({"QSERVER_API_KEY": KEY}))


def test_a_replicated_log_needs_a_data_folder_for_its_copies() -> None:
    with pytest.raises(InvalidSetting, match="needs a data folder"):
        load({"QSERVER_LOG": "nats://h1", "QSERVER_DATA_DIR": ":memory:"})
    with pytest.raises(InvalidSetting, match="nothing to take over"):
        load({"QSERVER_TAKE_OVER": "1"})
    assert load({"QSERVER_LOG": "nats://h1", "QSERVER_TAKE_OVER": "1"}).take_over


def test_several_processes_need_a_data_folder() -> None:
    with pytest.raises(InvalidSetting, match="several processes need a data folder"):
        load({"QSERVER_PROCESSES": "2", "QSERVER_DATA_DIR": ":memory:"})
    assert load({"QSERVER_PROCESSES": "0"}).processes == 0
