"""The timeline: one HTML file that shows a whole simulation run.

A failing seed leaves thousands of events. As text they hide the one thing that matters, which actor
knew what when; so the run is drawn as a sequence chart, time going down, a lane per actor, with the
text of each event beside it:

    time      client 0   gateway   coordinator   shard 0   log  |
    0.0125       >                                              |  12  client 0     T7 begins
    0.0125       o---------.                                    |  13  client 0     T7 to gateway
    0.0140                  >o                                  |  14  gateway      T7 arrives
    0.0141                   o--------->o                       |  15  ...

Everything that follows from the events alone (the order of lanes, which send belongs to which
receive, when an actor was alive) is computed here, as plain data, and tested here. The page only
draws: `timeline.html` is its markup and style, the three `timeline_*.js` are its script. All of it
is copied into the one output file, which opens from disk and has a content policy that forbids it
any network.

Invariant: the file is a function of the arguments, byte for byte; and nothing in an event, a fact
or an anomaly can become markup or script. Header text is escaped as HTML. Events travel as JSON in
which `<`, `>` and `&` are written as escapes, so that no `</script>` can end it early.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulations.trace import KINDS, Event

TEMPLATE: Final = Path(__file__).with_name("timeline.html")
SCRIPTS: Final = tuple(
    TEMPLATE.with_name(f"timeline_{part}.js") for part in ("model", "drawing", "controls")
)

# From left to right as a request travels, so that most arrows run rightward and answers leftward.
LANES_FROM_THE_LEFT: Final = (
    "client",
    "gateway",
    "coordinator",
    "shard",
    "log",
    "checkpointer",
    "disk",
)
LANE_AT_THE_RIGHT: Final = "world"

# A kill ends a generation too, whether or not a `stop` is recorded afterwards.
ENDINGS: Final = frozenset({"stop", "kill", "crash"})

_PLACEHOLDER: Final = re.compile(r"\{\{([a-z]+)\}\}")
_TRANSACTION: Final = re.compile(r"\bT([0-9]+)\b")
_DIGITS: Final = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class Arrows:
    """Messages by the positions of their events: those that arrived, and those that never did."""

    arrived: list[tuple[int, int]]
    lost: list[int]


@dataclass(frozen=True, slots=True)
class Generation:
    """One life of an actor, from the position of its first event to that of its last."""

    actor: str
    life: int
    first: int
    last: int
    ended_by: str | None  # a kind, or None if it lived to the end of the trace


def write_timeline(
    path: Path | str,
    events: Sequence[Event],
    title: str,
    facts: Mapping[str, str],
    anomalies: Sequence[str],
) -> None:
    """Write the timeline to `path`, a file that needs nothing else to be read.

    The header shows `facts` in their order. Two are special: `result` is shown beside the title,
    and `replay` is a command that can be copied. A `T<number>` in an anomaly becomes a button.
    """
    page = render_timeline(events, title, facts, anomalies)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A lone surrogate cannot be encoded, and the picture of a bug must not fail over a character.
    target.write_bytes(page.encode("utf-8", errors="backslashreplace"))


def render_timeline(
    events: Sequence[Event], title: str, facts: Mapping[str, str], anomalies: Sequence[str]
) -> str:
    """Return the page as text. Placeholders are filled in one pass, so no value is read as one."""
    values = {
        "title": html.escape(title),
        "verdict": _verdict(facts, anomalies),
        "facts": _facts(facts),
        "counts": html.escape(_counts(events)),
        "replay": _replay(facts),
        "anomalies": _anomalies(anomalies),
        "trace": _embedded_json(timeline_data(events)),
        "script": "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS),
    }
    template = TEMPLATE.read_text(encoding="utf-8")
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def timeline_data(events: Sequence[Event]) -> dict[str, object]:
    """Return what the page draws, as columns: a third of the size of a list of objects."""
    actors = lane_order(events)
    lane = {actor: index for index, actor in enumerate(actors)}
    kind = {name: index for index, name in enumerate(KINDS)}
    arrows = match_messages(events)
    lives = [
        (lane[life.actor], life.life, life.first, life.last, kind.get(life.ended_by or "", -1))
        for life in generations(events)
    ]
    return {
        "kinds": KINDS,
        "actors": actors,
        "number": [event.number for event in events],
        "time": [event.time for event in events],
        "actor": [lane[event.actor] for event in events],
        "kind": [kind[event.kind] for event in events],
        "text": [event.text for event in events],
        "message": [event.message for event in events],
        "arrows": arrows.arrived,
        "lost": arrows.lost,
        "lives": lives,
    }


def lane_order(events: Sequence[Event]) -> list[str]:
    """Return every actor once, in the order of its lane; `client 10` stands after `client 9`."""
    first_seen = {event.actor: None for event in events}
    strangers: dict[str, int] = {}  # first word → rank, in the order of appearance
    for actor in first_seen:
        word = _first_word(actor)
        if word not in LANES_FROM_THE_LEFT and word != LANE_AT_THE_RIGHT:
            strangers.setdefault(word, len(LANES_FROM_THE_LEFT) + len(strangers))

    def place(actor: str) -> tuple[int, list[tuple[int, str]]]:
        word = _first_word(actor)
        if word == LANE_AT_THE_RIGHT:
            rank = len(LANES_FROM_THE_LEFT) + len(strangers)
        elif word in strangers:
            rank = strangers[word]
        else:
            rank = LANES_FROM_THE_LEFT.index(word)
        parts = _DIGITS.split(actor)
        # Odd parts are the digits. A number sorts by value, and its text only breaks ties.
        return rank, [(int(part) if at % 2 else 0, part) for at, part in enumerate(parts)]

    return sorted(first_seen, key=place)


def match_messages(events: Sequence[Event]) -> Arrows:
    """Pair each receive with the latest send of its message: a duplicate draws two arrows."""
    sent: dict[int, int] = {}
    sends: list[int] = []
    arrived: list[tuple[int, int]] = []
    for position, event in enumerate(events):
        if event.message is None:
            continue
        if event.kind == "send":
            sent[event.message] = position
            sends.append(position)
        elif event.kind == "receive" and event.message in sent:
            arrived.append((sent[event.message], position))
    reached = {send for send, _ in arrived}
    return Arrows(arrived, [send for send in sends if send not in reached])


def generations(events: Sequence[Event]) -> list[Generation]:
    """Return the lives of all actors, in the order in which they began."""
    alive: dict[str, int] = {}  # actor → index into `lives` of the life that is going on
    count: dict[str, int] = {}
    lives: list[Generation] = []

    def end(actor: str, position: int, ended_by: str | None) -> None:
        index = alive.pop(actor, None)
        if index is not None:
            life = lives[index]
            lives[index] = Generation(actor, life.life, life.first, position, ended_by)

    for position, event in enumerate(events):
        if event.kind == "start":
            end(event.actor, position, None)
            count[event.actor] = count.get(event.actor, 0) + 1
            alive[event.actor] = len(lives)
            life = Generation(event.actor, count[event.actor], position, position, None)
            lives.append(life)
        elif event.kind in ENDINGS:
            end(event.actor, position, event.kind)
    for actor in list(alive):
        end(actor, len(events) - 1, None)
    return lives


def _first_word(actor: str) -> str:
    return actor.split(" ", 1)[0]


def _embedded_json(data: dict[str, object]) -> str:
    """Return JSON that is safe inside a script element. It is ASCII, so any Unicode survives."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    # Outside of strings JSON has none of these three, so this only ever rewrites string contents.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _verdict(facts: Mapping[str, str], anomalies: Sequence[str]) -> str:
    if anomalies:
        default = "1 anomaly" if len(anomalies) == 1 else f"{len(anomalies)} anomalies"
    else:
        default = "no anomaly"
    mood, sign = ("bad", "✗") if anomalies else ("good", "✓")
    result = html.escape(facts.get("result", default))
    return f'<span class="verdict {mood}">{sign} {result}</span>'


def _facts(facts: Mapping[str, str]) -> str:
    shown = ((name, value) for name, value in facts.items() if name not in ("result", "replay"))
    return "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
        for name, value in shown
    )


def _counts(events: Sequence[Event]) -> str:
    begun = sum(event.kind == "begin" for event in events)
    sent = sum(event.kind == "send" for event in events)
    lasted = events[-1].time - events[0].time if events else 0.0
    actors = len({event.actor for event in events})
    return (
        f"{len(events):,} events · {sent:,} messages · {begun:,} transactions · "
        f"{actors:,} actors · {lasted:,.3f} virtual seconds"
    )


def _replay(facts: Mapping[str, str]) -> str:
    if "replay" not in facts:
        return ""
    command = html.escape(facts["replay"])
    return (
        f'<p class="replay"><span>replay</span><code id="replay">{command}</code>'
        '<button id="copy" type="button">copy</button></p>'
    )


def _anomalies(anomalies: Sequence[str]) -> str:
    if not anomalies:
        return ""
    return f'<ol class="anomalies">{"".join(_anomaly(text) for text in anomalies)}</ol>'


def _anomaly(text: str) -> str:
    """Return one anomaly, in which each transaction can be clicked, and all of them at once."""
    numbers = list(dict.fromkeys(_TRANSACTION.findall(text)))
    body = _TRANSACTION.sub(
        r'<button type="button" data-pick="\1">T\1</button>', html.escape(text, quote=False)
    )
    if len(numbers) > 1:
        together = ",".join(numbers)
        body += f' <button type="button" data-pick="{together}">show all {len(numbers)}</button>'
    return f"<li>{body}</li>"
