"""Tests of Django's suite that fail, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NO_POOL: Final = "psycopg_pool is not installed"
_NO_ICU: Final = "there is no collation of ICU, and none can be made; nor in this PostgreSQL"
_NO_FUNCTION: Final = "CREATE FUNCTION is not supported"
_NO_CLASS: Final = "the operator class of an index is accepted, and not kept"
_POOLED: Final = (
    "test_connect_pool",
    "test_connect_pool_set_to_true",
    "test_connect_pool_with_timezone",
    "test_pooling_health_checks",
)
_COLLATED: Final = (
    "test_add_field_db_collation",
    "test_alter_field_db_collation",
    "test_alter_field_type_and_db_collation",
    "test_alter_field_type_preserve_db_collation",
    "test_alter_primary_key_db_collation",
    "test_ci_cs_db_collation",
    "test_db_collation_arrayfield",
    "test_db_collation_charfield",
    "test_db_collation_textfield",
    "test_func_index_collate",
    "test_func_index_collate_f_ordered",
    "test_func_unique_constraint_collate",
    "test_relation_to_collation_charfield",
    "test_unique_with_collation_charfield",
)
_OF_BOTH: Final = {
    "backends.postgresql.test_creation.DatabaseCreationTests.test_create_test_db": (
        "the databases of a run are there before it"
    ),
    **{f"backends.postgresql.tests.Tests.{name}": _NO_POOL for name in _POOLED},
    **{f"schema.tests.SchemaTests.{name}": _NO_ICU for name in _COLLATED},
}
_OF_WIRE: Final = {
    "backends.test_utils.CursorWrapperTests.test_callproc_with_int_params": _NO_FUNCTION,
    "backends.test_utils.CursorWrapperTests.test_callproc_without_params": _NO_FUNCTION,
    "queries.test_bulk_update.BulkUpdateTests.test_ipaddressfield": (
        "a column cannot have the type inet, so its addresses are texts"
    ),
    "queries.test_explain.ExplainTests.test_multi_page_text_explain": (
        "a union of 101 queries is too complex"
    ),
    "schema.tests.SchemaTests.test_func_unique_constraint_covering": (
        "INCLUDE of an index is accepted, and not kept"
    ),
    "schema.tests.SchemaTests.test_relation_to_deterministic_collation_charfield": _NO_CLASS,
    "schema.tests.SchemaTests.test_unique_constraint_nulls_distinct_condition": (
        "NULLS NOT DISTINCT is refused for an index over some rows only"
    ),
    "schema.tests.SchemaTests.test_unique_with_deterministic_collation_charfield": _NO_CLASS,
}
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "wire": _OF_BOTH | _OF_WIRE,
    "postgresql": _OF_BOTH,
}
"""By the target of a run."""
