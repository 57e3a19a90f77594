"""Commands that change how results look: \\pset and its short forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from qserver.cli.layouts import LAYOUTS, Printing
from qserver.cli.layouts.options import LINESTYLES
from qserver.cli.shell.commands.call import Call, Command
from qserver.cli.shell.variables import is_true
from qserver.errors import InvalidRequest

_ALIASES: Final = {"x": "expanded", "vertical": "expanded", "t": "tuples_only", "C": "title"}
_SEPARATORS: Final = ("fieldsep", "recordsep", "csv_fieldsep")


def changed(options: Printing, name: str, value: str | None) -> Printing:
    """The options with one changed, by \\pset's names; None switches, or takes the default."""
    name = _ALIASES.get(name, name)
    reader = _READERS.get(name)
    if reader is None:
        raise InvalidRequest(f"\\pset: unknown option: {name}", hint="\\pset alone lists them.")
    return replace(options, **{name: reader(options, name, value)})


def _chosen(*choices: str) -> Callable[[Printing, str, str | None], str]:
    def read(options: Printing, name: str, value: str | None) -> str:
        if value is None:
            return str(getattr(options, name))
        found = [each for each in choices if each.startswith(value.lower())]
        if value.lower() in choices:
            return value.lower()
        if len(found) == 1:
            return found[0]
        raise InvalidRequest(
            f"there is no {name} {value}", hint=f"Choose one of: {', '.join(choices)}."
        )

    return read


def _switch(options: Printing, name: str, value: str | None) -> bool:
    return not getattr(options, name) if value is None else is_true(value, name)


def _expanded(options: Printing, name: str, value: str | None) -> str:
    if value is not None and value.lower() == "auto":
        return "auto"
    if value is None:
        return "off" if options.expanded == "on" else "on"
    return "on" if is_true(value, name) else "off"


def _pager(options: Printing, name: str, value: str | None) -> str:
    if value is not None and value.lower() == "always":
        return "always"
    if value is None:
        return "on" if options.pager == "off" else "off"
    return "on" if is_true(value, name) else "off"


def _border(options: Printing, name: str, value: str | None) -> int:
    if value is None:
        return options.border
    if value not in ("0", "1", "2"):
        raise InvalidRequest(f"there is no border {value}", hint="Choose 0, 1 or 2.")
    return int(value)


def _text(options: Printing, name: str, value: str | None) -> str:
    return str(getattr(options, name)) if value is None else value


def _title(options: Printing, name: str, value: str | None) -> str | None:
    return value


def _csv_separator(options: Printing, name: str, value: str | None) -> str:
    if value is None:
        return options.csv_fieldsep
    if len(value) != 1 or value in '"\n\r':
        raise InvalidRequest(
            "csv_fieldsep must be a single character, and no quote or end of a line"
        )
    return value


_READERS: Final[dict[str, Callable[[Printing, str, str | None], Any]]] = {
    "border": _border,
    "csv_fieldsep": _csv_separator,
    "expanded": _expanded,
    "fieldsep": _text,
    "footer": _switch,
    "format": _chosen(*LAYOUTS),
    "linestyle": _chosen(*LINESTYLES),
    "null": _text,
    "pager": _pager,
    "recordsep": _text,
    "tableattr": lambda options, name, value: value or "",
    "title": _title,
    "tuples_only": _switch,
}


def message(options: Printing, name: str) -> str:
    """The sentence that tells what an option is, in psql's words where it has it."""
    value = getattr(options, _ALIASES.get(name, name))
    match _ALIASES.get(name, name):
        case "border":
            return f"Border style is {value}."
        case "expanded":
            return {
                "on": "Expanded display is on.",
                "off": "Expanded display is off.",
                "auto": "Expanded display is used automatically.",
            }[value]
        case "pager":
            return {
                "on": "Pager is used for long output.",
                "always": "Pager is always used.",
                "off": "Pager usage is off.",
            }[value]
        case "fieldsep":
            return f'Field separator is "{value}".'
        case "csv_fieldsep":
            return f'Field separator for CSV is "{value}".'
        case "recordsep":
            return (
                "Record separator is <newline>."
                if value == "\n"
                else (f'Record separator is "{value}".')
            )
        case "format":
            return f"Output format is {value}."
        case "linestyle":
            return f"Line style is {value}."
        case "null":
            return f'Null display is "{value}".'
        case "title":
            return "Title is unset." if value is None else f'Title is "{value}".'
        case "tableattr":
            return f'Table attributes are "{value}".' if value else "Table attributes unset."
        case "tuples_only":
            return f"Tuples only is {_on(value)}."
        case _:
            return f"Default footer is {_on(value)}."


def _set(call: Call, name: str, value: str | None) -> None:
    printer = call.shell.printer
    printer.options = changed(printer.options, name, value)
    call.shell.note(f"{message(printer.options, name)}\n")


def _pset(call: Call) -> None:
    words = call.words(2)
    if words:
        _set(call, words[0], words[1] if len(words) > 1 else None)
        return
    options = call.shell.printer.options
    lines = []
    for name in _READERS:
        value = getattr(options, name)
        if isinstance(value, bool):
            value = _on(value)
        elif name in (*_SEPARATORS, "null", "tableattr") and value is not None:
            value = "'" + str(value).replace("\\", "\\\\").replace("\n", "\\n") + "'"
        lines.append(f"{name:<12} {'' if value is None else value}".rstrip() + "\n")
    call.shell.write("".join(lines))


def _short(name: str) -> Callable[[Call], None]:
    def run(call: Call) -> None:
        words = call.words(1)
        _set(call, name, words[0] if words else None)

    return run


def _format(call: Call) -> None:
    _set(call, "format", call.word() or None)


def _unaligned(call: Call) -> None:
    options = call.shell.printer.options
    _set(call, "format", "unaligned" if options.format == "aligned" else "aligned")


def _html(call: Call) -> None:
    options = call.shell.printer.options
    _set(call, "format", "aligned" if options.format == "html" else "html")


def _timing(call: Call) -> None:
    word = call.word()
    call.shell.is_timed = is_true(word, "\\timing") if word else not call.shell.is_timed
    call.shell.note(f"Timing is {_on(call.shell.is_timed)}.\n")


def _on(switch: bool) -> str:
    return "on" if switch else "off"


COMMANDS: Final = (
    Command("\\pset [name [value]]", "change how results look; alone: list the options", _pset),
    Command("\\x [on|off|auto]", "one line a value, for wide rows", _short("expanded")),
    Command("\\a", "switch between aligned and unaligned", _unaligned),
    Command("\\t [on|off]", "only rows, without names and counts", _short("tuples_only")),
    Command("\\H", "switch between HTML and aligned", _html),
    Command("\\f [text]", "what separates unaligned fields", _short("fieldsep")),
    Command("\\C [text]", "the title of tables", _short("title")),
    Command("\\T [text]", "attributes of HTML tables", _short("tableattr")),
    Command("\\format [name]", ", ".join(LAYOUTS), _format),
    Command("\\timing [on|off]", "show how long each statement took", _timing),
)
