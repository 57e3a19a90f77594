"""DDL: CREATE, ALTER, DROP, TRUNCATE and COMMENT, executed in a storage transaction."""

from qserver.sql.ddl.perform import DEFINITIONS, perform

__all__ = ["DEFINITIONS", "perform"]
