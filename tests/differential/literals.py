"""Random literals of each kind: ordinary values mostly, and those at which mistakes hide.

*Tame* values can be added and multiplied without an error; *wild* ones are the ends of the range,
NaN, infinities, empty and very long things. A column is one or the other, so that one wild value
does not make every statement over a table fail.

Doubles of columns are multiples of a quarter: their sums are exact in whatever order they are
added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from tests.differential.kinds import ENUM_LABELS, cast_name

WORDS: Final = (
    "",
    "a",
    "b",
    "ab",
    "abc",
    "B",
    "Abc",
    "a b",
    " x",
    "x ",
    "foo",
    "bar",
    "zoo",
    "10",
    "-7",
    "é",
    "日本",
    "über",
    "🙂",
    "a%b",
    "a_b",
    "a\\b",
    "it''s",
    "one,two",
    "A-b_C",
    "0",
    "1.5",
    "2024-02-29",
    "true",
    "NULL",
    "foo.bar",
    "aaa",
    "abcabc",
    "tEsT",
    "x=1;y=2",
)
KEYS: Final = ("a", "b", "c", "k", "é", "")
ZONES: Final = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "+03", "EST")


def literal(random: Random, kind: str, *, wild: bool = False) -> str:
    """A value of the kind that is not NULL, as an expression whose type is certain."""
    if kind.endswith("[]"):
        return _array(random, kind, wild)
    return MAKERS[kind](random, wild)


def special(random: Random, name: str) -> str | None:
    """A literal for a place that wants a value of some use: a pattern, a field, a format."""
    choices = SPECIAL.get(name)
    return None if choices is None else random.choice(choices)


def _quoted(text: str) -> str:
    return f"'{text}'"


def _bool(random: Random, wild: bool) -> str:
    return random.choice(("true", "false"))


def _int(tame: int, least: int, greatest: int, cast: str) -> Callable[[Random, bool], str]:
    def make(random: Random, wild: bool) -> str:
        if wild and random.random() < 0.6:
            value = random.choice((least, greatest, least + 1, greatest - 1, greatest // 2))
        elif random.random() < 0.7:
            value = random.randint(-3, 9)
        else:
            value = random.randint(-tame, tame)
        if cast == "int4" and value > least:
            return str(value) if value >= 0 else f"({value})"
        return f"'{value}'::{cast}" if value < 0 else f"{value}::{cast}"

    return make


def _numeric(random: Random, wild: bool) -> str:
    if wild and random.random() < 0.6:
        return random.choice(WILD_NUMERICS)
    if random.random() < 0.4:
        text = str(random.randint(-20, 20))
    else:
        text = f"{random.randint(-2000, 2000) / 8:.3f}".rstrip("0").rstrip(".")
    return f"'{text}'::numeric" if text.startswith("-") else f"{text}::numeric"


def _float(cast: str) -> Callable[[Random, bool], str]:
    wild_ones = ("NaN", "Infinity", "-Infinity", "-0", "1e-30", "1e30", "3.14159", "0.1")
    wilder = ("1e300", "-1e-300", "1.7976931348623157e308", "5e-324")

    def make(random: Random, wild: bool) -> str:
        if wild and random.random() < 0.6:
            text = random.choice(wild_ones + (wilder if cast == "float8" else ()))
        else:
            text = str(random.randint(-40, 40) / 4)
        return f"'{text}'::{cast}"

    return make


def _text(cast: str) -> Callable[[Random, bool], str]:
    def make(random: Random, wild: bool) -> str:
        text = random.choice(WORDS)
        if wild and random.random() < 0.3:
            text = random.choice(("\t", "line\nbreak", "ÀÉÎ", "ß", "y" * 40, "  ", '"q"', "\\"))
        if cast == "varchar":
            text = text[:20]
        if cast == "char(8)":
            text = text[:6] if "'" not in text else "its"
        return f"'{text}'::{cast}"

    return make


def _date_text(random: Random, wild: bool) -> str:
    if wild and random.random() < 0.6:
        return random.choice(
            ("0001-01-01", "9999-12-31", "1900-02-28", "2000-02-29", "1970-01-01", "1582-10-15")
        )
    year = random.choice((1999, 2000, 2023, 2024, 2024, 2025))
    return f"{year}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"


def _time_text(random: Random, wild: bool) -> str:
    if wild and random.random() < 0.5:
        return random.choice(("00:00:00", "23:59:59.999999", "12:00:00.5", "23:59:59"))
    minute, second = random.choice((0, 30, 59)), random.choice(("00", "15", "59", "07.25"))
    return f"{random.randint(0, 23):02}:{minute:02}:{second}"


def _date(random: Random, wild: bool) -> str:
    return f"DATE '{_date_text(random, wild)}'"


def _timestamp(random: Random, wild: bool) -> str:
    return f"TIMESTAMP '{_date_text(random, wild)} {_time_text(random, wild)}'"


def _timestamptz(random: Random, wild: bool) -> str:
    day = _date_text(random, False)
    zone = random.choice(("+00", "Z", "+05:30", "-08", " Europe/Berlin"))
    return f"'{day} {_time_text(random, wild)}{zone}'::timestamptz"


def _time(random: Random, wild: bool) -> str:
    return f"TIME '{_time_text(random, wild)}'"


def _timetz(random: Random, wild: bool) -> str:
    return f"'{_time_text(random, wild)}{random.choice(('+00', '+02', '-05:30'))}'::timetz"


def _interval(random: Random, wild: bool) -> str:
    tame = ("1 day", "2 hours", "1 month", "1 year 2 mons", "-3 days", "90 minutes", "1.5 hours")
    tamer = ("1 mon -1 day", "00:00:00.25", "30 days", "24 hours", "1 week", "P1Y2M3DT4H", "-01:30")
    wilder = ("100 years", "-1 year 30 days -00:00:01", "1 decade", "999999:00:00", "0 days")
    text = random.choice(wilder if wild and random.random() < 0.5 else tame + tamer)
    return f"INTERVAL '{text}'"


def _uuid(random: Random, wild: bool) -> str:
    digit = random.choice("0123f")
    return f"'{digit * 8}-0000-4000-8000-00000000000{random.choice('0123')}'::uuid"


def _bytea(random: Random, wild: bool) -> str:
    text = random.choice(("", "00", "ff", "6162", "616263", "00ff10", "deadbeef", "c3a9", "20"))
    return f"'\\x{text}'::bytea"


def _json_value(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.4:
        return random.choice(
            ("1", "2.50", "null", "true", '"a"', '"b"', "[]", "{}", "-3", '"é"', "1e2", '"x y"')
        )
    if random.random() < 0.4:
        return f"[{', '.join(_json_value(random, depth - 1) for _ in range(random.randint(0, 3)))}]"
    pairs = (
        f'"{random.choice(KEYS)}": {_json_value(random, depth - 1)}'
        for _ in range(random.randint(0, 3))
    )
    return f"{{{', '.join(pairs)}}}"


def _json(cast: str) -> Callable[[Random, bool], str]:
    return lambda random, wild: f"'{_json_value(random, 2)}'::{cast}"


def _mood(random: Random, wild: bool) -> str:
    return f"'{random.choice(ENUM_LABELS)}'::mood"


def _array(random: Random, kind: str, wild: bool) -> str:
    element = kind.removesuffix("[]")
    if random.random() < 0.1:
        return f"'{{}}'::{kind}"
    items = [
        "NULL" if random.random() < 0.12 else literal(random, element, wild=wild and element != "x")
        for _ in range(random.randint(1, 4))
    ]
    if random.random() < 0.08:
        return f"ARRAY[[{', '.join(items)}], [{', '.join(reversed(items))}]]::{kind}"
    return f"ARRAY[{', '.join(items)}]::{kind}"


MAKERS: Final[Mapping[str, Callable[[Random, bool], str]]] = {
    "bool": _bool,
    "int2": _int(50, -(2**15), 2**15 - 1, "int2"),
    "int4": _int(500, -(2**31), 2**31 - 1, "int4"),
    "int8": _int(500, -(2**63), 2**63 - 1, "int8"),
    "numeric": _numeric,
    "float4": _float("float4"),
    "float8": _float("float8"),
    "text": _text("text"),
    "varchar": _text("varchar"),
    "bpchar": _text(cast_name("bpchar")),
    "date": _date,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "time": _time,
    "timetz": _timetz,
    "interval": _interval,
    "uuid": _uuid,
    "bytea": _bytea,
    "json": _json("json"),
    "jsonb": _json("jsonb"),
    "mood": _mood,
}

WILD_NUMERICS: Final = (
    "'NaN'::numeric",
    "'Infinity'::numeric",
    "'-Infinity'::numeric",
    "0.000::numeric",
    "99999999999999999999.999999::numeric",
    "'-0.000000000001'::numeric",
    "1e10::numeric",
    "1e-5::numeric",
    "123456789.123456789::numeric",
    "0.5::numeric",
    "'-0.5'::numeric",
)

SPECIAL: Final[Mapping[str, tuple[str, ...]]] = {
    "small": ("0", "1", "2", "3", "(-1)", "4"),
    "count": ("1", "2", "3", "5"),
    "nonzero": ("1", "2", "3", "(-2)", "7"),
    "digits": ("0", "1", "2", "(-1)", "5"),
    "like": (
        (
            "'a%'",
            "'%b'",
            "'_b%'",
            "'%a%'",
            "''",
            "'%'",
            "'a\\%b'",
            "'_'",
            "'%o_'",
            "'A%'",
            "'é%'",
            "'a%b'",
            "'%\\_%'",
            "'__'",
        )
    ),
    "similar": ("'a%'", "'(a|b)%'", "'[a-c]+'", "'_{2,3}'", "'%(o|e)%'", "'abc?'"),
    "regex": (
        (
            "'a'",
            "'^a'",
            "'b$'",
            "'[a-c]+'",
            "'\\d+'",
            "'(a)(b)'",
            "'(a|b)*'",
            "'o{2}'",
            "'\\w+'",
            "'[^a-z]'",
            "'\\m\\w'",
            "'x?'",
            "'(?i)ABC'",
            "'.'",
            "'\\s'",
            "'^$'",
            "'a.*b'",
            "'(.)\\1'",
        )
    ),
    "flags": ("''", "'g'", "'i'", "'gi'"),
    "replacement": ("''", "'X'", "'[\\&]'", "'<\\1>'", "'\\\\'"),
    "field": (
        (
            "year",
            "month",
            "day",
            "hour",
            "minute",
            "second",
            "dow",
            "isodow",
            "doy",
            "week",
            "quarter",
            "epoch",
            "century",
            "decade",
            "millennium",
            "isoyear",
            "milliseconds",
            "microseconds",
            "julian",
        )
    ),
    "datefield": (
        (
            "year",
            "month",
            "day",
            "dow",
            "isodow",
            "doy",
            "week",
            "quarter",
            "epoch",
            "century",
            "decade",
            "millennium",
            "isoyear",
            "julian",
        )
    ),
    "timefield": ("hour", "minute", "second", "epoch", "milliseconds", "microseconds"),
    "intervalfield": (
        (
            "year",
            "month",
            "day",
            "hour",
            "minute",
            "second",
            "epoch",
            "quarter",
            "decade",
            "century",
            "millennium",
            "milliseconds",
            "microseconds",
        )
    ),
    "unit": (
        (
            "'year'",
            "'month'",
            "'day'",
            "'hour'",
            "'minute'",
            "'second'",
            "'week'",
            "'quarter'",
            "'decade'",
            "'century'",
            "'millennium'",
            "'milliseconds'",
            "'microseconds'",
        )
    ),
    "dateformat": (
        (
            "'YYYY-MM-DD'",
            "'DD Mon YYYY'",
            "'FMDay, DDth FMMonth'",
            "'YY/Q/WW'",
            "'HH24:MI:SS'",
            "'HH12:MI:SS.MS AM'",
            "'IYYY-IW-ID'",
            "'J'",
            "'DDD D'",
            "'Month'",
            "'day MON RM'",
            "'US SSSS'",
            "'CC Y,YYY'",
            '\'"at" HH24"h"\'',
            "'FMHH12 p.m.'",
            "'TZ OF'",
            "'MS FF3'",
        )
    ),
    "intervalformat": ("'HH24:MI:SS'", "'DD HH12 MI'", "'YYYY MM'", "'FMDD SS'"),
    "numberformat": (
        (
            "'999.99'",
            "'FM9990.00'",
            "'S0000'",
            "'9,999'",
            "'9.9EEEE'",
            "'000'",
            "'MI99.9'",
            "'99PR'",
            "'RN'",
            "'FM999th'",
            "'99V9'",
            "'L99'",
            "'SG99.0'",
            "'PL9'",
            "'B99'",
            "'9G999D9'",
        )
    ),
    "parseformat": ("'YYYY-MM-DD'",),
    "zone": tuple(f"'{zone}'" for zone in ZONES),
    "key": tuple(f"'{key}'" for key in KEYS),
    "path": ("'{a}'", "'{a,b}'", "'{0}'", "'{a,0}'", "'{}'", "'{k,-1}'", "'{b,c,0}'"),
    "forwardpath": ("'{a}'", "'{a,b}'", "'{0}'", "'{a,0}'", "'{}'", "'{k,1}'", "'{b,c,0}'"),
    "delimiter": ("','", "' '", "'b'", "''", "'ab'", "'.'"),
    "characters": ("'ab'", "' '", "'x'", "'aé'", "''"),
    "form": ("NFC", "NFD", "NFKC", "NFKD"),
    "encoding": ("'hex'", "'base64'", "'escape'"),
    "stride": ("INTERVAL '15 minutes'", "INTERVAL '1 day'", "INTERVAL '3 hours'"),
    "fraction": ("0.5", "0", "1", "0.25", "0.9"),
    "mask": ("1", "255", "6", "(-1)"),
    "timezoneformat": ("'YYYY-MM-DD HH24:MI:SS'",),
}
"""Literals for places of templates where a value of any sort would be an error mostly."""
