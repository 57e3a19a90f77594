"""Keywords: which words are which terminals, and where.

Some keywords are reserved; some name only functions and types (LEFT, LIKE), some only columns and
tables (TIME, VALUES); most are unreserved and may name anything (KEY, VALUE, DATA). `KEYWORDS` maps
words that are keywords everywhere to the grammar's terminals.

Most unreserved words have a meaning in one context only: FIRST after NULLS, PARTITION before BY.
`NEIGHBOURS` lists those. Everywhere else they are plain names, so the grammar need not repeat that
a column may be called "first", and its tables stay small. A line reads

    first   FIRST   after nulls fetch       the word is FIRST if one of these precedes it
    by      BY      after order group
    at      AT      before time             … or follows it; both conditions must hold
    valid   VALID   after not before $      … $ is the end of the text

Neighbours are words as written, punctuation, or ' a string, 0 a number, name any name. Two with an
underscore between (is_not) are the two preceding or following words. A word may have several lines;
the first that matches counts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# Reserved words, and the words that name only functions and types.
_ALWAYS = """
    ALL all  ANALYZE analyse analyze  AND and  ANY any some  ARRAY array  AS as  DIRECTION asc desc
    ASYMMETRIC asymmetric  TRIM_SIDE both leading trailing  CASE case  CAST cast  CHECK check
    COLLATE collate  COLUMN column  CONSTRAINT constraint  CREATE create
    SYSTEM_VALUE current_catalog current_date current_role current_time current_timestamp
    SYSTEM_VALUE current_user localtime localtimestamp session_user user
    DEFAULT default  DEFERRABLE deferrable  DISTINCT distinct  DO do  ELSE else  END end
    SET_OPERATION except union  INTERSECT intersect  BOOLEAN false true  FETCH fetch  FOR for
    FOREIGN foreign  FROM from  GROUP group  HAVING having  IN in  INITIALLY initially  INTO into
    LATERAL lateral  LIMIT limit  NOT not  NULL null  OFFSET offset  ON on  ONLY only  OR or
    ORDER order  PLACING placing  PRIMARY primary  REFERENCES references  RETURNING returning
    SELECT select  SYMMETRIC symmetric  TABLE table  THEN then  TO to  UNIQUE unique  USING using
    VARIADIC variadic  WHEN when  WHERE where  WINDOW window  WITH with  RESERVED grant

    TYPE_FUNCTION authorization binary freeze  COLLATION collation  CONCURRENTLY concurrently
    CROSS cross  SYSTEM_VALUE current_schema  SIDE full left right  LIKE ilike like  INNER inner
    IS is  NULL_TEST isnull notnull  JOIN join  NATURAL natural  OUTER outer  OVERLAPS overlaps
    SIMILAR_PATTERN similar  TABLESAMPLE tablesample  VERBOSE verbose
"""
# Unreserved words that the grammar lists among the names, and one that names only columns.
_NAMES_TOO = """
    DELETE delete  ESCAPE escape  FIELD year month day hour minute second  FRAME_MODE range groups
    FRAME_SIDE preceding following  INSERT insert  MATCHED matched  MERGE merge  OVER over  ROW row
    ROWS rows  SET set  UPDATE update  BETWEEN between
"""

_NEIGHBOURS = """
    -- expressions
    not             NOT_BEFORE      before between in like ilike similar
    unknown         UNKNOWN         after is is_not
    normalized      NORMALIZED      after is is_not nfc nfd nfkc nfkd
    nfc             NORMAL_FORM     before normalized
    nfd             NORMAL_FORM     before normalized
    nfkc            NORMAL_FORM     before normalized
    nfkd            NORMAL_FORM     before normalized
    at              AT              before time
    zone            ZONE            after time
    operator        OPERATOR_WORD   before (
    row             ROW_CONSTRUCTOR before (
    exists          EXISTS          before (
    exists          EXISTS          after if if_not
    extract         EXTRACT         before (
    position        POSITION        before (
    substring       SUBSTRING       before (
    overlay         OVERLAY         before (
    trim            TRIM            before (
    grouping        GROUPING        before ( sets
    current_schema  TYPE_FUNCTION   before (
    similar         SIMILAR         before to
    filter          FILTER          after ) before (
    within          WITHIN          before group

    -- types
    time            TIME            before ' ( zone with_time without_time
    timestamp       TIMESTAMP       before ' ( with_time without_time
    interval        INTERVAL        before ' ( year month day hour minute second
    with            WITH_BEFORE     before time ordinality
    without         WITHOUT         before time
    without         WITHOUT         after set before oids cluster
    double          TWO_WORD_TYPE   before precision
    precision       TYPE_END        after double
    character       TWO_WORD_TYPE   before varying
    char            TWO_WORD_TYPE   before varying
    bit             TWO_WORD_TYPE   before varying
    varying         TYPE_END        after character char bit

    -- queries
    recursive       RECURSIVE       after with create replace temp temporary before name view
    materialized    MATERIALIZED    after as not before (_select (_values (_with (_table (_(
    materialized    MATERIALIZED    after as not before (_insert (_update (_delete
    search          SEARCH          before depth breadth
    depth           DEPTH           after search
    breadth         BREADTH         after search
    cycle           CYCLE           after ) set_name before name
    ordinality      ORDINALITY      after with
    values          VALUES          before (
    values          VALUES          after default
    values          VALUES          after name ) before 0 ' default null
    repeatable      REPEATABLE      after ) before (
    by              BY              after order group partition increment owned generated first
    sets            SETS            after grouping
    rollup          ROLLUP          before (
    cube            CUBE            before (
    nulls           NULLS           before first last distinct not_distinct
    first           FIRST           after nulls fetch depth breadth
    last            LAST            after nulls
    next            FIRST           after fetch
    ties            TIES            after exclude row_with rows_with
    partition       PARTITION       before by
    unbounded       UNBOUNDED       before preceding following
    current         CURRENT         before row
    current         CURRENT         after where before of
    exclude         EXCLUDE         before current group ties no_others
    others          OTHERS          after no
    no              NO              before others data action minvalue maxvalue cycle inherit key
    share           SHARE           after for key
    of              OF              after for_update for_share key_update key_share where_current
    nowait          NOWAIT          after for_update for_share key_update key_share of_name
    skip            SKIP            before locked
    locked          LOCKED          after skip

    -- changing data
    overriding      OVERRIDING      before system_value user_value
    system          OVERRIDING_KIND after overriding
    user            OVERRIDING_KIND after overriding
    value           VALUE           after overriding_system overriding_user
    conflict        CONFLICT        after on before ( on do
    nothing         NOTHING         after do

    -- definitions
    if              IF              before exists not_exists
    temp            TEMPORARY       after create replace into before name table
    temporary       TEMPORARY       after create replace into before name table
    unlogged        UNLOGGED        after create into before name table
    replace         REPLACE         after or
    key             KEY             after primary foreign no for
    generated       GENERATED       before always by
    always          ALWAYS          after generated
    identity        IDENTITY        after always_as default_as restart continue
    match           MATCH           before full partial simple
    partial         MATCH_KIND      after match
    simple          MATCH_KIND      after match
    action          ACTION          after no
    inherit         INHERIT         after no
    deferred        DEFERRED        after initially
    immediate       IMMEDIATE       after initially
    valid           VALID           after not before $ ; ,
    valid           VALID           after )_not inherit_not before )
    include         INCLUDE         after ) before (
    preserve        PRESERVE        before rows
    data            DATA            after no
    data            DATA            after with before $ ) ;
    data            DATA            after set before type
    cascaded        CHECK_SCOPE     before check
    local           CHECK_SCOPE     before check
    option          OPTION          after check
    restart         RESTART         before identity
    continue        CONTINUE        before identity
"""

# Words that are keywords only at the start of a statement.
_HEADS = """
    ALTER alter  COMMENT comment  DROP drop  EXPLAIN explain  RESET reset  SHOW show
    TRUNCATE truncate  VALUES values
    TRANSACTION abort begin commit end release rollback savepoint start
    CHECKPOINT checkpoint  CLOSE close  CLUSTER cluster  DEALLOCATE deallocate  DECLARE declare
    DISCARD discard  EXECUTE execute  GRANT grant revoke  LISTEN listen unlisten  LOCK lock
    MAINTAIN analyse analyze vacuum  MOVE move  NOTIFY notify  PREPARE prepare  REINDEX reindex
"""


class Neighbour(NamedTuple):
    """`terminal` if the previous word is in `after` and the next in `before`; None: any."""

    terminal: str
    after: frozenset[str] | None
    before: frozenset[str] | None


def _always(table: str) -> dict[str, str]:
    keywords: dict[str, str] = {}
    terminal = ""
    for word in table.split():
        if word.isupper():
            terminal = word
        else:
            keywords[word] = terminal
    return keywords


def _neighbours(table: str) -> dict[str, tuple[Neighbour, ...]]:
    found: dict[str, tuple[Neighbour, ...]] = {}
    for line in table.splitlines():
        if not line.strip() or line.strip().startswith("--"):
            continue
        word, terminal, *condition = line.split()
        sides: dict[str, list[str]] = {}
        side: list[str] = []
        for each in condition:
            if each in ("after", "before"):
                side = sides.setdefault(each, [])
            else:
                side.append(each)
        after, before = (
            frozenset(sides[name]) if name in sides else None for name in ("after", "before")
        )
        found[word] = (*found.get(word, ()), Neighbour(terminal, after, before))
    return found


RESERVED: Final = _always(_ALWAYS)
KEYWORDS: Final = RESERVED | _always(_NAMES_TOO)
HEADS: Final = _always(_HEADS)
NEIGHBOURS: Final = _neighbours(_NEIGHBOURS)
NAMES_TOO: Final = frozenset(_always(_NAMES_TOO).values()) - {"BETWEEN"}
