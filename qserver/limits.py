"""The limits that users and operators meet in one place, with the relations between them.

A limit beside the code that it binds is found only by hitting it. Units come last in a name. A
limit that an operator may change has its default here and its setting in `config`.
"""

from __future__ import annotations

# --- storage -------------------------------------------------------------------------------------

PAGE_ENTRIES_MAX = 64
"""A page of the B+tree splits when it would hold more entries than this."""

PAGE_ENTRIES_BUILT = 48
"""Entries of a page that is built in bulk or by ascending keys: dense, with room for a few more."""

PAGE_ENTRIES_MIN = 16
"""A page with fewer entries than this is merged with a neighbour."""

RANGE_ENTRIES_MAX = 50_000
"""A range of a tree is cut when it would hold more entries than this."""

RANGE_ENTRIES_MIN = 5_000
"""Neighbouring ranges that hold no more entries than this together become one."""

VECTOR_ROWS_MIN = 1024
"""Rows of a table, or of a part of a page, that are worth computing with as vectors; fewer are read
one by one."""

# --- shards, commits and the log -----------------------------------------------------------------

SHARDS_DEFAULT = 4
"""Shards of a database."""

SHARDS_MAX = 64
"""Shards that a database may have: each is a task and a mailbox, and commits may touch all."""

COMMITS_WAITING_MAX = 4096
"""Commits that may wait at the coordinator; the next is refused with `TooManyRequests`."""

ROUND_TRANSACTIONS_MAX = 512
"""Transactions that the coordinator takes from its mailbox in one round."""

ROUNDS_UNSYNCED_MAX = 64
"""Rounds that may wait for the log, beside those that it is syncing, before commits wait too."""

RETRIES_DEFAULT = 4
"""Times that a conflicting transaction is run again before it gets an exclusive commit."""

RETRY_PAUSE_SECONDS_MAX = 0.005
"""The longest random pause before a transaction is run again."""

RECOVERY_PAUSE_SECONDS_MIN, RECOVERY_PAUSE_SECONDS_MAX = 0.01, 5.0
"""How long a database waits before it recovers: more after each restart, less after a long life."""

SEQUENCE_BLOCK = 128
"""Numbers of a sequence that are reserved in the log at once, or more where more are asked for;
a crash loses what is left of them."""

ROW_ID_BLOCK = 65_536
"""Row ids that are reserved at once, for tables without a primary key: nobody sees their gaps."""

ANSWER_STORED_SECONDS = 86_400.0
"""How long the answer to a request with an Idempotency-Key is kept. Then the key is free again."""

ANSWER_STORED_BYTES_MAX = 256 * 1024
"""The longest answer that is kept; a longer one ends its request, with nothing applied."""

IDEMPOTENCY_KEY_BYTES_MAX = 255
"""The longest Idempotency-Key; a longer one is refused."""

ANSWERS_SWEPT_SECONDS = 600.0
"""How often kept answers that have expired are deleted."""

ANSWERS_SWEPT_AT_ONCE = 256
"""Kept answers that one step of that looks at, before others run."""

CHECKPOINT_LOG_BYTES = 32 * 1024 * 1024
"""A checkpoint begins when so much log is behind the last one: what a crash makes us read again."""

CHECKPOINT_SECONDS = 300.0
"""A checkpoint begins so long after the last one, if anything was committed since."""

CHECKPOINT_PAGES_AT_ONCE = 64
"""Pages that a checkpoint saves, or forgets, with one call: commits wait for no more than that."""

CHECKPOINT_STEP_BYTES = 64 * 1024
"""Bytes of pages after which a checkpoint saves what it has, however few pages that is."""

CHECKPOINT_TIME_SHARE = 0.2
"""What a checkpoint takes of the time beside clients, at most; more as the log behind it grows."""

CHECKPOINT_PAUSE_SECONDS_MAX = 0.05
"""The longest pause of a checkpoint between two of its steps."""

HISTORY_SECONDS_MAX = 30 * 24 * 3600.0
"""The longest history that a database may have."""

HISTORY_VERSIONS_DEFAULT, HISTORY_VERSIONS_MAX = 50, 1000
"""How many versions of a database are listed at once."""

HISTORY_CHANGES_DEFAULT, HISTORY_CHANGES_MAX = 1000, 10_000
"""How many changes between two versions are listed at once."""

HISTORY_SNAPSHOTS_MAX = 4
"""Older versions of a database that stay in memory for the next reader."""

CHECKPOINT_RETRY_SECONDS = 10.0
"""How long a checkpoint that failed is not tried again; commits go on meanwhile."""

# --- statements ----------------------------------------------------------------------------------

STATEMENT_MEMORY_BYTES_MAX = 256 * 1024 * 1024
"""Intermediate and resulting rows that one statement may hold at once."""

MEMORY_BYTES_MAX = 1024 * 1024 * 1024
"""What all statements that run, and answers that are not read yet, may hold together; the one that
would need more ends with 53200."""

CACHE_BYTES_DEFAULT = 256 * 1024 * 1024
"""What the pages of a log may take in memory where nobody says how much, as in a check."""

CACHE_BYTES_MIN = 16 * 1024 * 1024
"""The least memory for pages that a service begins with."""

STEPS_AT_ONCE_MAX = 100_000
"""Steps of about a microsecond that one call of a function may take: nobody else runs meanwhile. A
call that would take more is refused with 54000."""

TRANSACTION_MEMORY_BYTES_MAX, TRANSACTION_LONG_BYTES_MAX = 1024 * 1024 * 1024, 256 * 1024 * 1024
"""Rows that the statements of one transaction may write before it commits; and how much of that may
be texts and other long values, in rows and in indexes: the log has them in one record."""

OPEN_TRANSACTION_BYTES_MAX = 256 * 1024 * 1024
"""What an open transaction may hold (past it, it is gone), and a session in temporary tables."""

BULK_BYTES_MAX, BULK_ROW_BYTES_MAX, BULK_COLUMNS_MAX = 1024 * 1024 * 1024, 8 * 1024 * 1024, 16_384
"""Of rows in bulk: bytes of a body, of one row; cells of a CSV header, or names of a long row."""

BULK_SECONDS_MAX = 600.0
"""How long rows in bulk may take to arrive; the commit comes after."""

SAVEPOINTS_MAX = 1000
"""Savepoints of an open transaction at once; 54000 past it."""

NAMED_STATEMENTS_MAX, PORTALS_MAX, SETTINGS_LENGTH_MAX = 1000, 100, 64 * 1024
"""Prepared statements of a session; its portals, of which cursors are some; and characters of the
names and values that it has set. What would be more is refused with 54000."""

STATEMENT_BYTES_MAX = 4 * 1024 * 1024
"""UTF-8 bytes of a statement's text."""

STATEMENT_TOKENS_MAX = 250_000
"""Words, signs and literals of a statement, in which rows of plain values do not count: so much is
parsed in about two seconds."""

SYNTAX_DEPTH_MAX = 400
"""Nodes from the root of a statement's tree to a leaf: what follows it down does so by recursion.
Long lists, and chains of AND or OR, are not deep."""

EXPRESSION_DEPTH_MAX = 250
"""Expressions that stand inside each other; chains (a + b + c …) count once. 54001 past it."""

COPIED_NODES_MAX = 20_000
"""Nodes of expressions that a statement means more than once and says once: BETWEEN compares its
operand twice, CASE x WHEN with each value. Columns and literals do not count. Copies inside of
copies grow with each level; 54001 past it."""

GROUPING_SETS_MAX, CUBE_ELEMENTS_MAX = 4096, 12
"""Grouping sets of a query (54001 past it), and elements of one CUBE (54011), as in PostgreSQL."""

COMMENT_DEPTH_MAX = 8
"""Levels of comments within comments: the regular expression that finds them spells out each."""

TRANSACTION_STATEMENTS_MAX = 1000
"""Statements of one transaction request."""

PLANNING_STEPS_MAX = 4096
"""Steps (words parsed, expressions bound, nodes looked at by rules) that a statement is planned in
while others wait. One that takes more is planned in a thread; see `sql/step_budget.py`."""

PLANNING_THREADS_MAX = 2
"""Statements that are planned in threads at once; others wait their turn, under their deadlines."""

SOURCES_MAX = 4096
"""Tables, subqueries, groupings and the like of one statement, those of its views included."""

SOURCE_LENGTH_MAX = 256 * 1024
"""Characters of the Python that a statement becomes: its compiler cannot be interrupted."""

TARGETS_MAX = 1664
"""Columns of a result, as in PostgreSQL."""

PLANS_KEPT_MAX = 2048
"""Fingerprints whose plans a database keeps; the one unused for longest goes first."""

PLANS_KEPT_BYTES_MAX = 32 * 1024 * 1024
"""Memory of all plans that a database keeps, about; the one unused for longest goes first."""

PLANS_OF_FINGERPRINT_MAX = 32
"""Plans of one fingerprint that differ by literals on which a plan depends."""

STATEMENTS_COUNTED_MAX, STATEMENT_TEXT_COUNTED_LENGTH_MAX = 5000, 2048
"""Statements counted for an organization, those with the most runs; characters shown of each."""

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

JSON_PATH_DEPTH_MAX = 100
"""Steps and filters of an SQL/JSON path behind and inside each other: it runs by recursion."""

SECOND_DIGITS_MAX = 6
"""Digits of a second after the point: microseconds."""

VALUE_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of a value, whether given, computed or stored; a longer one is refused with 54000."""

ROW_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of the long values of a row that is stored or answered; 54000 past it."""

TEXT_RESULT_LENGTH_MAX = 1 << 26
"""Characters of a text that a function makes longer than its arguments, whatever the setting for
`VALUE_BYTES_MAX` is."""

REGEX_MATCHES_MAX = 30_000
"""Matches of a regular expression that one call counts, replaces or splits at. As rows of
`regexp_matches` or `regexp_split_to_table` there may be more."""

REGEX_LENGTH_MAX, REGEX_DEPTH_MAX, REGEX_REPEAT_MAX = 20_000, 200, 255
"""Characters of a regular expression, groups inside each other, and the largest m of {m}, which is
PostgreSQL's; 2201B past them."""

REGEX_ATOMS_MAX, REGEX_SOURCE_LENGTH_MAX = 5000, 100_000
"""Characters and sets of a regular expression once its repetitions are written out, and its length
in Python's syntax, which compiles in a tenth of a second; 2201B past them."""

YEAR_MIN, YEAR_MAX = 1, 9999
"""Years of a DATE or TIMESTAMP: those of Python's `datetime`. PostgreSQL goes further."""

# --- live queries --------------------------------------------------------------------------------

LIVE_QUERIES_MAX = 1000
"""Live queries of an organization that are open at once; the next is refused with QS034."""

LIVE_KEYS_MAX = 1000
"""Keys of one tree that a live query watches one by one; if it reads more, it watches the tree."""

LIVE_RANGES_MAX = 64
"""Ranges of one tree that a live query watches; likewise."""
LIVE_RESULT_BYTES_MAX = 64 * 1024 * 1024
"""The result that a live query keeps, to compare the next one with it; 54000 past it. A query of
which only changed rows are looked at keeps none."""
LIVE_EVERY_MS_MIN, LIVE_EVERY_MS_MAX = 100, 60_000
"""Milliseconds between two changes that a live query reports; the least is the default."""
FEED_VERSIONS_MAX, FEED_CHANGES_MAX = 1000, 100_000
"""The newest versions that a database keeps in memory for readers of its changes, if there are any,
and changed entries of these versions together; older ones come from the log."""

FEED_LIMIT_DEFAULT, FEED_LIMIT_MAX = 1000, 10_000
"""Changes of one answer of the feed. A version is never cut, so the last may bring more."""
FEED_LOOK_MAX = 10_000
"""Versions that one answer of the feed looks at, if the filter leaves nearly everything out."""
FEED_ANSWER_BYTES_MAX = 8 * 1024 * 1024
"""An answer of the feed ends with the version that reaches so many bytes."""
FEED_WAIT_MS_MAX = 60_000
"""How long an answer of the feed may wait for the first change."""
FEED_READERS_MAX = 1000
"""Readers of changes of an organization at once; the next is refused with QS034."""
FEED_PAUSE_SECONDS, FEED_PAUSE_SECONDS_MAX, FEED_PARTS_PER_SECOND = 0.1, 2.0, 250
"""A stream of changes pauses after it has sent, longer if there are many: all send so often."""

NOTIFICATION_BYTES_MAX, NOTIFICATIONS_SENT_MAX = 7999, 5000
"""Bytes of a notification's payload, and notifications of a transaction."""
CHANNELS_MAX, ADVISORY_LOCKS_MAX = 1000, 1000
"""Channels of a listener, and advisory locks of a session; the next is refused with 54000."""
NOTIFICATIONS_QUEUED_MAX, NOTIFICATIONS_QUEUED_BYTES_MAX = 20_000, 64 * 1024 * 1024
"""Notifications that a listener has not taken, and bytes of those that wait in one database; past
these the listener with the most is ended, with QS031."""
LIVE_TESTS_MAX = 1024
"""Tests of changed keys of one tree in a round against what live queries have read. After that many
all live queries that read the tree look for themselves, each in its own time."""

# --- the service ---------------------------------------------------------------------------------

REQUEST_BODY_BYTES_MAX, BODIES_BYTES_MAX = 8 * 1024 * 1024, 256 * 1024 * 1024
"""Bytes of a request's body; and of all that are arriving, past which the next is error 53200."""

ANONYMOUS_BODY_BYTES_MAX = 16 * 1024
"""Bytes of a body where no key is asked for."""

PARAMETERS_MAX = 32_766
"""Parameters of one statement."""

ANSWER_ROWS_MAX = 100_000
"""Rows of one JSON answer; more are for a stream."""

ANSWER_BYTES_WHOLE = 1024 * 1024
"""A longer answer is sent in parts, each encoded when the one before has left."""

ANSWER_PART_BYTES = 256 * 1024
"""Such a part has about so many bytes, or one row."""

COMPRESSED_BYTES_MIN = 4096
"""An answer of more bytes is compressed for a client that accepts it."""

COMPRESSED_AT_ONCE_BYTES = 64 * 1024
"""Bytes that are compressed without letting others run: half a millisecond, about."""

STATEMENT_SECONDS, STATEMENT_SECONDS_MAX, VERSION_WAIT_SECONDS = 30.0, 86_400.0, 5.0
"""How long a request may take, unless a setting or its organization says otherwise; the longest
time that these may say; and how long a read waits at most for a version that is not there yet."""

RETRIES_MAX = 100
"""The largest `max_retries` that a request may ask for."""

KEEP_ALIVE_SECONDS = 15.0
"""Silence in a stream after which a comment is sent, so that proxies keep it open."""

HEADS_KEPT_MAX = 1024
"""Heads of requests that the server remembers, so as not to parse them again."""

CONNECTIONS_MAX, CONNECTIONS_OF_ORGANIZATION_MAX = 2500, 2000
"""Connections that are open at once; and how many requests and streams of an organization may be
under way on them, past which its next is refused with 53300."""

HEADER_SECONDS_MAX = 10.0
"""How long a client may take to send the head of a request."""

IDLE_SECONDS_MAX = 75.0
"""How long a connection without a request stays open."""

DRAIN_SECONDS_MAX = 25.0
"""How long requests under way have to end when the server stops."""

DATABASE_IDLE_SECONDS = 600.0
"""After this long without a request a database is closed; the next request opens it."""

DATABASES_OPEN_MAX = 1000
"""Databases that are open at once."""

STALL_SECONDS_MAX = 30.0
"""A process whose event loop stands still for so long ends itself, to be started anew."""

# --- the HTTP server -----------------------------------------------------------------------------

CONNECTIONS_REFUSED_MAX = 64
"""Connections past `CONNECTIONS_MAX` that are answered with an error; further ones are closed."""
CONNECTIONS_BACKLOG_MAX = 1024
"""Connections that the kernel holds until they are accepted."""
BODY_SECONDS_MAX, BODY_PROGRESS_BYTES_MIN = 20.0, 1024
"""In this time so many bytes of a body must arrive, unless fewer are missing."""
SEND_SECONDS_MAX = 60.0
"""A client that takes no byte of its answer for so long is cut off."""
SHUTDOWN_SECONDS_MAX = 4.0
"""For the application's own shutdown after the last answer."""
LINGER_SECONDS_MAX = 2.0
"""How long the rest of a refused request is read and thrown away, so that its answer arrives."""
REQUEST_LINE_BYTES_MAX = 8 * 1024
"""Method, target and version of a request; past it 414."""
HEADERS_BYTES_MAX, HEADERS_COUNT_MAX = 16 * 1024, 100
"""Bytes of all headers of a request, and their number; past it 431. Trailers after a chunked body
may have as much."""
BODY_UNREAD_BYTES_MAX = 64 * 1024
"""The rest of a body that is read and dropped after the answer, to keep the connection."""
CHUNK_LINE_BYTES_MAX = 256
"""The size of a chunk with its extensions."""
RECEIVE_BYTES = 64 * 1024
"""Asked of a socket at once; also what may wait of pipelined requests behind a running one."""

# --- open transactions ----------------------------------------------------------------------------

OPEN_IDLE_SECONDS, OPEN_IDLE_SECONDS_MAX = 60.0, 600.0
"""An open transaction that is not used for so long is gone, unless it asked for another time; and
the longest time that it may ask for."""

OPEN_SECONDS_MAX = 1800.0
"""How long a transaction stays open, however much it is used."""

OPEN_TRANSACTIONS_MAX = 100
"""Open transactions of an organization; the next is refused with QS034."""

OPEN_SWEEP_SECONDS = 1.0
"""How often transactions that are over are looked for."""

COMMIT_ANSWER_SECONDS, COMMIT_ANSWERS_MAX = 600.0, 1_000
"""How long the commit of an open transaction can be asked for again, with the same answer; and how
many such answers an organization has in memory, past which the oldest is forgotten."""

# --- probes and benchmarks of the service ---------------------------------------------------------

PROBE_SECONDS_MAX = 20.0
"""A probe of a capability that has not ended by then has failed."""

BENCH_MILLISECONDS_MAX = 5_000
"""How long a benchmark that is asked for over HTTP may run."""

BENCH_CLIENTS_MAX = 64
"""Clients of such a benchmark: each makes its next request when it has the answer to its last."""

STORAGE_TEST_BYTES = 1024 * 1024
"""What the test of the storage writes, reads back and deletes."""

# --- the control plane ---------------------------------------------------------------------------

RATE_WINDOW_SECONDS = 60
"""Requests are counted over any stretch of this length."""
REQUESTS_PER_WINDOW_FREE, REQUESTS_PER_WINDOW_PRO = 200, 6000
"""Requests of an organization of the tier `free`, and of the tier `pro`, in such a stretch."""
BENCH_COST_REQUESTS = 100
"""A benchmark counts as so many requests: for seconds it takes what it can get."""
SELF_TEST_COST_REQUESTS = 10
"""A probe of a capability, or a test of the storage, counts as so many requests."""
SIGNUP_WINDOW_SECONDS = 3600
"""Signups are counted over any stretch of this length."""
SIGNUPS_OF_ADDRESS_MAX = 30
"""Attempts to sign up from one address in such a stretch; of IPv6, from one network of 64 bits."""
SIGNUPS_MAX = 300
"""Attempts to sign up from anywhere in such a stretch."""
SESSION_SECONDS = 86_400
"""How long a session lives, and by how much a refresh prolongs it."""
SESSION_LIFE_SECONDS_MAX = 30 * 86_400
"""How long a session lives at most, however often it is refreshed."""
SESSIONS_OF_KEY_MAX, SESSIONS_OF_STATEMENT_KEY_MAX = 1000, 10_000
"""Sessions of one key that live at once; and of a key that can only run its statements, where each
browser has a session of its own."""
BOUND_BYTES_MAX = 4096
"""Bytes of JSON of the parameters that a session binds."""
SESSION_KEPT_SECONDS = 86_400
"""How long a dead session is remembered, so that its token can be told why it fails."""
KEYS_OF_ORGANIZATION_MAX = 1000
"""Active keys of an organization."""
KEY_KEPT_SECONDS = 30 * 86_400
"""How long a dead key stays in the list of keys."""
KEY_LIFE_SECONDS_MAX = 10 * 365 * 86_400
"""The furthest expiry of a key that has one."""
KEY_GRACE_SECONDS_MAX = 7 * 86_400
"""How long a key that was rotated may go on beside its successor."""
KEY_NAME_LENGTH_MAX = 100
"""Characters of a key's name."""
STATEMENTS_OF_KEY_MAX, STATEMENTS_OF_KEY_BYTES_MAX = 100, 64 * 1024
"""Statements of a key that can run nothing else; and bytes of their texts, all together."""
STATEMENT_NAME_LENGTH_MAX = 63
"""Characters of the name of such a statement."""
SECRET_LENGTH_MIN, SECRET_LENGTH_MAX = 16, 256
"""Characters after the prefix of a key that an operator brings; a longer token is not looked up."""
NAME_LENGTH_MAX = 63
"""Characters in the name of an organization or a database."""
ORGANIZATIONS_MAX = 10_000
"""Organizations of one server."""
DATABASES_OF_ORGANIZATION_MAX = 1000
"""Databases of an organization, whatever its tier; the next is refused with 53100."""
DATABASES_FREE, DATABASES_PRO = 25, 250
"""Databases of an organization of the tier `free`, and of the tier `pro`."""
STORED_BYTES_FREE = 1024 * 1024 * 1024
"""Bytes that the files of all databases of an organization of the tier `free` take. Past it, what
would store more is refused with 53100; reads, DELETE, TRUNCATE and DROP go on."""
STORED_BYTES_PRO = 100 * 1024 * 1024 * 1024
"""The same for the tier `pro`."""
BRANCH_SECONDS = 3600
"""How long a branch lives that a transaction has left, unless somebody keeps it."""
SPACE_POLL_SECONDS = 1.0
"""How often files are measured: an organization goes past its bound for that long."""
DISK_FREE_BYTES_MIN = 256 * 1024 * 1024
"""With less left on the disk nobody may store more; on a small disk, with less than a sixteenth."""
DISK_RESERVE_BYTES = 64 * 1024 * 1024
"""Held in a file until nothing else is left, for what removes rows; of a small disk, a 16th."""
LIST_LENGTH_DEFAULT, LIST_LENGTH_MAX = 100, 1000
"""Records on one page of a list: where nothing else is said, and at most."""
GRANTS_KEPT_MAX = 10_000
"""Tokens, and names of databases, whose meaning is remembered until a control record changes."""
SWEEP_SECONDS = 300.0
"""How often what is dead for long is removed, and what was cut short is tried again."""
CONTROL_SECONDS_MAX = 10.0
"""How long a request waits for the control database, should it be recovering."""
PROCESSES_MAX, CALL_SECONDS_MAX, PARTS_SECONDS_MAX, BARRIER_SECONDS_MAX = 64, 60.0, 10.0, 5.0
"""Processes of one machine; and how long one waits for another that does something for it, for one
that fetches the parts of an answer, and for all to have a change of the control database."""
DATABASE_CLOSE_SECONDS_MAX = 3.0
"""How long requests under way have to end when their database is closed."""

# --- processes of one machine --------------------------------------------------------------------

LINK_MESSAGE_BYTES_MAX, LINK_UNSENT_BYTES_MAX = 256 * 1024 * 1024, 4 * 1024 * 1024
"""Bytes of a message between processes, past which it fails with 54000; and of those that wait to
be sent to a process, past which senders wait: of short messages, and of those in pieces."""
LINK_FRAME_BYTES_MAX = 64 * 1024
"""Bytes of a piece of a message between processes, after which others have their turn."""

LINK_CALLS_MAX, LINK_MOVES_MAX = 10_000, 2_500
"""Calls, locks and streams that a process has under way at another, past which the next fails with
53300; and clients' connections that wait to be moved there, past which the next is not moved."""

LINK_STREAM_VALUES_MAX, VERSION_SLOTS = 16, 4096
"""Values of a stream between processes that nobody has taken yet; with more its sender waits. And
databases of a process that others follow; with more the first are followed anew."""
RATE_SLOTS, RATE_SLOTS_PROBED, RATE_LOCK_SECONDS_MAX = 16_384, 32, 0.2
"""Organizations whose requests all processes count together; places that one of them may have, past
which its request is refused with 53300; and how long to wait for a process that stands still while
it counts, before a request is refused with 57P03."""
LINK_RETRY_SECONDS, LINK_DRAIN_SECONDS, REPLICA_WAIT_SECONDS_MAX = 0.05, 1.0, 1.0
"""The pause after a link to a process was lost; how long one that ends waits for another; and a
read for its replica, before the owner answers it."""

PROCESS_ENDS_MAX, PROCESS_ENDS_SECONDS = 5, 60.0
"""So many processes that end within so much time are no accidents: all end."""

# --- the command line ----------------------------------------------------------------------------

SCRIPT_DEPTH_MAX = 8
"""Files of statements that include each other."""

CLUSTER_NODES_MAX = 16
"""Nodes that `qserver cluster up` starts on one machine."""

MCP_ROWS_DEFAULT, MCP_ROWS_MAX, MCP_DIFF_ROWS_MAX, MCP_STATEMENTS_MAX = 100, 1000, 200, 100
"""Rows of an answer of `qserver mcp`: where nothing is said, and at most; changes of a diff, past
which it is cut; and statements of one call."""
MCP_ANSWER_BYTES_MAX, MCP_TEXT_LENGTH_MAX, MCP_ELEMENTS_MAX = 100_000, 2000, 100
"""Bytes of rows in such an answer, past which rows are left out; and characters of a text, elements
of a list, past which they are cut. The answer says so."""
MCP_TIMEOUT_MS_DEFAULT, MCP_TIMEOUT_MS_MAX, MCP_BRANCHES_MAX = 10_000, 30_000, 100
"""Time of its calls: where nothing is said, and at most; and branches whose statements it remembers
until they are promoted, past which it forgets the oldest."""

# --- how they relate -----------------------------------------------------------------------------

assert PAGE_ENTRIES_MIN <= PAGE_ENTRIES_BUILT <= PAGE_ENTRIES_MAX
assert 2 <= PAGE_ENTRIES_MIN <= PAGE_ENTRIES_MAX // 2, "both halves of a split page are large"
assert 0 <= RANGE_ENTRIES_MIN <= RANGE_ENTRIES_MAX // 2, "what was cut is not joined again at once"
assert 1 <= SHARDS_DEFAULT <= SHARDS_MAX and FEED_PAUSE_SECONDS_MAX < KEEP_ALIVE_SECONDS
assert LIVE_QUERIES_MAX + FEED_READERS_MAX <= CONNECTIONS_OF_ORGANIZATION_MAX < CONNECTIONS_MAX
assert ROUND_TRANSACTIONS_MAX <= COMMITS_WAITING_MAX, "one round never waits for more than can wait"
assert 0 < ANSWERS_SWEPT_SECONDS < ANSWER_STORED_SECONDS and ANSWERS_SWEPT_AT_ONCE >= 1
assert ANSWER_STORED_BYTES_MAX <= ANSWER_BYTES_WHOLE, "a kept answer is sent whole"
assert EXPRESSION_DEPTH_MAX <= SYNTAX_DEPTH_MAX and 2**CUBE_ELEMENTS_MAX <= GROUPING_SETS_MAX
assert REGEX_LENGTH_MAX <= REGEX_SOURCE_LENGTH_MAX and REGEX_DEPTH_MAX <= SYNTAX_DEPTH_MAX
assert RETRIES_DEFAULT >= 1 and RETRY_PAUSE_SECONDS_MAX > 0 and ROUNDS_UNSYNCED_MAX >= 2
assert CHECKPOINT_LOG_BYTES > 0 and CHECKPOINT_SECONDS > 0 < CHECKPOINT_STEP_BYTES
assert ROW_ID_BLOCK >= SEQUENCE_BLOCK and PLANS_KEPT_MAX >= PLANS_OF_FINGERPRINT_MAX >= 1
assert INDEX_COLUMNS_MAX <= COLUMNS_MAX and NUMERIC_PRECISION_MAX <= NUMERIC_DIGITS_MAX
assert NUMERIC_SCALE_MAX <= NUMERIC_FRACTION_DIGITS_MAX and SEQUENCE_BLOCK >= 1
assert OPEN_TRANSACTION_BYTES_MAX <= MEMORY_BYTES_MAX and VALUE_BYTES_MAX <= TEXT_RESULT_LENGTH_MAX
assert BULK_ROW_BYTES_MAX <= VALUE_BYTES_MAX < BULK_BYTES_MAX and 0 < CHECKPOINT_TIME_SHARE <= 1
assert STATEMENT_SECONDS < OPEN_IDLE_SECONDS <= OPEN_IDLE_SECONDS_MAX < OPEN_SECONDS_MAX
assert OPEN_SWEEP_SECONDS < OPEN_IDLE_SECONDS and OPEN_IDLE_SECONDS_MAX <= COMMIT_ANSWER_SECONDS
assert ANONYMOUS_BODY_BYTES_MAX <= REQUEST_BODY_BYTES_MAX <= min(VALUE_BYTES_MAX, BODIES_BYTES_MAX)
assert VALUE_BYTES_MAX <= ROW_BYTES_MAX <= STATEMENT_MEMORY_BYTES_MAX <= MEMORY_BYTES_MAX
assert COMPRESSED_BYTES_MIN <= COMPRESSED_AT_ONCE_BYTES <= ANSWER_PART_BYTES <= ANSWER_BYTES_WHOLE
assert DRAIN_SECONDS_MAX + SHUTDOWN_SECONDS_MAX < 30, "platforms kill after half a minute"
assert CHUNK_LINE_BYTES_MAX <= RECEIVE_BYTES and SESSION_SECONDS <= SESSION_LIFE_SECONDS_MAX
assert STATEMENTS_OF_KEY_BYTES_MAX <= STATEMENT_BYTES_MAX and COMMIT_ANSWERS_MAX >= 1
assert SESSIONS_OF_KEY_MAX <= SESSIONS_OF_STATEMENT_KEY_MAX and RETRY_PAUSE_SECONDS_MAX < 1
assert DATABASES_FREE <= DATABASES_PRO <= DATABASES_OF_ORGANIZATION_MAX and CHECKPOINT_PAGES_AT_ONCE
assert STORED_BYTES_FREE <= STORED_BYTES_PRO and SIGNUPS_OF_ADDRESS_MAX <= SIGNUPS_MAX
assert CHECKPOINT_LOG_BYTES < DISK_RESERVE_BYTES < DISK_FREE_BYTES_MIN, "a checkpoint has room"
assert SELF_TEST_COST_REQUESTS <= BENCH_COST_REQUESTS <= REQUESTS_PER_WINDOW_FREE
assert ORGANIZATIONS_MAX < RATE_SLOTS and CONNECTIONS_MAX <= LINK_MOVES_MAX
assert ROW_BYTES_MAX <= LINK_MESSAGE_BYTES_MAX and NOTIFICATIONS_SENT_MAX < NOTIFICATIONS_QUEUED_MAX
assert NOTIFICATIONS_SENT_MAX * (NOTIFICATION_BYTES_MAX + 100) < NOTIFICATIONS_QUEUED_BYTES_MAX
assert SECRET_LENGTH_MIN <= 32 <= SECRET_LENGTH_MAX, "32 characters are what we make ourselves"
assert LIST_LENGTH_DEFAULT <= LIST_LENGTH_MAX and STATEMENT_BYTES_MAX <= REQUEST_BODY_BYTES_MAX
assert DATABASE_CLOSE_SECONDS_MAX < SHUTDOWN_SECONDS_MAX, "databases close before the server ends"
