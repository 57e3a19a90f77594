"""What counts as a difference, and which ones are accepted under which name."""

from __future__ import annotations

from tests.differential.accepted import accepted_by
from tests.differential.comparison import Difference, Step, difference
from tests.differential.engines import Outcome


def rows(*values: str | None, type_name: str = "text") -> Outcome:
    return Outcome(columns=("a",), types=(type_name,), rows=tuple((value,) for value in values))


def compared(expected: Outcome, found: Outcome, step: Step | None = None) -> Difference | None:
    return difference(step or Step("SELECT f(g(a)) FROM t"), expected, found)


def rule_for(expected: Outcome, found: Outcome, sql: str = "SELECT f(g(a)) FROM t") -> str | None:
    differs = compared(expected, found, Step(sql))
    assert differs is not None
    rule = accepted_by(differs)
    return None if rule is None else rule.name


def test_rows_are_a_multiset_without_an_order() -> None:
    assert compared(rows("1", "2", None), rows(None, "2", "1")) is None
    assert compared(rows("1", "1", "2"), rows("1", "2", "2")) is not None


def test_rows_follow_the_order_as_far_as_it_is_decided() -> None:
    one = Outcome(columns=("a", "b"), types=("text",) * 2, rows=(("1", "x"), ("1", "y")))
    other = Outcome(columns=("a", "b"), types=("text",) * 2, rows=(("1", "y"), ("1", "x")))
    assert compared(one, other, Step("", (0,))) is None
    assert compared(one, other, Step("", (0, 1))) is not None


def test_types_names_errors_and_affected_rows_count() -> None:
    assert compared(rows("1"), rows("1", type_name="integer")) is not None
    assert compared(Outcome(error="22003"), Outcome(error="22012")) is not None
    assert compared(Outcome(error="22003", message="a"), Outcome(error="22003")) is None
    assert compared(Outcome(affected=1), Outcome(affected=2)) is not None
    assert compared(Outcome(), Outcome(affected=2)) is None


def test_last_digits_of_floating_point_are_accepted_and_others_are_not() -> None:
    double = "double precision"
    one = rows("0.30000000000000004", type_name=double)
    assert rule_for(one, rows("0.3", type_name=double)) == "last_digit"
    assert rule_for(one, rows("0.31", type_name=double)) is None
    assert rule_for(rows("0.30000000000000004"), rows("0.3")) is None


def test_a_microsecond_is_accepted_where_an_interval_is_multiplied_and_nowhere_else() -> None:
    one = rows("-5478 days -05:06:02.864229", "00:00:01", type_name="interval")
    other = rows("00:00:01", "-5478 days -05:06:02.86423", type_name="interval")
    product = "SELECT a * 0.3 FROM t"
    assert rule_for(one, other, product) == "fused_multiply_add"
    assert rule_for(one, other, "SELECT a / 0.3 FROM t") is None
    further = rows("00:00:01", "-5478 days -05:06:02.864231", type_name="interval")
    assert rule_for(one, further, product) is None
    assert rule_for(rows("00:00:01", type_name="interval"), one, product) is None
    another_day = rows("-5477 days -05:06:02.86423", "00:00:01", type_name="interval")
    assert rule_for(one, another_day, product) is None


def test_an_interval_of_many_days_may_be_off_by_the_last_bit_of_its_days() -> None:
    product = "SELECT a * cosh(5) FROM t"
    one = rows("-653270 days -1489:31:51.89289", type_name="interval")
    near = rows("-653270 days -1489:31:51.892886", type_name="interval")
    assert rule_for(one, near, product) == "fused_multiply_add"
    further = rows("-653270 days -1489:31:51.892883", type_name="interval")
    assert rule_for(one, further, product) is None


def test_blanks_of_char_are_accepted_in_arrays_and_other_blanks_are_not() -> None:
    chars = "character[]"
    one = rows('{"ab ",x,"c d ","null "}', type_name=chars)
    assert rule_for(one, rows('{ab,x,"c d","null"}', type_name=chars)) == "char_blanks"
    assert rule_for(one, rows('{ab,x,cd,"null"}', type_name=chars)) is None
    assert rule_for(one, rows('{ab,x,"c d",null}', type_name=chars)) is None
    assert rule_for(rows('{"ab "}', type_name="text[]"), rows("{ab}", type_name="text[]")) is None


def test_blanks_of_char_are_accepted_in_json_and_other_blanks_are_not() -> None:
    made = "SELECT to_jsonb(greatest('a'::char(3), 'b'::char(5))) FROM t"
    one, other = rows('["a  "]', type_name="jsonb"), rows('["a"]', type_name="jsonb")
    assert rule_for(one, other, made) == "char_blanks"
    assert rule_for(one, other, "SELECT to_jsonb(array_agg(a)) FROM t") == "char_blanks"
    assert rule_for(one, other, "SELECT to_jsonb(a) FROM t") is None
    assert rule_for(one, rows('["b"]', type_name="jsonb"), made) is None
    assert rule_for(rows('[" a"]', type_name="jsonb"), other, made) is None
    assert rule_for(rows('["a  "]'), rows('["a"]'), made) is None


def test_blanks_of_char_are_accepted_in_a_row_and_other_blanks_are_not() -> None:
    made = "SELECT (percentile_disc(1) WITHIN GROUP (ORDER BY d), ' x') FROM t"
    one, other = (
        rows(each, type_name="record") for each in ('("é   "," x","b)  ")', '(é," x","b)")')
    )
    assert rule_for(one, other, made) == "char_blanks"
    assert rule_for(one, other, "SELECT (d, ' x') FROM t") is None
    for wrong in ('(é,x,"b)")', '(e," x","b)")', '(é," x",b))'):
        assert rule_for(one, rows(wrong, type_name="record"), made) is None
    assert rule_for(rows('("é  ")'), rows("(é)"), made) is None


def test_blanks_of_the_greatest_char_are_accepted_in_a_text() -> None:
    one, other = rows("a  ", type_name="text"), rows("a", type_name="text")
    assert rule_for(one, other, "SELECT concat(max('a'::char(3)))") == "char_blanks"
    greatest = "SELECT concat_ws('', greatest('a'::char(3), 'b'::char(5)))"
    assert rule_for(one, other, greatest) == "char_blanks"
    of_group = "percentile_disc(1) WITHIN GROUP (ORDER BY d)"
    assert rule_for(one, other, f"SELECT format('%s', {of_group}) FROM t") == "char_blanks"
    assert rule_for(one, other, f"SELECT upper({of_group}) FROM t") is None
    assert rule_for(one, other, "SELECT format('%s', d) FROM t") is None
    assert rule_for(one, other, "SELECT concat('a'::char(3))") is None
    assert rule_for(one, rows("b", type_name="text"), "SELECT concat(max('a'::char(3)))") is None


def test_only_zones_with_daylight_saving_time_or_of_a_day_may_be_refused() -> None:
    def refused(zone: str) -> Outcome:
        return Outcome(error="22023", message=f'time zone "{zone}" not recognized')

    for zone in ("EST5EDT4", "<x>-3y", "UTC+25"):
        assert rule_for(rows("1"), refused(zone)) == "posix_zones"
    for zone in ("Europe/Berlin", "EST5", "UTC+3:30", "abc"):
        assert rule_for(rows("1"), refused(zone)) is None
    assert rule_for(Outcome(error="42883"), refused("EST5EDT4")) is None


def test_an_error_of_one_operator_alone_is_never_a_matter_of_order() -> None:
    failed, good = Outcome(error="22012"), rows("1")
    filtered = "SELECT f(g(a)) FROM t WHERE h(a)"
    assert rule_for(good, failed, filtered) == "order_of_evaluation"
    differs = compared(good, failed, Step("SELECT (1 / 0)", strict=True))
    assert differs is not None and accepted_by(differs) is None
    assert rule_for(good, Outcome(error="42883"), filtered) is None


def test_a_view_may_decide_what_is_computed() -> None:
    failed, good = Outcome(error="22012", message="division by zero"), rows("1")
    views = [
        Step("CREATE VIEW v1 (a) AS SELECT 1 / a FROM t WHERE a > 0"),
        Step("CREATE VIEW v2 AS SELECT a FROM v1"),
        Step("CREATE VIEW v3 AS SELECT 1 / a FROM t"),
    ]
    for name, rule in (("v1", True), ("v2", True), ("v3", False)):
        differs = compared(good, failed, Step(f"SELECT a FROM {name}").after(views))
        assert differs is not None
        assert (accepted_by(differs) is not None) is rule


def test_which_row_fails_first_is_a_matter_of_order() -> None:
    infinite = Outcome(error="0A000", message="cannot convert infinity to bigint")
    large = Outcome(error="22003", message="bigint out of range")
    assert rule_for(large, infinite, "SELECT a::int8 FROM t") == "order_of_evaluation"
    refused = Outcome(error="0A000", message="FOR UPDATE is not allowed with DISTINCT clause")
    assert rule_for(large, refused, "SELECT a::int8 FROM t") is None


def test_an_error_that_nothing_can_avoid_is_never_a_matter_of_order() -> None:
    failed, good = Outcome(error="22012", message="division by zero"), rows("1")
    assert rule_for(good, failed, "SELECT 1 / a FROM t WHERE a > 0") == "order_of_evaluation"
    assert rule_for(good, failed, "SELECT 1 / a FROM t") is None
    assert rule_for(failed, good, "CREATE INDEX i ON t ((1 / a)) WHERE a > 0") is None
    assert rule_for(failed, Outcome(error="22003"), "SELECT 1 / a, a + b FROM t") is not None


def unreadable(sql: str, literal: str, error: str = "22P02") -> Outcome:
    return Outcome(error, f'invalid input: "{literal}"', position=sql.index(f"'{literal}'") + 1)


def test_a_literal_that_cannot_be_read_is_never_a_matter_of_order() -> None:
    good = rows("1")
    for sql in (
        "SELECT a FROM t WHERE a = 1 OR a = 'zoo'",
        "SELECT a FROM t WHERE a = 1 OR a = 'zoo'::int",
        "SELECT a FROM t WHERE a = 'zoo' OR a = 'zoo'::text::int",
    ):
        assert rule_for(unreadable(sql, "zoo"), good, sql) is None
        assert rule_for(good, unreadable(sql, "zoo"), sql) is None
    computed = Outcome("22P02", 'invalid input: "zoo"')
    by_row = "SELECT a FROM t WHERE a = 1 OR a = b::int"
    assert rule_for(computed, good, by_row) == "order_of_evaluation"
    both = "SELECT a FROM t WHERE a = 'zoo' OR d = '2024-02-30'"
    failed, other = unreadable(both, "zoo"), unreadable(both, "2024-02-30", "22008")
    assert rule_for(failed, other, both) == "order_of_evaluation"
    assert rule_for(failed, Outcome(error="22012"), both) is None


def test_the_cast_of_a_text_is_a_matter_of_order_wherever_else_the_text_stands() -> None:
    sql = "SELECT 'zoo'::text::int FROM t WHERE b IN ('zoo', 'a''b'::varchar(9)::date)"
    assert rule_for(unreadable(sql, "zoo"), rows("1"), sql) == "order_of_evaluation"
    assert rule_for(Outcome(error="22003"), unreadable(sql, "zoo"), sql) == "order_of_evaluation"
    assert rule_for(unreadable(sql, "a''b", "22007"), rows("1"), sql) == "order_of_evaluation"
    number = Outcome("22003", "integer out of range", position=8)
    large = "SELECT 99999999999::int FROM t WHERE a > 0"
    assert rule_for(rows("1"), number, large) == "order_of_evaluation"


def test_equal_values_may_be_written_differently_in_arrays_element_by_element() -> None:
    def numbers(text: str) -> Outcome:
        return rows(text, type_name="numeric[]")

    assert rule_for(numbers("{1.0,NULL,NaN}"), numbers("{1.00,NULL,NaN}")) == "equal_values"
    assert rule_for(numbers("{1.0,2}"), numbers("{2,1.0}")) is None
    assert rule_for(numbers("{1.0,NULL}"), numbers("{1.0,0}")) is None
    day = rows('{"1 day",00:00:00}', type_name="interval[]")
    assert rule_for(day, rows("{24:00:00,00:00:00}", type_name="interval[]")) == "equal_values"
    assert rule_for(day, rows("{00:00:00,24:00:00}", type_name="interval[]")) is None


def test_numbers_that_differ_after_many_digits_are_not_equal() -> None:
    one, other = ("1" * 40 + last for last in "12")
    assert rule_for(rows(one, type_name="numeric"), rows(other, type_name="numeric")) is None


def test_different_violations_need_a_change_and_a_constraint() -> None:
    unique, check = Outcome(error="23505"), Outcome(error="23514")
    assert rule_for(unique, check, "INSERT INTO t VALUES (1), (2)") == "first_violation"
    assert rule_for(unique, check, "CREATE UNIQUE INDEX i ON t (a)") is None
    assert rule_for(unique, Outcome(error="42804"), "INSERT INTO t VALUES (1)") is None
    assert rule_for(unique, rows("1"), "INSERT INTO t VALUES (1)") is None


def test_only_an_integer_that_v_makes_too_large_may_be_refused() -> None:
    refused = Outcome(error="22003", message="integer out of range")
    shifted = "SELECT to_char(1073741823, '99V9')"
    assert rule_for(rows(" ###"), refused, shifted) == "to_char_overflow"
    assert rule_for(rows(" ###"), refused, "SELECT to_char(1073741823, '999')") is None
    assert rule_for(rows(" ###"), refused, "SELECT 1073741823 * 10, 'V'") is None
    assert rule_for(Outcome(error="22012"), refused, shifted) != "to_char_overflow"
    bigint = Outcome(error="22003", message="bigint out of range")
    assert rule_for(rows(" ###"), bigint, shifted) is None


def test_a_null_key_has_another_code_and_is_still_an_error() -> None:
    later = Outcome(error="22004", message="null value not allowed for object key")
    ours = Outcome(error="22023", message="argument 1 cannot be null")
    make = "CREATE VIEW v AS SELECT json_build_object(NULL, 1)"
    assert rule_for(later, ours, make) == "json_null_key"
    assert rule_for(rows("{}"), ours, make) is None
    assert rule_for(later, rows("{}"), make) is None
    assert rule_for(later, Outcome(error="22023", message="argument list"), make) is None


def test_only_an_index_of_an_expression_with_where_may_fail_to_compute() -> None:
    failed, good = Outcome(error="22003", message="bigint out of range"), Outcome()
    partial = "CREATE INDEX ON t (gcd(h, h)) WHERE h > 0"
    assert rule_for(good, failed, partial) == "partial_expression_index"
    assert rule_for(failed, good, partial) is None
    assert rule_for(good, failed, "CREATE INDEX ON t (gcd(h, h))") is None
    assert rule_for(good, failed, "CREATE INDEX ON t (h) WHERE h > 0") is None
    assert rule_for(good, Outcome(error="23505"), partial) is None


def test_a_comparison_of_texts_is_accepted_in_the_case_of_a_generated_column_alone() -> None:
    refused, made = Outcome(error="42P22"), Outcome()
    case = "CREATE TABLE t (a int GENERATED ALWAYS AS (CASE 'x' WHEN 'y' THEN 1 END) STORED)"
    assert rule_for(refused, made, case) == "literals_in_generated"
    assert rule_for(refused, made, "SELECT CASE 'x' WHEN 'y' THEN 1 END") is None
    assert rule_for(refused, Outcome(error="22012"), case) is None


def test_a_regression_may_be_null_on_one_side_and_nothing_else_may() -> None:
    number = rows("2.75", type_name="double precision")
    null = Outcome(columns=number.columns, types=number.types, rows=((None,),))
    made = "SELECT regr_intercept(1, 0.1) FROM t"
    assert rule_for(number, null, made) == "fused_multiply_add"
    assert rule_for(number, null, "SELECT sum(a) FROM t") is None


def test_a_regression_over_a_constant_is_a_rest_of_rounding_and_no_other_is() -> None:
    one = rows("6.22e+29", type_name="double precision")
    other = rows("6.53e+29", type_name="double precision")
    for made in (
        "regr_sxx((x.v)::float8, '1e30'::float8)",
        "regr_syy('1e30'::float8, x.v)",
        "corr(coalesce(round(x.v, (2)), 1), (-0.1))",
    ):
        assert rule_for(one, other, f"SELECT {made} FROM t AS x") == "fused_multiply_add"
    for made in ("regr_sxx(x.v, x.w), 1", "regr_sxx(x.v, abs(1))", "stddev(0.1)", "sum(a * 0.1)"):
        assert rule_for(one, other, f"SELECT {made} FROM t AS x") is None
