"""The shell acts on BEGIN, COMMIT and ROLLBACK as they are meant, or refuses them."""

from __future__ import annotations

import pytest

from qserver.cli.shell.transaction_words import Act, act_of
from qserver.cli.splitting import Statement
from qserver.errors import FeatureNotSupported, SqlSyntaxError


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("BEGIN", Act.BEGIN),
        ("/* a */ begin -- b\n work", Act.BEGIN),
        ("BEGIN READ WRITE", Act.BEGIN),
        ("BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE", Act.BEGIN),
        ("BEGIN READ ONLY", Act.BEGIN_READ_ONLY),
        ("START TRANSACTION", Act.BEGIN),
        ("start transaction isolation level read committed, read only", Act.BEGIN_READ_ONLY),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY DEFERRABLE", Act.BEGIN_READ_ONLY),
        ("COMMIT", Act.COMMIT),
        ("END TRANSACTION", Act.COMMIT),
        ("COMMIT AND NO CHAIN", Act.COMMIT),
        ("ABORT", Act.ROLL_BACK),
        ("ROLLBACK WORK", Act.ROLL_BACK),
        ("ROLLBACK TO a", None),
        ("ROLLBACK WORK TO SAVEPOINT a", None),
        ("SAVEPOINT begin", None),
        ("(SELECT 1)", None),
    ],
)
def test_a_statement_is_taken_as_it_is_meant(text: str, act: Act | None) -> None:
    assert act_of(Statement(text, 1)) is act


@pytest.mark.parametrize(
    "text",
    [
        *("BEGIN NOW", "BEGIN 5", "BEGIN READ", "BEGIN READ ONLY,", "START", "START READ ONLY"),
        *("COMMIT PREPARED 'a'", "ROLLBACK 1", "END AND"),
    ],
)
def test_words_without_effect_are_refused(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        act_of(Statement(text, 1))


@pytest.mark.parametrize("text", ["COMMIT AND CHAIN", "ROLLBACK TRANSACTION AND CHAIN"])
def test_a_chain_is_refused(text: str) -> None:
    with pytest.raises(FeatureNotSupported):
        act_of(Statement(text, 1))
