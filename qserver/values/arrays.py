"""Arrays: tuples, nested once for each further dimension, with None for NULL.

    {1,2,NULL}        (1, 2, None)          one dimension
    {{1,2},{3,4}}     ((1, 2), (3, 4))      two; only rectangular arrays are valid
    {}                ()                    no dimension at all

Subscripts begin at 1; PostgreSQL's other lower bounds ([0:2]={…}) are not supported.

An element is never a plain tuple (a record is a `Record`), so the nesting gives the dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from qserver.errors import (
    FeatureNotSupported,
    InvalidTextRepresentation,
    ProgramLimitExceeded,
    QserverError,
)
from qserver.limits import ARRAY_DIMENSIONS_MAX
from qserver.values.digits import clipped_integer

Array = tuple[Any, ...]

_BLANKS: Final = " \t\n\v\f\r"
_BOUNDS: Final = re.compile(r"\s*((?:\[[+-]?\d+(?::[+-]?\d+)?\]\s*)+)=\s*", re.ASCII)
_BOUND: Final = re.compile(r"\[(?:([+-]?\d+):)?([+-]?\d+)\]", re.ASCII)
_TOKEN: Final = re.compile(
    r"""[ \t\n\v\f\r]*(?:
        (?P<mark>[{},])
      | "(?P<quoted>(?>[^"\\]|\\.)*+)"[ \t\n\v\f\r]*(?=[{},])
      | (?P<plain>(?>[^{},"\\]|\\.)++)(?=[{},])
    )""",
    re.VERBOSE | re.DOTALL,
)
# Most arrays have one dimension and plain elements.
_SIMPLE: Final = re.compile(r'\{([^{}",\\ \t\n\v\f\r]+(?>,[^{}",\\ \t\n\v\f\r]+)*+)\}')
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_NEEDS_QUOTES: Final = re.compile(r'[{},"\\ \t\n\v\f\r]|null\Z', re.IGNORECASE)
_SPECIAL: Final = re.compile(r'(["\\])')


def dimensions(array: Array) -> tuple[int, ...]:
    """The length of each dimension; none for an empty array."""
    sizes: list[int] = []
    part: Any = array
    while type(part) is tuple:
        sizes.append(len(part))
        part = part[0] if part else None
    return tuple(sizes) if sizes[0] else ()


def flat(array: Array) -> Array:
    """All elements in order, without the dimensions."""
    while array and type(array[0]) is tuple:
        array = tuple(chain.from_iterable(array))
    return array


def shaped(elements: Array, sizes: tuple[int, ...]) -> Array:
    """The elements with dimensions of these sizes: the inverse of `flat`."""
    for size in reversed(sizes[1:]):
        elements = tuple(elements[at : at + size] for at in range(0, len(elements), size))
    return elements


def mapped(function: Callable[[Any], Any], array: Array) -> Array:
    """Apply the function to each element that is not NULL."""
    if array and type(array[0]) is tuple:
        return tuple([mapped(function, part) for part in array])
    return tuple([None if element is None else function(element) for element in array])


def is_rectangular(array: Array) -> bool:
    """Do all parts of one depth have the same length, and is none of them empty?"""
    if not any(type(part) is tuple for part in array):
        return True
    sizes = {dimensions(part) if type(part) is tuple else () for part in array}
    return len(sizes) == 1 and () not in sizes and all(is_rectangular(part) for part in array)


# --- text ----------------------------------------------------------------------------------------


def array_reader(read: Callable[[str], Any]) -> Callable[[str], Array]:
    """A function that reads arrays; `read` reads an element."""

    def array_from_text(text: str) -> Array:
        match = _SIMPLE.fullmatch(text)
        if match is None:
            return _Reader(text, read).array()
        parts = match[1].split(",")
        return tuple([None if part.lower() == "null" else read(part) for part in parts])

    return array_from_text


def array_writer(
    write: Callable[[Any], str], nests: bool = True, quotes: bool = True
) -> Callable[[Array], str]:
    """A function that prints arrays; `write` prints an element.

    `nests` is False if tuples in the array are elements, `quotes` if no element's text needs them.
    """

    def text_of_array(array: Array) -> str:
        if nests and array and type(array[0]) is tuple:
            return f"{{{','.join(map(text_of_array, array))}}}"
        texts = ["NULL" if element is None else text_of(element) for element in array]
        return f"{{{','.join(texts)}}}"

    def quoted_if_needed(element: Any) -> str:
        text = write(element)
        return _quoted(text) if not text or _NEEDS_QUOTES.search(text) else text

    text_of = quoted_if_needed if quotes else write
    return text_of_array


def _quoted(text: str) -> str:
    return '"' + _SPECIAL.sub(r"\\\1", text) + '"'


class _Reader:
    """Reads one array literal; errors show the whole text."""

    def __init__(self, text: str, read: Callable[[str], Any]) -> None:
        self._text = text
        self._read = read

    def array(self) -> Array:
        bounds, start = self._bounds()
        if not self._text[start:].lstrip(_BLANKS).startswith("{"):
            raise self._malformed('Array value must start with "{" or dimension information.')
        tokens = list(self._tokens(start))
        array, at = self._part(tokens, 1, 1)
        if at != len(tokens):
            raise self._malformed("Junk after closing right brace.")
        if not is_rectangular(array):
            raise self._malformed(
                "Multidimensional arrays must have sub-arrays with matching dimensions."
            )
        if bounds is not None and dimensions(array) != bounds:
            raise self._malformed("Specified array dimensions do not match array contents.")
        return array

    def _bounds(self) -> tuple[tuple[int, ...] | None, int]:
        match = _BOUNDS.match(self._text)
        if match is None:
            return None, 0
        sizes = []
        for low, high in _BOUND.findall(match[1]):
            if clipped_integer(low or "1") != 1:
                raise FeatureNotSupported("arrays with a lower bound other than 1 do not exist")
            sizes.append(clipped_integer(high))
        return tuple(sizes), match.end()

    def _tokens(self, at: int) -> Iterator[Any]:
        """Marks as they are, elements as 1-tuples, so that the two differ."""
        end = len(self._text.rstrip(_BLANKS))
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise self._malformed("Unexpected array element.")
            at = match.end()
            if match["mark"]:
                yield match["mark"]
            elif match["quoted"] is not None:
                yield (self._element(_ESCAPED.sub(r"\1", match["quoted"])),)
            else:
                yield (self._plain_element(match["plain"]),)

    def _plain_element(self, text: str) -> Any:
        stripped = text.rstrip(_BLANKS)
        if stripped.endswith("\\"):  # the blank after it was escaped
            stripped = text[: len(stripped) + 1]
        if stripped.lower() == "null":
            return None
        return self._element(_ESCAPED.sub(r"\1", stripped))

    def _element(self, text: str) -> Any:
        return self._read(text)

    def _part(self, tokens: list[Any], at: int, depth: int) -> tuple[Array, int]:
        """The array between two braces, and the position after it."""
        if depth > ARRAY_DIMENSIONS_MAX:
            raise too_many_dimensions(depth)
        if tokens[at : at + 1] == ["}"]:
            if depth > 1:
                raise self._malformed('Unexpected "}" character.')
            return (), at + 1
        parts: list[Any] = []
        while at < len(tokens):
            token = tokens[at]
            if token == "{":
                part, at = self._part(tokens, at + 1, depth + 1)
                parts.append(part)
            elif isinstance(token, tuple):
                parts.append(token[0])
                at += 1
            else:
                raise self._malformed(f'Unexpected "{token}" character.')
            ending = tokens[at] if at < len(tokens) else None
            at += 1
            if ending == "}":
                return tuple(parts), at
            if ending != ",":
                break
        raise self._malformed("Unexpected end of input.")

    def _malformed(self, detail: str) -> QserverError:
        return InvalidTextRepresentation(f'malformed array literal: "{self._text}"', detail=detail)


def too_many_dimensions(count: int) -> QserverError:
    return ProgramLimitExceeded(
        f"number of array dimensions ({count}) exceeds the maximum allowed ({ARRAY_DIMENSIONS_MAX})"
    )
