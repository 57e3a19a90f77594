"""What the databases of the suite have: PostgreSQL, and what of that qserver has not.

SQLAlchemy leaves out the tests of what is closed here. All that is not named is as it presumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

OPEN: Final = """
    aggregate_order_by array_type autocommit boolean_col_expressions
    check_constraint_reflection column_collation_reflection comment_reflection
    comment_reflection_full_unicode computed_columns computed_columns_default_persisted
    computed_columns_reflect_persisted computed_columns_stored constraint_comment_reflection
    create_or_replace_view create_table_as create_temp_table_as cross_schema_fk_reflection
    ctes ctes_on_dml ctes_with_update_delete ctes_with_values date_historic
    datetime_historic datetime_interval datetime_literals datetime_timezone
    default_schema_name_switch deferrable_fks delete_from except_ expression_server_defaults
    fetch_expression fetch_first fetch_no_order_by fetch_ties
    fk_constraint_option_reflection_ondelete_noaction
    fk_constraint_option_reflection_ondelete_restrict
    fk_constraint_option_reflection_onupdate_restrict
    float_or_double_precision_behaves_generically foreign_key_constraint_name_reflection
    foreign_key_constraint_option_reflection_ondelete
    foreign_key_constraint_option_reflection_onupdate has_temp_table identity_columns
    identity_columns_standard implicit_default_schema index_ddl_if_exists
    index_reflects_included_columns indexes_check_column_order indexes_with_expressions
    infinity_floats inline_check_constraint_reflection intersect isolation_level json_type
    materialized_views mod_operator_as_percent_sign nullsordering
    order_by_label_with_expression percent_schema_names precision_numerics_enotation_small
    precision_numerics_many_significant_digits precision_numerics_retains_significant_digits
    reflect_indexes_with_expressions reflect_table_options reflect_tables_no_columns
    reflects_pk_names regexp_match regexp_replace repeated_column_foreign_keys savepoints
    schema_create_delete schemas server_defaults server_side_cursors
    skip_autocommit_rollback supports_bitwise_and supports_bitwise_not supports_bitwise_or
    supports_bitwise_shift supports_bitwise_xor supports_distinct_on table_ddl_if_exists
    table_value_constructor temp_table_comment_reflection temp_table_names temporary_views
    time_timezone timestamp_microseconds tuple_in unicode_ddl
    unique_constraints_reflect_as_index update_from uuid_data_type views window_functions
    window_range window_range_non_numeric window_range_numeric
"""
"""What PostgreSQL has, of what the suite does not presume."""

WITHOUT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "create_temp_table_as",
            "has_temp_table",
            "temp_table_comment_reflection",
            "temp_table_names",
            "temp_table_reflection",
            "temp_table_reflect_indexes",
            "temporary_tables",
            "temporary_views",
        ),
        "there are no temporary tables",
    ),
    "materialized_views": "there are no materialized views",
}
"""What qserver has not, and why."""

WITHOUT_OVER_HTTP: Final[Mapping[str, str]] = {
    "server_side_cursors": "rows are streamed; but the suite asks only drivers that it knows",
}


class OfPostgreSQL(SuiteRequirements):
    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        dialect = config.db.dialect
        return {
            "default": dialect.default_isolation_level,
            "supported": list(dialect.get_isolation_level_values(None)),
        }


class OfQserver(OfPostgreSQL):
    """Over the wire."""


class OfQserverOverHttp(OfQserver):
    pass


def _always(rule: Any) -> Any:
    return property(lambda self: rule())


for _name in OPEN.split():
    setattr(OfPostgreSQL, _name, _always(exclusions.open))
for _name in WITHOUT:
    setattr(OfQserver, _name, _always(exclusions.closed))
for _name in WITHOUT_OVER_HTTP:
    setattr(OfQserverOverHttp, _name, _always(exclusions.closed))
