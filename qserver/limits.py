"""Every bound in one place, with the relations between them.

A limit that lives beside the code that it binds is found only by whoever hits it. Units come last
in a name. What an operator may change has its default here and its setting in `config`.
"""

from __future__ import annotations

# --- storage -------------------------------------------------------------------------------------

PAGE_ENTRIES_MAX = 64
"""A page of the B+tree splits when it would hold more entries than this."""

PAGE_ENTRIES_BUILT = 48
"""Entries of a page that is built in bulk or by ascending keys: dense, with room for a few more."""

PAGE_ENTRIES_MIN = 16
"""A page with fewer entries than this is merged with a neighbour."""

HISTORY_VIEWS_MAX = 1024
"""Old views kept for time travel; the oldest is dropped first."""

HISTORY_AGE_SECONDS_MAX = 3600.0
"""A view older than this is dropped even when there is room."""

# --- shards, commits and the log -----------------------------------------------------------------

SHARDS_DEFAULT = 4
"""Partitions of a new database."""

SHARDS_MAX = 64
"""Partitions that a database may have: each is a task and a mailbox, and commits may touch all."""

COMMITS_WAITING_MAX = 4096
"""Commits that may wait at the coordinator; the next is refused with `TooManyRequests`."""

ROUND_TRANSACTIONS_MAX = 512
"""Transactions that the coordinator takes from its mailbox in one round."""

ROUNDS_UNSYNCED_MAX = 64
"""Rounds that may wait for the log, beside those that it is syncing, before commits wait too."""

RETRIES_DEFAULT = 4
"""Times that a conflicting transaction is run again before it gets a turn of its own."""

RETRY_PAUSE_SECONDS_MAX = 0.005
"""The longest random pause before a transaction is run again."""

RECOVERY_PAUSE_SECONDS_MIN, RECOVERY_PAUSE_SECONDS_MAX = 0.01, 5.0
"""How long a database waits before it recovers: more after each fall, less after a long life."""

SEQUENCE_BLOCK = 128
"""Numbers of a sequence that are reserved in the log at once, or more where more are asked for;
a crash loses what is left of them."""

ROW_ID_BLOCK = 65_536
"""Row ids that are reserved at once, for tables without a primary key: nobody sees their gaps."""

# --- statements ----------------------------------------------------------------------------------

STATEMENT_MEMORY_BYTES_MAX = 256 * 1024 * 1024
"""Intermediate and resulting rows that one statement may hold at once."""

STATEMENT_BYTES_MAX = 4 * 1024 * 1024
"""UTF-8 bytes of a statement's text."""

STATEMENT_TOKENS_MAX = 250_000
"""Words, signs and literals of a statement, in which rows of plain values do not count: so much is
parsed in about two seconds."""

SYNTAX_DEPTH_MAX = 400
"""Nodes from the root of a statement's tree to a leaf: what follows it down does so by recursion.
Long lists, and chains of AND or OR, are not deep."""

COMMENT_DEPTH_MAX = 8
"""Levels of comments within comments: the regular expression that finds them spells out each."""

TRANSACTION_STATEMENTS_MAX = 1000
"""Statements of one transaction request."""

PLANS_KEPT_MAX = 2048
"""Shapes of statements whose plans a database keeps; the one unused for longest goes first."""

PLANS_OF_SHAPE_MAX = 32
"""Plans of one shape that differ by literals on which a plan depends."""

# --- definitions ---------------------------------------------------------------------------------

IDENTIFIER_BYTES_MAX = 63
"""UTF-8 bytes of a name, as in PostgreSQL."""

COLUMNS_MAX = 1600
"""Columns of a table, as in PostgreSQL."""

INDEX_COLUMNS_MAX = 32
"""Columns of a key or an index, as in PostgreSQL."""

# --- values --------------------------------------------------------------------------------------

NUMERIC_PRECISION_MAX = 1000
"""Digits that a NUMERIC(precision, scale) may declare."""

NUMERIC_SCALE_MAX = 1000
"""Digits after the point that a NUMERIC(precision, scale) may declare; as many before it, as
negative scale."""

NUMERIC_INTEGER_DIGITS_MAX = 131_072
"""Digits before the decimal point of any NUMERIC."""

NUMERIC_FRACTION_DIGITS_MAX = 16_383
"""Digits after the decimal point of any NUMERIC."""

NUMERIC_DIGITS_MAX = NUMERIC_INTEGER_DIGITS_MAX + NUMERIC_FRACTION_DIGITS_MAX
"""Digits of any NUMERIC: exact arithmetic on one operand needs no more precision than this."""

VARCHAR_LENGTH_MAX = 10_485_760
"""Characters that a VARCHAR(n) or CHAR(n) may declare, as in PostgreSQL."""

ARRAY_DIMENSIONS_MAX = 6
"""Dimensions of an array, as in PostgreSQL."""

ARRAY_ELEMENTS_MAX = 2**24
"""Elements of an array that a function makes at once; PostgreSQL allows eight times as many."""

JSON_DEPTH_MAX = 300
"""Levels of arrays and objects in a JSON value: functions on it follow them by recursion."""

SECOND_DIGITS_MAX = 6
"""Digits of a second after the point: microseconds."""

TEXT_RESULT_LENGTH_MAX = 1 << 26
"""Characters of a text that a function makes longer than its arguments, such as `repeat`."""

YEAR_MIN, YEAR_MAX = 1, 9999
"""Years of a DATE or TIMESTAMP: those of Python's `datetime`. PostgreSQL goes further."""

# --- how they relate -----------------------------------------------------------------------------

assert PAGE_ENTRIES_MIN <= PAGE_ENTRIES_BUILT <= PAGE_ENTRIES_MAX
assert 2 <= PAGE_ENTRIES_MIN <= PAGE_ENTRIES_MAX // 2, (
    "both halves of a split page are large enough"
)
assert 1 <= SHARDS_DEFAULT <= SHARDS_MAX
assert ROUND_TRANSACTIONS_MAX <= COMMITS_WAITING_MAX, "one round never waits for more than can wait"
assert ROUNDS_UNSYNCED_MAX >= 2, "one round is prepared while another is synced"
assert RETRIES_DEFAULT >= 1
assert 0 < RETRY_PAUSE_SECONDS_MAX < 1
assert HISTORY_VIEWS_MAX >= 1 and HISTORY_AGE_SECONDS_MAX > 0
assert SEQUENCE_BLOCK >= 1 and ROW_ID_BLOCK >= SEQUENCE_BLOCK
assert PLANS_KEPT_MAX >= PLANS_OF_SHAPE_MAX >= 1
assert INDEX_COLUMNS_MAX <= COLUMNS_MAX
assert NUMERIC_PRECISION_MAX <= NUMERIC_DIGITS_MAX
assert NUMERIC_SCALE_MAX <= NUMERIC_FRACTION_DIGITS_MAX
