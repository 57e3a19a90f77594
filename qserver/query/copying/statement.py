"""Reads COPY, whose rows go over the connection, or are the body of a request.

COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER)
COPY (SELECT …) TO STDOUT (FORMAT binary)
COPY t TO STDOUT CSV HEADER DELIMITER ';'          the way before PostgreSQL 9
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from qserver.errors import FeatureNotSupported, InvalidParameterValue, SqlSyntaxError
from qserver.lexing.lexer import Token, tokenize
from qserver.lexing.literals import LITERAL_TOKENS, read_literal
from qserver.values.identifiers import identifiers, quoted

FORMATS: Final = ("text", "csv", "binary")
_ON: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "on", "1", "match"), True),
    **dict.fromkeys(("false", "off", "0"), False),
}
_WITHOUT_EFFECT: Final = frozenset({"freeze", "oids"})


class CopyFormat(msgspec.Struct, frozen=True):
    """How rows are written."""

    name: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    matches: bool = False
    """Whether the header has to name the columns."""
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()
    force_not_null: tuple[str, ...] = ()
    force_null: tuple[str, ...] = ()

    @property
    def is_binary(self) -> bool:
        return self.name == "binary"


ALL: Final = ("*",)
"""Instead of names of columns: all of them."""


class CopyStatement(msgspec.Struct, frozen=True):
    is_from: bool
    table: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """None: all."""
    query: str = ""
    """Instead of a table."""
    format: CopyFormat = CopyFormat()
    text: str = ""
    """As it was written."""


def read_copy(text: str) -> CopyStatement:
    return msgspec.structs.replace(_Reader(text).statement(), text=text)


def query_of(statement: CopyStatement) -> str:
    """Return the query whose rows COPY TO gives."""
    if statement.query:
        return statement.query
    columns = ", ".join(map(quoted, statement.columns)) or "*"
    return f"SELECT {columns} FROM {'.'.join(map(quoted, statement.table))}"


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [each for each in tokenize(text) if each.text != ";"]
        self._at = 1  # behind COPY

    # --- tokens ---

    def _peek(self) -> str:
        at = self._at
        return self._tokens[at].text.lower() if at < len(self._tokens) else ""

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise SqlSyntaxError("syntax error at end of input", position=len(self._text) + 1)
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, *words: str) -> bool:
        """Take the words if they come next."""
        found = [each.text.lower() for each in self._tokens[self._at : self._at + len(words)]]
        if found != list(words):
            return False
        self._at += len(words)
        return True

    def _wrong(self) -> SqlSyntaxError:
        token = self._next()
        return SqlSyntaxError(f'syntax error at or near "{token.text}"', position=token.start + 1)

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise self._wrong()

    def _name(self) -> str:
        token = self._next()
        if token.kind not in ("word", "quoted"):
            self._at -= 1
            raise self._wrong()
        (name,) = identifiers(token.text)
        return name

    def _names(self) -> tuple[str, ...]:
        """Names in parentheses."""
        self._expect("(")
        names = [self._name()]
        while self._takes(","):
            names.append(self._name())
        self._expect(")")
        return tuple(names)

    def _string(self) -> str:
        token = self._next()
        if token.kind not in LITERAL_TOKENS:
            self._at -= 1
            raise self._wrong()
        value = read_literal(token.text, token.start)[1]
        return str(value)

    # --- the statement ---

    def statement(self) -> CopyStatement:
        legacy: dict[str, object] = {"format": "binary"} if self._takes("binary") else {}
        table: tuple[str, ...] = ()
        columns: tuple[str, ...] = ()
        query = ""
        if self._peek() == "(":
            query = self._query()
        else:
            names = [self._name()]
            while self._takes("."):
                names.append(self._name())
            table = tuple(names)
            if self._peek() == "(":
                columns = self._names()
        is_from = self._takes("from")
        if not is_from:
            self._expect("to")
        elif query:
            raise SqlSyntaxError("COPY query is only supported with TO")
        if not self._takes("stdin" if is_from else "stdout"):
            raise FeatureNotSupported(
                "COPY to or from a file is not supported",
                hint="Use STDIN and STDOUT, or \\copy of psql.",
                position=self._next().start + 1,
            )
        return CopyStatement(is_from, table, columns, query, self._format(legacy))

    def _query(self) -> str:
        """Return the text in parentheses."""
        start, depth = self._tokens[self._at].start + 1, 0
        while True:
            token = self._next()
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if not depth:
                return self._text[start : token.start]

    def _format(self, options: dict[str, object]) -> CopyFormat:
        self._takes("with")
        if self._takes("("):
            while True:
                self._option(options)
                if not self._takes(","):
                    break
            self._expect(")")
        else:
            while self._peek() not in ("", "where"):
                self._old_option(options)
        if self._peek() == "where":
            raise FeatureNotSupported(
                "COPY … WHERE is not supported", position=self._next().start + 1
            )
        if self._peek():
            raise self._wrong()
        return _made(options)

    def _option(self, options: dict[str, object]) -> None:
        position = self._tokens[min(self._at, len(self._tokens) - 1)].start + 1
        name = self._name()
        if name in options:
            raise SqlSyntaxError("conflicting or redundant options", position=position)
        if name == "format":
            options[name] = self._word()
        elif name in ("delimiter", "null", "quote", "escape", "encoding"):
            options[name] = self._string()
        elif name in ("header", *_WITHOUT_EFFECT):
            options[name] = "true" if self._peek() in (",", ")") else self._word()
        elif name in ("force_quote", "force_not_null", "force_null"):
            options[name] = ALL if self._takes("*") else self._names()
        else:
            raise SqlSyntaxError(f'option "{name}" not recognized', position=position)

    def _word(self) -> str:
        token = self._next()
        if token.kind in LITERAL_TOKENS:
            self._at -= 1
            return self._string().lower()
        return token.text.lower()

    def _old_option(self, options: dict[str, object]) -> None:
        name = self._name()
        if name in ("binary", "csv"):
            options["format"] = name
        elif name in ("delimiter", "null", "quote", "escape"):
            self._takes("as")
            options[name] = self._string()
        elif name == "header":
            options[name] = "true"
        elif name == "force":
            which = self._force()
            listed = ALL if self._takes("*") else self._listed()
            options[which] = listed
        elif name == "encoding":
            options[name] = self._string()
        elif name not in _WITHOUT_EFFECT:
            self._at -= 1
            raise self._wrong()

    def _force(self) -> str:
        for words, name in (
            (("quote",), "force_quote"),
            (("not", "null"), "force_not_null"),
            (("null",), "force_null"),
        ):
            if self._takes(*words):
                return name
        raise self._wrong()

    def _listed(self) -> tuple[str, ...]:
        names = [self._name()]
        while self._takes(","):
            names.append(self._name())
        return tuple(names)


def _made(options: dict[str, object]) -> CopyFormat:
    """Check the options together."""
    name = str(options.get("format", "text"))
    if name not in FORMATS:
        raise InvalidParameterValue(f'COPY format "{name}" not recognized')
    header = str(options.get("header", "false"))
    if header not in _ON:
        raise SqlSyntaxError('header requires a Boolean value or "match"')
    encoding = str(options.get("encoding", "utf8")).lower().replace("-", "")
    if encoding not in ("utf8", "unicode"):
        raise FeatureNotSupported("COPY is in UTF-8 alone")
    is_csv = name == "csv"
    quote = str(options.get("quote", '"'))
    made = CopyFormat(
        name,
        str(options.get("delimiter", "," if is_csv else "\t")),
        str(options.get("null", "" if is_csv else "\\N")),
        _ON[header],
        header == "match",
        quote,
        str(options.get("escape", quote)),
        _named(options, "force_quote"),
        _named(options, "force_not_null"),
        _named(options, "force_null"),
    )
    _check(made, options)
    return made


def _named(options: dict[str, object], name: str) -> tuple[str, ...]:
    found = options.get(name, ())
    assert isinstance(found, tuple)
    return found


def _check(made: CopyFormat, options: dict[str, object]) -> None:
    if made.is_binary:
        for option in ("delimiter", "null", "header"):
            if option in options and options[option] not in ("false", "off"):
                raise SqlSyntaxError(f"cannot specify {option.upper()} in BINARY mode")
    if made.name != "csv":
        for option in ("quote", "escape", "force_quote", "force_not_null", "force_null"):
            if option in options:
                raise FeatureNotSupported(f"COPY {option} available only in CSV mode")
    for what, text in (
        ("delimiter", made.delimiter),
        ("quote", made.quote),
        ("escape", made.escape),
    ):
        if len(text.encode()) != 1:
            raise FeatureNotSupported(f"COPY {what} must be a single one-byte character")
    if made.delimiter in "\r\n" or "\n" in made.null or "\r" in made.null:
        raise InvalidParameterValue("COPY delimiter and null cannot be newline or carriage return")
    if made.name == "text" and made.delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise InvalidParameterValue(f'COPY delimiter cannot be "{made.delimiter}"')
    if made.name == "csv" and made.quote == made.delimiter:
        raise InvalidParameterValue("COPY delimiter and quote must be different")
    if not made.is_binary and made.delimiter in made.null:
        raise InvalidParameterValue("COPY delimiter must not appear in the NULL specification")
