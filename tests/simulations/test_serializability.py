"""One history for each anomaly, the state at the end of a run, and how it all is reported."""

from __future__ import annotations

import pytest

from simulations.checkers.anomaly import SEVERITY, describe_list
from simulations.checkers.serializability import FINAL, check
from tests.simulations.list_histories import explained, history, kinds

# ---- one history for each anomaly ---------------------------------------------------------------

HAND_MADE = {
    "G0: the appends of two attempts stand in two orders": (
        "G0",
        """
        T0 0-9 x+1 y+1
        T1 0-9 x+2 y+2
        T2 0-9 x[1,2]
        T3 0-9 y[2,1]
        """,
    ),
    "G0: an append stands between two of another attempt": (
        "G0",
        """
        T0 0-9 x+1 x+3
        T1 0-9 x+2
        T2 0-9 x[1,2,3]
        """,
    ),
    "G-single: the second append of an attempt was lost, the first was built upon": (
        "G-single",
        """
        T0 0-9 x+1 x+3
        T1 0-9 x+2
        T2 0-9 x[1,2]
        """,
    ),
    "G1a: a failed attempt was seen": (
        "G1a",
        """
        T0 0-1 failed x+1
        T1 2-3 x[1]
        """,
    ),
    "G1b: an attempt was seen half done": (
        "G1b",
        """
        T0 0-9 x+1 x+2
        T1 0-9 x[1]
        """,
    ),
    "G1b: also where a later read sees all of it": (
        "G1b",
        """
        T0 0-9 x+1 x+2
        T1 0-9 x[1]
        T2 0-9 x[1,2]
        """,
    ),
    "G1b: an attempt was seen half done by one that appended next": (
        "G1b",
        """
        T0 0-9 x+1 x+2
        T1 0-9 x+3 x[1,3]
        """,
    ),
    "G1c: two attempts saw each other": (
        "G1c",
        """
        T0 0-9 x+1 y[2]
        T1 0-9 y+2 x[1]
        """,
    ),
    "G-single: read skew": (
        "G-single",
        """
        T0 0-9 x+1 y+1
        T1 0-9 x[1] y[]
        T2 0-9 y[1]
        """,
    ),
    "G-single: read skew, and nobody ever saw the other half": (
        "G-single",
        """
        T0 0-9 x+1 y+1
        T1 0-9 x[1] y[]
        """,
    ),
    "G-single: a lost update": (
        "G-single",
        """
        T0 0-9 x[] x+1
        T1 0-9 x[] x+2
        T2 0-9 x[1,2]
        """,
    ),
    "G2: write skew": (
        "G2",
        """
        T0 0-9 x[] y+1
        T1 0-9 y[] x+2
        """,
    ),
    "G2: write skew, seen afterwards": (
        "G2",
        """
        T0 0-9 x[] y+1
        T1 0-9 y[] x+2
        T2 0-9 x[2] y[1]
        """,
    ),
    "G2: two updates of one value, of which nobody saw the outcome": (
        "G2",
        """
        T0 0-9 x[] x+1
        T1 0-9 x[] x+2
        """,
    ),
    "G2: a long fork, where two readers disagree about who came first": (
        "G2",
        """
        T0 0-9 x+1
        T1 0-9 y+2
        T2 0-9 x[1] y[]
        T3 0-9 x[] y[2]
        """,
    ),
    "G0-realtime: a later append stands before an earlier one": (
        "G0-realtime",
        """
        T0 0-1 x+1
        T1 2-9 x+2
        T2 0-9 x[2,1]
        """,
    ),
    "G1c-realtime: a read saw what was not yet asked for": (
        "G1c-realtime",
        """
        T0 0-1 x[1]
        T1 2-3 x+1
        """,
    ),
    "G-single-realtime: a stale read": (
        "G-single-realtime",
        """
        T0 0-1 x+1
        T1 2-3 x[]
        T2 4-5 x[1]
        """,
    ),
    "G-single-realtime: a lost append, which no read ever shows": (
        "G-single-realtime",
        """
        T0 0-1 x+1
        T1 2-3 x[]
        """,
    ),
    "G-single-realtime: a lost append behind one that was kept": (
        "G-single-realtime",
        """
        T0 0-1 x+1
        T1 2-3 x+2
        T2 4-5 x[1]
        """,
    ),
    "G-single-realtime: a lost append before one that was kept": (
        "G-single-realtime",
        """
        T0 0-1 x+1
        T1 2-3 x+2
        T2 4-5 x[2]
        """,
    ),
    "G-single-realtime: a lost append that only the next writer could have seen": (
        "G-single-realtime",
        """
        T0 0-1 x+1
        T1 2-3 x+2 x[2]
        """,
    ),
    "G-single-realtime: the lost append of an attempt that read first": (
        "G-single-realtime",
        """
        T0 0-1 x[] x+1
        T1 2-3 x[]
        """,
    ),
    "G2-realtime: two rw and the clock": (
        "G2-realtime",
        """
        T0 0-1 y+1
        T1 2-5 x[]
        T2 0-5 x+1 y[]
        """,
    ),
    "incompatible-order: two reads that no list explains": (
        "incompatible-order",
        """
        T0 0-9 x+1
        T1 0-9 x+2
        T2 0-9 x[1,2]
        T3 0-9 x[2]
        """,
    ),
    "incompatible-order: nothing else is made of a value without a place": (
        "incompatible-order",
        """
        T0 0-9 x+1
        T1 0-9 x+2 y+5
        T2 0-9 x[1] y[5]
        T3 0-9 x[2]
        """,
    ),
    "incompatible-order: an attempt's own appends the wrong way round": (
        "incompatible-order",
        """
        T0 0-9 x+1 x+2
        T1 0-9 x[2,1]
        """,
    ),
    "garbage: a value from nowhere": (
        "garbage",
        """
        T0 0-9 x+1
        T1 0-9 x[1,7]
        """,
    ),
    "duplicate: an append was applied twice": (
        "duplicate",
        """
        T0 0-? x+1
        T1 0-9 x+2
        T2 0-9 x[1,2,1]
        """,
    ),
    "internal: an attempt does not see its own append": (
        "internal",
        """
        T0 0-9 x+1 x[]
        """,
    ),
    "internal: an attempt sees its own append before it made it": (
        "internal",
        """
        T0 0-9 x[1] x+1
        """,
    ),
    "internal: a read is not repeatable, where its own append should be the only news": (
        "internal",
        """
        T0 0-9 x[] x+1 x[]
        """,
    ),
    "versions-not-monotone: the highest version counts, not the first": (
        "versions-not-monotone",
        """
        T0 0-1 v5 x[]
        T1 0-2 v9 x[]
        T2 3-4 v7 x[]
        """,
    ),
    "versions-not-monotone: the highest version counts, not the last": (
        "versions-not-monotone",
        """
        T0 0-1 v9 x[]
        T1 0-2 v5 x[]
        T2 3-4 v7 x[]
        """,
    ),
    "versions-not-monotone: the clock says later, the version says earlier": (
        "versions-not-monotone",
        """
        T0 0-1 v8 x+1
        T1 2-3 v7 x[1]
        """,
    ),
    "G-single: an UNKNOWN attempt was seen, but only half of it": (
        "G-single",
        """
        T0 0-? x+1 y+1
        T1 1-2 x[1] y[]
        """,
    ),
    "G-single-realtime: an UNKNOWN attempt was seen, then it was gone": (
        "G-single-realtime",
        """
        T0 0-? x+1
        T1 1-2 x[1]
        T2 3-4 x[]
        """,
    ),
    "G1c-realtime: an UNKNOWN attempt was seen before it was invoked": (
        "G1c-realtime",
        """
        T0 5-? x+1
        T1 1-2 x[1]
        """,
    ),
}


@pytest.mark.parametrize("claim", HAND_MADE)
def test_exactly_this_anomaly_is_found(claim: str) -> None:
    kind, text = HAND_MADE[claim]
    assert kinds(check(history(text))) == [kind]
    assert claim.startswith(f"{kind}: ")


def test_there_is_a_history_for_each_kind_that_this_checker_reports() -> None:
    elsewhere = {"lost-write", "lost-update", "future-read", "stale-read", "disagreement"}
    assert {kind for kind, _ in HAND_MADE.values()} | elsewhere == set(SEVERITY)


def test_a_read_that_changes_inside_an_attempt_is_also_a_skew() -> None:
    found = check(history("T0 0-9 x+1\nT1 0-9 x[] x[1]"))
    assert kinds(found) == ["internal", "G-single"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("G1c-realtime", "T0 0-1 x[1,99]\nT1 2-3 x+1"),
        ("G-single-realtime", "T0 0-1 x+1\nT1 2-3 x[]\nT2 0-9 x[99,1]"),
        ("G1b", "T0 0-9 x+1 x+2\nT1 0-9 x[1,99]"),
    ],
)
def test_a_value_from_nowhere_does_not_hide_what_lies_around_it(kind: str, text: str) -> None:
    assert kinds(check(history(text))) == ["garbage", kind]


@pytest.mark.parametrize(
    "text",
    [
        "T0 0-1 x[]",
        "T0 0-1 x+1 x[1] x+2 x[1,2]\nT1 2-3 x[1,2] x+3 x[1,2,3]",
        "T0 0-9 x+1\nT1 0-9 x[]\nT2 0-9 x[1]",  # at once: either order
        "T0 0-5 x+1\nT1 5-9 x[]",  # at the same position is not before
        "T0 0-? x+1\nT1 1-2 x[]",  # an UNKNOWN attempt that was never seen
        "T0 0-? x+1\nT1 1-2 x[]\nT2 3-4 x[1]",  # it may take effect much later
        "T0 0-? x+1 y+1\nT1 1-2 x[]\nT2 3-4 y[1]\nT3 5-6 x[1]",
        "T0 0-1 failed x+1\nT1 2-3 x[]",
        "T0 0-1 failed x[7] x+1\nT1 2-3 x[]",  # nobody believes what a failed attempt read
        "T0 0-1 v7 x+1\nT1 2-3 v7 x[1]\nT2 2-9 v9 y+1\nT3 4-5 v7 y[]",
        "T0 0-9 x[] x+1\nT1 0-9 x[]\nT2 0-9 y+1",
    ],
)
def test_nothing_is_found_where_an_order_explains_it_all(text: str) -> None:
    attempts = history(text)
    assert explained(attempts)
    assert check(attempts) == []


# ---- the state at the end -----------------------------------------------------------------------


def test_an_append_that_is_missing_in_the_end_is_a_lost_write() -> None:
    attempts = history("T0 0-1 x+1\nT1 0-1 y+2\nT2 2-3 x[1]")
    assert check(attempts, {"x": (1,), "y": (2,)}) == []
    assert kinds(check(attempts, {"x": (1,)})) == ["lost-write"]
    assert kinds(check(attempts, {"x": (), "y": [2]})) == ["lost-write"]
    [anomaly] = check(attempts, {"y": (2,)})
    assert str(anomaly) == "lost-write: T0 appended 1 to key x, in the end it holds []"


def test_the_end_owes_nothing_to_attempts_that_failed_or_were_not_seen() -> None:
    attempts = history("T0 0-1 failed x+1\nT1 0-? x+2\nT2 2-3 x[]")
    assert check(attempts, {}) == []
    assert check(attempts, {"x": (2,)}) == []
    assert kinds(check(attempts, {"x": (1,)})) == ["G1a"]


def test_an_unknown_attempt_that_was_seen_must_last_until_the_end() -> None:
    [anomaly] = check(history("T0 0-? x+1\nT1 1-2 x[1]"), {})
    assert anomaly.kind == "G-single-realtime"
    assert {step.source for step in anomaly.cycle} == {0, 1, FINAL}


def test_half_of_an_unknown_attempt_in_the_end_is_a_skew() -> None:
    attempts = history("T0 0-? x+1 y+1\nT1 1-2 y[]")
    assert kinds(check(attempts, {"x": (1,)})) == ["G-single"]
    assert check(attempts, {"x": (1,), "y": (1,)}) == []


def test_what_is_in_the_end_must_have_come_from_somewhere() -> None:
    assert kinds(check([], {"x": (1,)})) == ["garbage"]
    assert kinds(check(history("T0 0-1 x+1"), {"x": (1, 1)})) == ["duplicate"]
    assert kinds(check(history("T0 0-1 x+1"), {"x": (1,), "other": (5,)})) == ["garbage"]


def test_the_end_must_agree_with_what_was_read() -> None:
    attempts = history("T0 0-9 x+1\nT1 0-9 x+2\nT2 0-9 x[1,2]")
    assert kinds(check(attempts, {"x": (2, 1)})) == ["incompatible-order"]


# ---- what is reported ---------------------------------------------------------------------------


def test_a_circle_is_explained_on_one_line() -> None:
    [stale] = check(history("T7 0-1 x+3\nT3 2-3 x[1,2]\nT0 0-1 x+1\nT1 0-1 x+2"))
    assert stale.explanation == "T3 -rw(key x: read [1 2], T7 appended 3)-> T7 -realtime-> T3"
    assert [(step.source, step.kind, step.target) for step in stale.cycle] == [
        (3, "rw", 7),
        (7, "realtime", 3),
    ]
    [seen] = check(history("T0 0-9 x+1 y[2]\nT1 0-9 y+2 x[1]"))
    assert str(seen) == (
        "G1c: T0 -wr(key x: appended 1, T1 read [1])-> T1 -wr(key y: appended 2, T0 read [2])-> T0"
    )
    [swapped] = check(history("T0 0-9 x+1 y+1\nT1 0-9 x+2 y+2\nT2 0-9 x[1,2] y[2,1]"))
    assert swapped.explanation == (
        "T0 -ww(key x: appended 1, then T1 2)-> T1 -ww(key y: appended 2, then T0 1)-> T0"
    )


def test_versions_that_run_backwards_are_explained_on_one_line() -> None:
    [anomaly] = check(history("T0 0-1 v8 x[]\nT1 2-3 v7 x[]\nT2 0-4 v1 x[]"))
    assert anomaly.explanation == "T0 -realtime-> T1 -version(version 7, T0 version 8)-> T0"


def test_a_long_list_is_shown_by_its_ends() -> None:
    assert describe_list(range(12)) == "[0 1 2 3 4 5 6 7 8 9 10 11]"
    assert describe_list(range(13)) == "[0 1 … 3 4 5 6 7 8 9 10 11 12]"


def test_the_worst_is_reported_first() -> None:
    found = check(
        history(
            """
            T0 0-1 v9 a+1
            T1 2-3 v8 a[]
            T2 0-9 failed b+1
            T3 0-9 b[1] c[9]
            T4 0-9 d[] e+1
            T5 0-9 e[] d+1
            """
        ),
        {"b": (1,), "c": (9,), "d": (1,), "e": (1,)},
    )
    assert kinds(found) == [
        "garbage",
        "lost-write",
        "G1a",
        "G2",
        "G-single-realtime",
        "versions-not-monotone",
    ]


def test_a_circle_is_named_by_the_fewest_kinds_of_edges_that_close_it() -> None:
    # T0 and T1 close a circle of ww; a stale reader ties both into a larger one.
    found = check(
        history(
            """
            T0 0-5 x+1 y+1 z+1
            T1 0-5 x+2 y+2
            T2 0-5 x[1,2] y[2,1]
            T3 6-9 z[]
            """
        )
    )
    assert kinds(found) == ["G0"]


def test_a_circle_is_not_hidden_by_another_that_needs_other_edges() -> None:
    found = check(
        history(
            """
            T0 0-5 x+1 y[2] z+1
            T1 0-5 y+2 x[1]
            T2 6-9 z+2
            T3 0-9 z[2,1]
            """
        )
    )
    assert kinds(found) == ["G1c", "G0-realtime"]


def test_independent_circles_are_reported_each() -> None:
    one = "T0 0-9 a[] b+1\nT1 0-9 b[] a+2\n"
    other = "T2 0-9 c[] d+1\nT3 0-9 d[] c+2\nT4 0-9 e+1 f[2]\nT5 0-9 f+2 e[1]"
    found = check(history(one + other))
    assert [(each.kind, each.cycle[0].source) for each in found] == [
        ("G1c", 4),
        ("G2", 0),
        ("G2", 2),
    ]


def test_a_circle_does_not_lead_through_bystanders() -> None:
    bystanders = [f"T{n} {2 * n}-{2 * n + 1} y+{n}" for n in range(1, 500)]
    [anomaly] = check(history("\n".join(["T0 0-1 x+1", *bystanders, "T999 2000-2001 x[]"])))
    assert anomaly.explanation == ("T999 -rw(key x: read [], T0 appended 1)-> T0 -realtime-> T999")
