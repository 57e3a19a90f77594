"""The timeline holds every event, keeps markup out, is the same each time, and really draws."""

from __future__ import annotations

import html
import json
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulations.timeline import (
    SCRIPTS,
    TEMPLATE,
    Generation,
    generations,
    lane_order,
    match_messages,
    render_timeline,
    write_timeline,
)
from simulations.trace import KINDS, Event, Trace

FACTS = {
    "seed": "424242",
    "profile": "swarm",
    "workload": "ring + bank",
    "result": "2 anomalies",
    "replay": "python -m simulations replay --seed 424242 --profile swarm",
}
ANOMALIES = (
    "G-single-realtime: T3 -rw-> T7 -ww-> T3\n  T3 read x = [1, 2], but T7 had appended 3",
    "lost write: T9 appended 14 to y, nobody ever saw it",
)
NASTY = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]> & < > \" ' ` \\u003c \\",
    "zero\x00 line\u2028 paragraph\u2029 lone\ud800 emoji🐘 ünïcödé שלום",
    "{{title}} {{trace}} {{unknown}}",
)


class SmallWorld:
    """A toy database with the actors and habits of the real one, to have something to draw."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.trace = Trace()
        self.now = 0.0
        self.message = 0
        self.pending: list[tuple[float, int, str, str, str, int | None]] = []

    def later(
        self, delay: float, actor: str, kind: str, text: str, message: int | None = None
    ) -> float:
        """Plan an event, and answer when it will be."""
        self.pending.append((self.now + delay, len(self.pending), actor, kind, text, message))
        return delay

    def wire(self, after: float, source: str, target: str, text: str) -> float:
        self.message += 1
        self.later(after, source, "send", f"{text} → {target}", self.message)
        arrives = after + self.chance.choice((0.0, 0.0002, 0.0007, 0.003))
        if self.chance.random() > 0.01:
            self.later(arrives, target, "receive", f"{text} ← {source}", self.message)
        return arrives

    def transaction(self, number: int) -> None:
        client, name, chance = f"client {number % 8}", f"T{number}", self.chance
        at = self.later(0.0, client, "begin", f"{name} begins: move {number % 17} from a to b")
        at = self.wire(at, client, "gateway", f"{name} statement")
        at = self.wire(at + 0.0003, "gateway", "coordinator", f"{name} commit on v{number}")
        shards = chance.sample(range(4), chance.choice((1, 2, 2, 3)))
        votes = []
        for shard in shards:
            reached = self.wire(at, "coordinator", f"shard {shard}", f"{name} prepare")
            votes.append(self.wire(reached, f"shard {shard}", "coordinator", f"{name} vote"))
        at = max(votes)
        if chance.random() < 0.12:
            self.later(at, "coordinator", "conflict", f"{name} with T{max(0, number - 3)} on a[7]")
            self.later(self.wire(at, "coordinator", client, f"{name} abort"), client, "fail", name)
            return
        at = self.later(at, "coordinator", "publish", f"v{number + 1} by {name}")
        at = self.wire(at, "coordinator", "log", f"{name} record")
        at = self.later(at + 0.0005, "disk", "sync", f"group of {chance.randint(1, 5)}")
        at = self.later(at + chance.random() * 0.004, "disk", "durable", f"v{number + 1}")
        at = self.wire(at, "log", "gateway", f"{name} durable")
        at = self.wire(at, "gateway", client, f"{name} answer")
        outcome = ("unknown", "no answer") if chance.random() < 0.04 else ("commit", "done")
        self.later(at, client, outcome[0], f"{name} {outcome[1]}")

    def trouble(self, number: int) -> None:
        shard = f"shard {self.chance.randrange(4)}"
        self.later(0.0, "world", "fault", f"fault {number}: delay × 20 on {shard}")
        if number % 3 == 1:
            self.later(0.001, shard, "kill", f"fault {number}: {shard} killed")
            self.later(0.004, shard, "start", "started again")
            self.later(0.0045, shard, "recover", "from the log, 12 records")
        if number % 10 == 7:
            self.later(0.001, "world", "crash", f"fault {number}: process gone")
            for actor in ("gateway", "coordinator", "shard 0", "shard 1", "shard 2", "shard 3"):
                self.later(0.001, actor, "stop", "generation ends")
                self.later(1.8, actor, "start", "started again")
            self.now += 1.9

    def run(self, transactions: int) -> list[Event]:
        servers = ["gateway", "coordinator", *(f"shard {n}" for n in range(4)), "log", "disk"]
        for actor in servers:
            self.later(0.0, actor, "start", "generation begins")
        for number in range(transactions):
            self.transaction(number)
            if self.chance.random() < 0.25:
                self.trouble(number)
            self.now += self.chance.random() * 0.006
        self.now += 3.0
        self.later(0.0, "world", "heal", "all faults cease")
        self.later(0.5, "world", "check", "histories checked")
        for text in ANOMALIES:
            self.later(0.5, "world", "anomaly", text)
        for time, _, actor, kind, text, message in sorted(self.pending):
            self.trace.record(time, actor, kind, text, message)
        return self.trace.events


def hand_made(*rows: tuple[str, str, int | None]) -> list[Event]:
    return [
        Event(position, position / 10, actor, kind, f"{kind} {position}", message)
        for position, (actor, kind, message) in enumerate(rows)
    ]


def embedded(page: str) -> dict[str, Any]:
    """The data as a browser would read it: up to the first thing that ends a script element."""
    start = page.index('<script type="application/json" id="trace">')
    text = page[page.index(">", start) + 1 :]
    data: dict[str, Any] = json.loads(text[: text.lower().index("</script")])
    return data


def the_run() -> list[Event]:
    return SmallWorld(7).run(40)


# ── the trace ───────────────────────────────────────────────────────────────────────────────────


def test_events_are_numbered_by_position_and_kept_as_recorded() -> None:
    trace = Trace()
    trace.record(0.5, "client 3", "begin", "T1 begins")
    trace.record(0.5, "client 3", "send", "T1 to gateway", 8)
    assert trace.events == [
        Event(0, 0.5, "client 3", "begin", "T1 begins", None),
        Event(1, 0.5, "client 3", "send", "T1 to gateway", 8),
    ]
    assert repr(trace) == "<Trace: 2 events (kept), 1 messages>"


def test_digest_and_counts_do_not_depend_on_whether_events_are_kept() -> None:
    kept, hashed = Trace(), Trace(keep_events=False)
    for event in the_run():
        for trace in (kept, hashed):
            trace.record(event.time, event.actor, event.kind, event.text, event.message)
            trace.digest()
    assert hashed.events == [] and len(kept.events) == len(kept) == len(hashed)
    assert kept.digest() == hashed.digest()
    assert kept.messages() == hashed.messages() == sum(e.kind == "send" for e in kept.events)


record_fields = st.tuples(
    st.floats(0, 1e6),
    st.text(max_size=4),
    st.sampled_from(KINDS),
    st.text(max_size=8),
    st.none() | st.integers(0, 9),
)


@given(st.lists(record_fields, max_size=4), st.lists(record_fields, max_size=4))
def test_digests_are_equal_exactly_when_the_records_are(
    one: list[tuple[float, str, str, str, int | None]],
    other: list[tuple[float, str, str, str, int | None]],
) -> None:
    traces = Trace(), Trace()
    for trace, records in zip(traces, (one, other), strict=True):
        for record in records:
            trace.record(*record)
    # By repr: 0.0 and -0.0 compare equal, but they are different records.
    assert (traces[0].digest() == traces[1].digest()) == (repr(one) == repr(other))


def test_digest_cannot_be_fooled_by_moving_text_between_fields() -> None:
    one, other = Trace(), Trace()
    one.record(1.0, "log', 'sync", "sync", "x")
    other.record(1.0, "log", "sync", "sync', 'x")
    assert one.digest() != other.digest()


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(AssertionError, match="'explode' is not a kind"):
        Trace().record(0.0, "world", "explode", "")


# ── what the page is given ──────────────────────────────────────────────────────────────────────


def test_lanes_run_from_clients_to_disk_with_numbers_in_order_and_the_world_last() -> None:
    seen = ["world", "shard 10", "replica 1", "disk", "client 10", "log", "shard 2", "client 9"]
    seen += ["gateway", "audit", "coordinator", "replica 0", "client 9"]
    assert lane_order(hand_made(*((actor, "check", None) for actor in seen))) == [
        *("client 9", "client 10", "gateway", "coordinator", "shard 2", "shard 10", "log", "disk"),
        *("replica 0", "replica 1", "audit", "world"),
    ]


def test_a_receive_belongs_to_the_latest_send_of_its_message() -> None:
    arrows = match_messages(
        hand_made(
            ("client 0", "send", 1),
            ("client 0", "send", 2),
            ("gateway", "receive", 1),
            ("gateway", "receive", 1),  # delivered twice
            ("client 0", "send", 2),  # sent again, the first was lost
            ("gateway", "receive", 2),
            ("gateway", "receive", 99),  # from before the trace began
            ("client 0", "send", None),
            ("client 0", "send", 3),
        )
    )
    assert arrows.arrived == [(0, 2), (0, 3), (4, 5)]
    assert arrows.lost == [1, 8]


def test_a_life_ends_by_stop_kill_crash_or_the_next_start_or_not_at_all() -> None:
    events = hand_made(
        ("log", "start", None),
        ("shard 0", "start", None),
        ("shard 0", "kill", None),
        ("shard 0", "stop", None),  # after the kill: there is no life left to end
        ("shard 0", "start", None),
        ("shard 0", "start", None),
        ("shard 0", "stop", None),
        ("world", "crash", None),
    )
    assert generations(events) == [
        Generation("log", 1, 0, 7, None),
        Generation("shard 0", 1, 1, 2, "kill"),
        Generation("shard 0", 2, 4, 5, None),
        Generation("shard 0", 3, 5, 6, "stop"),
    ]


def test_page_carries_every_event_actor_kind_and_arrow() -> None:
    events = the_run()
    data = embedded(render_timeline(events, "run", FACTS, ANOMALIES))
    assert [
        Event(number, time, data["actors"][actor], data["kinds"][kind], text, message)
        for number, time, actor, kind, text, message in zip(
            *(data[column] for column in ("number", "time", "actor", "kind", "text", "message")),
            strict=True,
        )
    ] == events
    arrows = match_messages(events)
    assert [tuple(pair) for pair in data["arrows"]] == arrows.arrived and len(arrows.arrived) > 100
    assert data["lost"] == arrows.lost != []
    assert len(data["lives"]) == len(generations(events)) > 8
    assert tuple(data["kinds"]) == KINDS


def test_page_is_the_same_each_time_and_is_what_is_written(tmp_path: Path) -> None:
    page = render_timeline(the_run(), "run", FACTS, ANOMALIES)
    assert page == render_timeline(the_run(), "run", FACTS, ANOMALIES)
    target = tmp_path / "failures" / "seed-424242.html"
    write_timeline(target, the_run(), "run", FACTS, ANOMALIES)
    assert target.read_bytes() == page.encode()


def test_head_shows_title_facts_result_replay_counts_and_anomalies() -> None:
    events = the_run()
    head, _, _ = render_timeline(events, "ring", FACTS, ANOMALIES).partition("</header>")
    plain = html.unescape(re.sub(r"<style>.*</style>|<[^>]*>", "", head, flags=re.DOTALL))
    for shown in ("ring", *FACTS, *FACTS.values(), f"{len(events):,} events", "40 transactions"):
        if shown != "result":  # stands as the badge, without its name
            assert shown in plain
    for anomaly in ANOMALIES:
        assert anomaly in plain
    assert 'class="verdict bad">✗ 2 anomalies<' in head


def test_a_run_without_anomalies_says_so_in_colour_and_sign() -> None:
    page = render_timeline([], "nothing", {}, [])
    assert 'class="verdict good">✓ no anomaly<' in page
    assert 'class="anomalies"' not in page and 'id="copy"' not in page


def test_transactions_of_an_anomaly_can_be_picked_alone_and_together() -> None:
    page = render_timeline([], "run", {}, ANOMALIES)
    assert re.findall(r'data-pick="([0-9,]+)"', page) == ["3", "7", "3", "3", "7", "3,7", "9"]


# ── nothing becomes markup ──────────────────────────────────────────────────────────────────────


class Tags(HTMLParser):
    """The elements of a page with their attributes, apart from the buttons in anomalies."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if "data-pick" not in dict(attrs):
            self.found.append((tag, tuple(attrs)))


def page_that_says(text: str) -> str:
    facts = {f"the {text}": text, "replay": text, "result": text}
    return render_timeline([Event(0, 0.0, text, "fault", text)], text, facts, [text])


SILENT_PAGE = Tags(page_that_says(""))


@given(st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=()), max_size=30))
def test_no_text_can_leave_its_place_in_the_page(text: str) -> None:
    page = page_that_says(text)
    assert Tags(page).found == SILENT_PAGE.found
    data = embedded(page)
    assert data["text"] == data["actors"] == [text]


def test_placeholders_in_values_stay_text() -> None:
    page = render_timeline([], "{{trace}}", {"{{title}}": "{{nobody}}"}, ["{{script}}"])
    assert "<h1>{{trace}}</h1>" in page and "<dt>{{title}}</dt><dd>{{nobody}}</dd>" in page


def test_a_lone_surrogate_does_not_stop_the_picture(tmp_path: Path) -> None:
    target = tmp_path / "odd.html"
    write_timeline(target, [Event(0, 0.0, "world", "fault", "\ud800")], "\ud800", {}, ["\udfff"])
    assert "<h1>\\ud800</h1>" in target.read_text(encoding="utf-8")


def test_page_needs_nothing_from_elsewhere() -> None:
    page = render_timeline(the_run(), "run", FACTS, ANOMALIES)
    assert "default-src 'none'" in page
    assert re.findall(r"https?://|src=|href=|@import|url\(|fetch\(|{{", page) == []


def test_every_kind_has_a_shape_and_a_colour_in_light_and_dark() -> None:
    style = TEMPLATE.read_text(encoding="utf-8")
    script = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    shapes = re.findall(r"^  ([a-z]+): \[.*\],$", script, flags=re.MULTILINE)
    assert sorted(shapes) == sorted(KINDS)
    for kind in KINDS:
        assert len(re.findall(rf"--{kind}: #", style)) == 2, kind
    for path in (TEMPLATE, *SCRIPTS):
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 100


def test_what_matters_most_differs_in_shape_and_in_colour() -> None:
    style = TEMPLATE.read_text(encoding="utf-8")
    script = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    loud = ("conflict", "fault", "kill", "crash", "sync", "anomaly")
    for theme in (0, 1):
        assert len({re.findall(rf"--{kind}: (#\w+)", style)[theme] for kind in loud}) == len(loud)
    outlines = {re.findall(rf"^  {kind}: \[([^,]+),", script, re.MULTILINE)[0] for kind in loud}
    assert len(outlines) == len(loud)


# ── in a real browser ───────────────────────────────────────────────────────────────────────────


def drawn_by_chromium(page: Path, place: str, profile: Path) -> dict[str, str]:
    """What the page says about itself after it has drawn: the data attributes of its body."""
    chromium = shutil.which("chromium")
    assert chromium is not None
    flags = (
        "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
    )
    answer = subprocess.run(
        [
            chromium,
            *(f"--{flag}" for flag in flags.split()),
            *("--disable-component-update", "--disable-sync", f"--user-data-dir={profile}"),
            *("--window-size=1400,900", "--dump-dom", f"{page.as_uri()}#{place}"),
        ],
        capture_output=True,
        check=True,
        timeout=240,
    )
    found = re.search(r"<body ([^>]*)>", answer.stdout.decode())
    assert found is not None, "the page set nothing on its body"
    return dict(re.findall(r'data-([a-z]+)="([^"]*)"', found[1]))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not on PATH")
def test_chromium_draws_all_events_and_arrows_and_can_narrow_them_down(tmp_path: Path) -> None:
    events = the_run()
    for text in NASTY:
        events.append(Event(len(events), events[-1].time, "world", "fault", text))
    page = tmp_path / "timeline.html"
    write_timeline(page, events, NASTY[0], FACTS, [*ANOMALIES, *NASTY])

    whole = drawn_by_chromium(page, "zoom=fit", tmp_path / "profile")
    assert "error" not in whole
    assert int(whole["events"]) == int(whole["drawn"]) == len(events)
    assert int(whole["arrows"]) == len(match_messages(events).arrived)

    of_transaction_3 = sum(bool(re.search(r"\bT3\b", event.text)) for event in events)
    one = drawn_by_chromium(page, "pick=3&only&axis=time&zoom=fit", tmp_path / "profile")
    assert "error" not in one
    assert int(one["drawn"]) == int(one["rows"]) == of_transaction_3 < len(events)
    assert 0 < int(one["arrows"]) < int(whole["arrows"])
