"""Converts the lexer's tokens to the terminals of the grammar.

    lexer      word "first"   operator "?"      string "'x'"       word "Name"
    grammar    FIRST or NAME  PARAMETER or an   STRING, with its   NAME, folded to
               (`keywords`)   operator          number as literal  lower case

A terminal depends on the token's neighbours, never on the state of the parser, so a text has one
sequence of terminals, which tests inspect. Literals are numbered as `parameterize` numbers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

from qserver.errors import QserverError, SqlSyntaxError
from qserver.lexing.keywords import HEADS, KEYWORDS, NAMES_TOO, NEIGHBOURS, RESERVED
from qserver.lexing.lexer import Token, check_text, tokenize
from qserver.lexing.literals import KIND_NAMES, read_literal
from qserver.lexing.runs import read_run, tokenize_with_runs
from qserver.lexing.string_escapes import unicode_text
from qserver.lexing.value_rows import ValuesList, find_rows
from qserver.limits import IDENTIFIER_BYTES_MAX, PARAMETERS_MAX
from qserver.sql import ddl_keywords, session_keywords
from qserver.sql.ast import Literal, Parameter, Run
from qserver.sql.step_budget import StepBudget

_PUNCTUATION: Final = {
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    ",": "COMMA",
    ".": "DOT",
    ":": "COLON",
    "::": "CAST_SIGN",
    ":=": "NAMED",
}
_OPERATORS: Final = {
    "*": "STAR",
    "=": "EQUAL",
    "=>": "NAMED",
    **dict.fromkeys("+-", "SIGN"),
    **dict.fromkeys(("/", "%", "^", "<", ">", "<=", ">=", "<>", "!="), "INFIX"),
}
_ROW_KINDS: Final = {**KIND_NAMES, "t": "boolean", "0": "null"}
_TERMINALS: Final = {"i": "NUMBER", "l": "NUMBER", "n": "NUMBER", "s": "STRING", "b": "BITS"}
# An operator follows these, not an operand.
_ENDS_OPERAND: Final = (NAMES_TOO - {"ESCAPE"}) | {
    *("NAME", "NUMBER", "STRING", "BITS", "PARAMETER", "RPAR", "RSQB"),
    *("NULL", "BOOLEAN", "SYSTEM_VALUE", "END", "UNKNOWN", "NORMALIZED"),
}
_UPPER_TO_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


class Terminal:
    """One symbol for the parser. `type` is the grammar's terminal; `value` is the name, the node of
    a literal or parameter, or the symbol of an operator."""

    __slots__ = ("end", "source", "start", "type", "value")

    # Lark reads these to place its own errors; ours use `start`.
    start_pos: ClassVar[int] = 0
    line: ClassVar[int] = 0
    column: ClassVar[int] = 0
    end_line: ClassVar[int] = 0
    end_column: ClassVar[int] = 0
    end_pos: ClassVar[int] = 0

    def __init__(self, type_: str, value: Any, start: int, end: int, source: Source) -> None:
        self.type = type_
        self.value = value
        self.start = start
        self.end = end
        self.source = source

    def __repr__(self) -> str:
        return f"<{self.type} {self.value!r} at {self.start}>"


class Source:
    """The terminals of a statement, and the parser's position in them."""

    __slots__ = (
        "budget",
        "consumed",
        "kinds",
        "literals",
        "lookahead",
        "parameters",
        "runs",
        "second",
        "selects_into",
        "semicolon",
        "terminals",
        "text",
    )

    def __init__(
        self,
        text: str,
        *,
        repeat: bool = True,
        runs: bool = False,
        budget: StepBudget | None = None,
    ) -> None:
        check_text(text)
        self.text = text
        self.budget = budget or StepBudget.boundless()
        self.literals: list[Any] = []
        self.kinds = ""
        self.parameters: dict[int | str, None] = {}
        self.runs = False
        """Whether there are any; see `lexing.runs`."""
        self.terminals: list[Terminal] = []
        self.lookahead: Terminal | None = None
        """The terminal after the rule that the parser is building."""
        self.consumed = 0
        """The offset at which that rule ends."""
        self.selects_into: list[Any] = []
        """The INTO clauses of the SELECTs."""
        rows = find_rows(text) if repeat else None
        every = _tokens(text, rows, self.budget, tokenize_with_runs if runs else tokenize)
        tokens, self.semicolon, self.second = _first_statement(every)
        _Classifier(self, tokens, rows).run()

    def feed(self) -> Iterator[Terminal]:
        """Yield the terminals to the parser, which builds a node after the next terminal."""
        end = 0
        spend = self.budget.spend
        for terminal in self.terminals:
            spend()
            self.lookahead = terminal
            self.consumed = end
            yield terminal
            end = terminal.end
        self.lookahead = None
        self.consumed = end


def _tokens(
    text: str,
    rows: ValuesList | None,
    budget: StepBudget,
    split: Callable[[str, int, int | None], Iterator[Token]],
) -> list[Token]:
    """Return all tokens; a list of rows is one token of kind "rows"."""
    tokens = _counted(split(text, 0, None if rows is None else rows.start), budget)
    if rows is not None:
        tokens.append(Token("rows", "(", rows.start))
        tokens.extend(_counted(split(text, rows.end, None), budget))
    return tokens


def _counted(tokens: Iterator[Token], budget: StepBudget) -> list[Token]:
    """Return the tokens and charge one step for sixteen, which lex as fast as one parses."""
    found: list[Token] = []
    while some := list(islice(tokens, 16)):
        budget.spend()
        found += some
    return found


def _first_statement(tokens: list[Token]) -> tuple[list[Token], int | None, int | None]:
    """Return the first statement's tokens, and the offsets of its semicolon and of a second one."""
    first = 0
    while first < len(tokens) and tokens[first].text == ";":
        first += 1
    for end in range(first, len(tokens)):
        if tokens[end].text == ";":
            following = [token.start for token in tokens[end:] if token.text != ";"]
            second = following[0] if following else None
            return tokens[first:end], tokens[end].start, second
    return tokens[first:], None, None


class _Classifier:
    """Classifies the tokens of a statement in one pass, left to right."""

    def __init__(self, source: Source, tokens: Sequence[Token], rows: ValuesList | None) -> None:
        self._source = source
        self._rows = rows
        self._words = [_word(token) for token in tokens] + ["$", "$"]
        noise = ddl_keywords.noise_word(self._words)
        if noise >= 0:
            tokens = [*tokens[:noise], *tokens[noise + 1 :]]
            del self._words[noise]
        self._tokens = tokens
        self._marks: dict[int, str] = {}
        if self._words[0] in ddl_keywords.HEADS:
            self._marks = ddl_keywords.ddl_keywords(self._words)
        elif self._words[0] in session_keywords.HEADS:
            self._marks = session_keywords.session_keywords(self._words)
        self._questions = 0
        self._form = ""
        self._skip = -1

    def run(self) -> None:
        for index, token in enumerate(self._tokens):
            if index == self._skip:
                continue
            match token.kind:
                case "word":
                    self._add(self._word_terminal(index), _folded(token.text), token)
                case "quoted":
                    self._add("NAME", _quoted_name(token), token)
                case "number" | "string":
                    self._add_literal(token)
                case "rows":
                    self._add_rows(token)
                case "run":
                    run = self._run(token)
                    self._add("RUN", run, token)
                case "parameter rows":
                    self._add_parameter_rows(token)
                case "parameter":
                    self._add_parameter(index, token)
                case "punctuation":
                    self._add_punctuation(index, token)
                case "operator":
                    self._add_operator(token)
                case _:
                    self._add("STRAY", token.text, token)

    def _add(self, type_: str, value: Any, token: Token, end: int | None = None) -> None:
        start = token.start
        stop = start + len(token.text) if end is None else end
        self._source.terminals.append(Terminal(type_, value, start, stop, self._source))

    # --- words ------------------------------------------------------------------------------------

    def _word_terminal(self, index: int) -> str:
        words = self._words
        word = words[index]
        if index and words[index - 1] == ".":
            return "NAME"
        if index == 0 and word in HEADS:
            return HEADS[word]
        if index in self._marks:
            return self._marks[index]
        for neighbour in NEIGHBOURS.get(word, ()):
            if (neighbour.after is None or self._is_after(index, neighbour.after)) and (
                neighbour.before is None or self._is_before(index, neighbour.before)
            ):
                return neighbour.terminal
        return KEYWORDS.get(word, "NAME")

    def _is_after(self, index: int, after: frozenset[str]) -> bool:
        if index == 0:
            return False
        first, second = self._words[index - 2 : index] if index > 1 else ("", self._words[0])
        if second in after or f"{first}_{second}" in after:
            return True
        return _is_name(second) and ("name" in after or f"{first}_name" in after)

    def _is_before(self, index: int, before: frozenset[str]) -> bool:
        first, second = self._words[index + 1 : index + 3]
        if first in before or f"{first}_{second}" in before:
            return True
        return "name" in before and _is_name(first)

    # --- literals and parameters ------------------------------------------------------------------

    def _add_literal(self, token: Token) -> None:
        kind, value = read_literal(token.text, token.start)
        source = self._source
        literal = Literal(len(source.literals), KIND_NAMES[kind], position=token.start)
        source.literals.append(value)
        source.kinds += kind
        self._add(_TERMINALS[kind], literal, token)

    def _add_rows(self, token: Token) -> None:
        """Add one row, whose literals count from 0, and the mark that it stands for many."""
        rows = self._rows
        assert rows is not None
        self._add("LPAR", "(", token)
        places = _places_of_row(self._source.text, rows)
        for column, kind in enumerate(rows.kinds):
            if column:
                self._add("COMMA", ",", token)
            literal = Literal(column, _ROW_KINDS[kind], position=places[column], nullable=True)
            self._add("NUMBER", literal, token)
        self._add("RPAR", ")", token)
        self._add("REPEATED", len(self._source.literals), token, rows.end)
        self._source.literals.append(rows.values)
        self._source.kinds += f"({rows.kinds})"

    def _run(self, token: Token) -> Run:
        """Return the node of a run, whose items are counted as if they stood alone."""
        source, (kind, values) = self._source, read_run(token.text)
        count = len(values)
        source.runs = True
        source.budget.spend(count // 64)
        first: Literal | Parameter
        if kind in KIND_NAMES:
            first = Literal(len(source.literals), KIND_NAMES[kind], position=token.start)
            source.literals += values
            source.kinds += kind * count
        else:
            self._note_form(token)
            number = values[0] if kind == "$" else self._questions + 1
            _number(Token("parameter", f"${number + count - 1}", token.start))
            if kind == "?":
                self._questions += count
            source.parameters.update(dict.fromkeys(range(number, number + count)))
            first = Parameter(number, position=token.start)
        return Run(first, count, position=token.start)

    def _add_parameter_rows(self, token: Token) -> None:
        """Add the first row, and the mark that it stands for many."""
        run = self._run(token)
        first = run.first
        assert isinstance(first, Parameter) and isinstance(first.name, int), "they have numbers"
        for at, each in enumerate(tokenize(self._source.text, token.start)):
            if each.kind == "parameter":
                number = first.name + at // 2
                self._add("PARAMETER", Parameter(number, position=each.start), each)
            else:
                self._add(_PUNCTUATION[each.text], each.text, each)
            if each.text == ")":
                break
        self._add("REPEATED", run, token)

    def _add_parameter(self, index: int, token: Token) -> None:
        """Add `$1` or `?`; `?` is a JSON operator directly after an operand."""
        if token.text != "?":
            self._add_named(_number(token), token)
        elif self._wants_operand(index):
            self._questions += 1
            self._add_named(self._questions, token)
        else:
            self._add("OPERATOR", "?", token)

    def _add_named(self, name: int | str, token: Token, end: int | None = None) -> None:
        self._note_form(token)
        self._source.parameters[name] = None
        self._add("PARAMETER", Parameter(name, position=token.start), token, end)

    def _note_form(self, token: Token) -> None:
        form = token.text[0]
        self._form = self._form or form
        if form != self._form:
            raise SqlSyntaxError(
                "parameters are written in one way only: $1, ? or :name", position=token.start + 1
            )

    def _wants_operand(self, index: int) -> bool:
        terminals = self._source.terminals
        if not terminals or terminals[-1].type not in _ENDS_OPERAND:
            return True
        # In ROWS ? PRECEDING, ROWS is not a name.
        return self._words[index + 1] in ("preceding", "following")

    # --- punctuation and operators ----------------------------------------------------------------

    def _add_punctuation(self, index: int, token: Token) -> None:
        """Add punctuation; `:name` is a parameter, except in slices: `a[1:name]`, `a[:name]`."""
        following = self._tokens[index + 1] if index + 1 < len(self._tokens) else None
        if (
            token.text == ":"
            and following is not None
            and following.kind == "word"
            and following.start == token.start + 1
            and self._wants_operand(index)
            and not (index and self._words[index - 1] == "[")
        ):
            end = following.start + len(following.text)
            self._add_named(_folded(following.text), token, end)
            self._skip = index + 1
        else:
            self._add(_PUNCTUATION.get(token.text, "STRAY"), token.text, token)

    def _add_operator(self, token: Token) -> None:
        text = token.text
        if text in ("?|", "?&") and self._wants_operand(-2):
            self._add_parameter(-2, Token("parameter", "?", token.start))
            token = Token("operator", text[1], token.start + 1)
            text = token.text
        self._add(_OPERATORS.get(text, "OPERATOR"), "<>" if text == "!=" else text, token)


def _number(token: Token) -> int:
    """Return the number of a parameter such as $1; a list has a place for each up to the last."""
    digits = token.text[1:].lstrip("0") or "0"
    number = int(digits) if len(digits) <= len(str(PARAMETERS_MAX)) else PARAMETERS_MAX + 1
    if not 1 <= number <= PARAMETERS_MAX:
        raise SqlSyntaxError(
            f"there is no parameter ${_shortened(digits)}",
            hint=f"Parameters have numbers from 1 to {PARAMETERS_MAX}.",
            position=token.start + 1,
        )
    return number


def _places_of_row(text: str, rows: ValuesList) -> list[int]:
    places: list[int] = []
    begins = False
    for token in tokenize(text, rows.start, rows.end):
        if begins:
            places.append(token.start)
        if token.text == ")":
            break
        begins = token.text in ("(", ",")
    return places


def _word(token: Token) -> str:
    """Return the token as the conditions of its neighbours spell it."""
    match token.kind:
        case "word":
            return token.text.lower()
        case "string":
            return "'"
        case "number" | "run":
            return "0"
        case "parameter rows":
            return "("
        case "quoted":
            return '"'
        case _:
            return token.text


def _is_name(word: str) -> bool:
    return word == '"' or (word[0].isalpha() and word not in RESERVED)


def _folded(text: str) -> str:
    """Fold an identifier to lower case, ASCII letters only, like PostgreSQL."""
    folded = text.lower() if text.isascii() else text.translate(_UPPER_TO_LOWER)
    return _shortened(folded)


def _quoted_name(token: Token) -> str:
    if token.text[0] == '"':
        return _shortened(token.text[1:-1].replace('""', '"'))
    try:
        return _shortened(unicode_text(token.text))
    except QserverError as error:
        error.position = token.start + 1
        raise


def _shortened(name: str) -> str:
    """Truncate a name to the limit, like PostgreSQL, never inside of a character."""
    if len(name) * 4 <= IDENTIFIER_BYTES_MAX:
        return name
    return name.encode()[:IDENTIFIER_BYTES_MAX].decode("utf-8", "ignore")
