"""Statements with long lists, plain and less so."""

from __future__ import annotations

from hypothesis import strategies as st

PLAIN = (
    *("1", "007", "2147483647", "2147483648", "9223372036854775807", "12345678901"),
    *("1.5", "0.10", "'x'", "'it''s'", "''", "'1'", "'2024-02-29'", "'%x_'", "?"),
)
ODD = (
    *("NULL", "-1", "- 1.5", "+2", "1e3", ".5", "5.", "2147483648", "99999999999999999999"),
    *("'2'::text", "1::bigint", "TRUE", "a", "a + 1", "E'x'", "$$x$$", "'a'\n'b'", "B'1'"),
    *("'today'", "'nope'", "1 /* , */", "(1)", "1x", "$1", "[1]", "'open", "1.5.5", "DEFAULT"),
)
LENGTHS = (1, 2, 63, 64, 65, 140)
TEMPLATES = (
    "SELECT a FROM t WHERE a IN ({})",
    "SELECT a FROM t WHERE s NOT IN ({}) AND b = 'z' OR n IN (1, 2)",
    "SELECT a, d IN ({}) FROM t WHERE a IN ({})",
    "SELECT a FROM t WHERE n = ANY (ARRAY[{}]) OR b <> ALL (ARRAY[{}])",
    "SELECT a FROM t WHERE s LIKE ANY (ARRAY[{}]) OR b > ALL (ARRAY[{}])",
    "SELECT ARRAY[{}], ARRAY[{}]::text[], ARRAY[[{}], [{}]] FROM t",
    "SELECT ARRAY[{}]::smallint[], cardinality(ARRAY[{}]) FROM t WHERE v && ARRAY[{}]",
    "SELECT CASE WHEN a = 1 THEN s IN ({}) WHEN b IN ({}) THEN NULL END FROM t",
    "SELECT b IN ({}), count(*) FROM t GROUP BY b IN ({})",
    "SELECT a FROM t WHERE (a, b) IN ({}) OR position('a' IN ({})) = 1",
    "SELECT 'x' IN ({}), 1 IN ({}), (SELECT max(a) IN ({}) FROM t)",
    "UPDATE t SET b = b WHERE a IN ({})",
    "EXPLAIN SELECT a FROM t WHERE a IN ({})",
    "CREATE TABLE u (a INT CHECK (a IN ({})))",
    "SELECT a FROM t WHERE a IN ({}) nonsense here IN ({})",
)


def items(item: str, count: int) -> str:
    return ", ".join([item] * count)


@st.composite
def lists(draw: st.DrawFn) -> str:
    """Mostly stretches of equal items; also one odd item somewhere."""
    stretches = []
    for _ in range(draw(st.integers(1, 3))):
        item = draw(st.sampled_from(PLAIN[:-1]))
        stretches.append((item, draw(st.sampled_from(LENGTHS))))
    if draw(st.booleans()):
        stretches.insert(draw(st.integers(0, len(stretches))), (draw(st.sampled_from(ODD)), 1))
    comma = draw(st.sampled_from((",", ", ", " ,\n")))
    return comma.join(comma.join([item] * count) for item, count in stretches)


@st.composite
def parameters(draw: st.DrawFn) -> str:
    """Parameters in a row, mostly consecutive."""
    first, count = draw(st.integers(1, 3)), draw(st.sampled_from(LENGTHS))
    numbers = [f"${number}" for number in range(first, first + count)]
    if draw(st.integers(0, 3)) == 0:
        numbers.insert(draw(st.integers(0, count)), draw(st.sampled_from(("$2", "1", "$40000"))))
    return ", ".join(numbers)


@st.composite
def texts(draw: st.DrawFn, templates: tuple[str, ...] = TEMPLATES) -> str:
    parts = draw(st.sampled_from(templates)).split("{}")
    sort = draw(st.sampled_from((lists(), lists(), parameters(), st.just(items("?", 70)))))
    return parts[0] + "".join(draw(sort) + part for part in parts[1:])


ROWS = (
    "INSERT INTO w (k, n) VALUES {}",
    "INSERT INTO w VALUES {} ON CONFLICT DO NOTHING",
    "INSERT INTO w (k, s, c) VALUES {} RETURNING k, s, c, 'x' IN ('x', 'y')",
    "INSERT INTO w (k, d) VALUES {} RETURNING k + $1",
    "WITH x AS (SELECT $3::text) INSERT INTO w (k, s) VALUES {} RETURNING (TABLE x)",
    "INSERT INTO w (k, s) OVERRIDING USER VALUE VALUES {}",
    "SELECT * FROM (VALUES {}) AS v",
    "INSERT INTO w (k, nothing) VALUES {}",
    "INSERT INTO w (k) VALUES {}, (7)",
    "VALUES {} ORDER BY 1",
)


@st.composite
def parameter_rows(draw: st.DrawFn) -> str:
    """Rows of VALUES that are parameters, now and then with something else among them."""
    template = draw(st.sampled_from(ROWS))
    width, count = draw(st.integers(1, 3)), draw(st.sampled_from((1, 2, 33, 66, 120)))
    numbers = range(draw(st.sampled_from((1, 1, 2))), 1000)
    rows = [[f"${numbers[at * width + n]}" for n in range(width)] for at in range(count)]
    if "$" not in template and draw(st.booleans()):
        rows = [["?"] * width for _ in range(count)]
    if draw(st.integers(0, 3)) == 0:
        odd = draw(
            st.sampled_from((["$3"], ["1"], ["$1", "$2"], ["NULL"], ["DEFAULT"], ["$40000"]))
        )
        rows[draw(st.integers(0, count - 1))][-1:] = odd
    comma = draw(st.sampled_from((",", ", ", " ,\n")))
    return template.format(comma.join(f"({comma.join(row)} )" for row in rows))
