"""A run is exactly the tokens that the lexer finds in its place."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given, settings

from qserver.errors import QserverError
from qserver.lexing.lexer import Token, tokenize
from qserver.lexing.literals import KIND_NAMES, read_literal
from qserver.lexing.runs import RUN_ITEMS_MIN, read_run, tokenize_with_runs
from tests.known_work import calls_of
from tests.lexing.long_lists import items, parameter_rows, texts


def spelled_out(tokens: list[Token]) -> list[Token]:
    found: list[Token] = []
    for token in tokens:
        if token.kind not in ("run", "parameter rows"):
            found.append(token)
            continue
        inside = list(tokenize(token.text))
        assert len(inside) >= 2 * RUN_ITEMS_MIN - 1
        found += [each._replace(start=each.start + token.start) for each in inside]
    return found


@given(texts() | parameter_rows())
@example("SELECT a FROM t WHERE a IN (0, " + items("1", 64) + ")")
@settings(max_examples=60, deadline=None)
def test_a_text_has_the_same_tokens_with_runs_and_without(sql: str) -> None:
    try:
        plain = list(tokenize(sql))
    except QserverError:
        with pytest.raises(QserverError):
            list(tokenize_with_runs(sql))
        return
    assert spelled_out(list(tokenize_with_runs(sql))) == plain


@given(texts())
@settings(max_examples=60, deadline=None)
def test_the_values_of_a_run_are_those_of_its_literals(sql: str) -> None:
    tokens: list[Token] = []
    with suppress(QserverError):
        tokens += tokenize_with_runs(sql)
    for token in tokens:
        if token.kind == "run":
            kind, values = read_run(token.text)
            inside = [each.text for each in tokenize(token.text)][0::2]
            if kind in KIND_NAMES:
                assert [read_literal(each, 0) for each in inside] == [(kind, v) for v in values]
            else:
                assert [f"${v}" if kind == "$" else v for v in values] == inside


def kinds(sql: str) -> list[str]:
    return [token.kind for token in tokenize_with_runs(sql)]


def test_a_long_list_is_a_run_behind_its_first_item() -> None:
    for item in ("1", "3000000000", "1.5", "'it''s'", "?"):
        assert kinds(f"a IN ({item}, {items(item, 64)})").count("run") == 1, item
        assert kinds(f"ARRAY[{item},\n{items(item, 64)} ]").count("run") == 1, item
        assert "run" not in kinds(f"a IN ({item}, {items(item, 63)})"), item
    parameters = ", ".join(f"${number}" for number in range(1, 66))
    assert kinds(f"a IN ({parameters})").count("run") == 1
    assert "run" not in kinds(f"a IN ({parameters.replace('$40', '$41')})")


def test_rows_of_consecutive_parameters_are_one_token() -> None:
    pairs = ", ".join(f"(${number}, ${number + 1})" for number in range(1, 99, 2))
    assert kinds(f"INSERT INTO t VALUES {pairs} RETURNING a")[4:] == [
        "parameter rows",
        "word",
        "word",
    ]
    for other in (pairs.replace("$9,", "$8,"), pairs + ", ($99)", pairs.replace("($5", "(5")):
        assert "parameter rows" not in kinds(f"INSERT INTO t VALUES {other}")


def test_only_lists_of_in_and_array_have_runs() -> None:
    for head in ("f(", "VALUES (", "SELECT ", "ROW(", "a[", "x IN (f("):
        assert "run" not in kinds(head + items("1", 200) + ")"), head


def test_items_of_changing_kinds_are_looked_at_a_few_times_each() -> None:
    def looks(length: int) -> int:
        text = f"a IN (0, {', '.join([items('1', 63), '-1'] * length)})"
        assert "run" not in kinds(text)
        return calls_of(lambda: list(tokenize_with_runs(text)))

    assert looks(40) < 3 * looks(20)
