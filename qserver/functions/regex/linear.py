"""Regular expressions in linear time: RE2, over a reduced alphabet.

    text ──► codes, one byte a character ──► RE2 ──► places, which are those of the text

RE2 runs an automaton in C and never backtracks. But its classes, case folding and word boundaries
are those of ASCII or of its own tables, and its positions are bytes of UTF-8. So RE2 never gets the
text itself. Two characters get the same code if no atom of the pattern distinguishes them, and if
both or neither are word characters; an atom is the set of its codes. Python's expression for the
atom decides what it matches, so both engines agree by construction; a code is one byte, so
positions need no translation; and codes of word characters are RE2's word characters, so \\b is
correct.

RE2 caches the states of an automaton with few atoms, and scans a gigabyte in two seconds. With many
atoms there may be more states than it caches; then its time is the product of both, which is
limited here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from qserver.functions.regex.syntax import (
    Choice,
    Group,
    Node,
    One,
    Place,
    Repeat,
    Sequence,
    too_long,
)

if TYPE_CHECKING:
    import re2

Span = tuple[int, int]
Match = tuple[Span | None, ...]
"""The place of the whole match, then of each group; None for a group without a match."""

FEW_ATOMS: Final = 10
"""Up to this many atoms, RE2 caches all states."""

STEPS_MOST: Final = 10_000_000
"""The limit of characters times atoms of one search with more states: an eighth of a second."""

MEMORY_BYTES_MOST: Final = 1 << 21
"""RE2's cache of states for one expression: more than few atoms need."""

WIDE_LENGTH_MOST: Final = 2_000_000
"""The length limit of a text with characters beyond Latin-1, which are coded one by one."""

_NEWLINE_CODE: Final = ord("\n")
_WORD_CODES: Final = tuple(code for code in range(128) if chr(code).isalnum() or code == ord("_"))
_OTHER_CODES: Final = tuple(
    code for code in range(256) if code not in _WORD_CODES and code != _NEWLINE_CODE
)
_LATIN: Final = 256

_PLACES: Final = {
    "start": r"\A",
    "end": r"\z",
    "line start": "(?m:^)",
    "line end": "(?m:$)",
    "boundary": r"\b",
    "no boundary": r"\B",
}


class NotLinear(Exception):
    """RE2 cannot run this pattern; another engine must."""


class Linear:
    """One pattern, for texts of any alphabet."""

    def __init__(self, tree: Node, flags: int) -> None:
        self._tree = tree
        self._atoms = list(dict.fromkeys(_atoms(tree)))
        self._tests = [re.compile(source, flags) for source in self._atoms]
        size = atom_count(tree)
        self._size = 1 if size <= FEW_ATOMS or _has_words_only(tree) else size
        """The automaton's size, as far as it determines the speed."""
        self._classes: dict[tuple[bool, ...], int] = {}
        """The code of characters that the same atoms match; the first bool: a word character?"""
        self._codes: dict[int, int] = {}
        self._latin = bytes(self._code(number) for number in range(_LATIN))
        self._compiled: dict[bool, re2._Regexp] = {}

    def coded(self, text: str) -> bytes:
        """Encode the text, one code per character; NotLinear if RE2 cannot serve."""
        try:
            coded = text.encode("latin-1").translate(self._latin)
        except UnicodeEncodeError:
            coded = self._wide_coded(text)
        self._expression(longest=True)
        return coded

    def _wide_coded(self, text: str) -> bytes:
        if len(text) > WIDE_LENGTH_MOST:
            raise too_long(len(text))
        table = {ord(character): self._code(ord(character)) for character in set(text)}
        return text.translate(table).encode("latin-1")

    def search(self, coded: bytes, start: int) -> Span | None:
        """Return the place of the first match at `start` or later, the longest one there."""
        self._check_length(len(coded) - start)
        found = self._expression(longest=True).search(coded, start)
        return None if found is None else found.span()

    def find_all(self, coded: bytes, start: int, longest: bool) -> Iterator[Match]:
        """Yield match after match, in Perl's preference or the longest at each place."""
        self._check_length(len(coded) - start)
        expression = self._expression(longest)
        return _each_once(expression.finditer(coded, start), expression.groups)

    def matches(self, coded: bytes) -> bool:
        self._check_length(len(coded))
        return self._expression(longest=True).search(coded) is not None

    def shortest_end(self, coded: bytes, start: int, end: int) -> int:
        """Return the end of the shortest match from `start`; one match ends at `end` or before.

        A match up to some place is one up to any later place, so binary search finds the first.
        """
        match = self._expression(longest=True).match
        low, step = start, 1
        while low + step < end and match(coded, start, low + step) is None:
            step *= 2
        high = min(low + step, end)
        low += step // 2
        while low < high:
            middle = (low + high) // 2
            if match(coded, start, middle) is None:
                low = middle + 1
            else:
                high = middle
        return high

    def _check_length(self, length: int) -> None:
        if self._size > 1 and length * self._size > STEPS_MOST:
            raise too_long(length)

    # --- the alphabet ---

    def _code(self, number: int) -> int:
        code = self._codes.get(number)
        if code is None:
            code = self._codes[number] = self._new_code(number)
        return code

    def _new_code(self, number: int) -> int:
        character = chr(number)
        if character == "\n":
            return _NEWLINE_CODE
        is_word = character.isalnum() or character == "_"
        kind = (is_word, *(test.match(character) is not None for test in self._tests))
        code = self._classes.get(kind)
        if code is None:
            codes = _WORD_CODES if is_word else _OTHER_CODES
            taken = sum(each[0] == is_word for each in self._classes)
            if taken >= len(codes):
                raise NotLinear
            code = self._classes[kind] = codes[taken]
            self._compiled = {}
        return code

    # --- the expression ---

    def _expression(self, longest: bool) -> re2._Regexp:
        compiled = self._compiled.get(longest)
        if compiled is None:
            import re2  # 2.5 MB, for those who have regular expressions

            options = re2.Options()
            options.encoding = re2.Options.Encoding.LATIN1
            options.longest_match = longest
            options.never_capture = longest  # groups of the longest match are found later
            options.log_errors = False
            options.max_mem = MEMORY_BYTES_MOST
            try:
                compiled = re2.compile(self._source(self._tree).encode(), options)
            except re2.error:
                raise NotLinear from None
            self._compiled[longest] = compiled
        return compiled

    def _source(self, node: Node) -> str:
        match node:
            case One(source):
                return self._set(self._atoms.index(source))
            case Place(kind) if kind in _PLACES:
                return _PLACES[kind]
            case Sequence(parts):
                return "".join(self._inside(parts, at) for at in range(len(parts)))
            case Choice(options):
                return "|".join(map(self._source, options))
            case Group(_, part):
                return f"({self._source(part)})"
            case Repeat(part, least, most, greedy):
                bounds = f"{{{least},{'' if most is None else most}}}"
                return f"(?:{self._source(part)}){bounds}{'?' if greedy is False else ''}"
        raise NotLinear

    def _inside(self, parts: tuple[Node, ...], at: int) -> str:
        """Return the source of a part of a sequence. A boundary is the beginning of a word if a
        word character must follow, and the end of one if a word character precedes."""
        part = parts[at]
        if (part == Place("word start") and self._words_only(parts[at + 1 :], 0)) or (
            part == Place("word end") and self._words_only(parts[:at], -1)
        ):
            return r"\b"
        source = self._source(part)
        return f"(?:{source})" if isinstance(part, Choice) else source

    def _set(self, atom: int) -> str:
        codes = [code for kind, code in self._classes.items() if kind[atom + 1]]
        if self._tests[atom].match("\n") is not None:
            codes.append(_NEWLINE_CODE)
        if not codes:
            return r"[^\x00-\xff]"
        return "[" + "".join(rf"\x{code:02x}" for code in codes) + "]"

    def _words_only(self, parts: tuple[Node, ...], edge: int) -> bool:
        """Tell whether the parts surely begin (end, if `edge` is -1) with a word character."""
        if not parts:
            return False
        match parts[edge]:
            case One(source):
                at = self._atoms.index(source)
                return (
                    not any(matched[at + 1] and not matched[0] for matched in self._classes)
                    and self._tests[at].match("\n") is None
                )
            case Sequence(inside):
                return self._words_only(inside, edge)
            case Choice(options):
                return all(self._words_only((option,), edge) for option in options)
            case Group(_, part):
                return self._words_only((part,), edge)
            case Repeat(part, least, _, _):
                return least > 0 and self._words_only((part,), edge)
            case _:
                return False


def _each_once(matches: Iterator[Any], groups: int) -> Iterator[Match]:
    before = None
    for found in matches:
        place = found.span()
        if place != before:  # RE2 reports an empty match twice if it had to search for it
            spans = [found.span(number) for number in range(groups + 1)]
            yield tuple([None if span == (-1, -1) else span for span in spans])
        before = place


def _atoms(node: Node) -> list[str]:
    match node:
        case One(source):
            return [source]
        case Sequence(parts) | Choice(parts):
            return [source for part in parts for source in _atoms(part)]
        case Group(_, part) | Repeat(part):
            return _atoms(part)
        case _:
            return []


def _has_words_only(node: Node) -> bool:
    """Tell whether it is a word or a choice of words: no more states than letters."""
    match node:
        case Choice(options):
            return all(map(_has_words_only, options))
        case Group(_, part):
            return _has_words_only(part)
        case Sequence(parts):
            return all(isinstance(part, One | Place) and _has_words_only(part) for part in parts)
        case One(source):
            return len(source) == 1 or (len(source) == 2 and not source[1].isalnum())
        case Place():
            return True
        case _:
            return False


def atom_count(node: Node) -> int:
    """Count the atoms after expansion of counted repetitions."""
    match node:
        case One():
            return 1
        case Sequence(parts) | Choice(parts):
            return sum(map(atom_count, parts))
        case Group(_, part):
            return atom_count(part)
        case Repeat(part, least, most, _):
            return atom_count(part) * max(least if most is None else most, 1)
        case _:
            return 0
