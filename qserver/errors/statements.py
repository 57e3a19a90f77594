"""Classes 0A, 23, 42 and 44: a statement is wrong, or a constraint does not hold."""

from __future__ import annotations

from qserver.errors.error import QserverError
from qserver.errors.values import DataError

# --- class 23: a constraint does not hold --------------------------------------------------------


class IntegrityError(QserverError):
    """The caller's fault: a constraint would not hold. A retry helps only if the data changes."""

    code = "23000"
    name = "integrity_constraint_violation"


class NotNullViolation(IntegrityError):
    """The caller's fault: NULL in a NOT NULL column. Retrying cannot help."""

    code = "23502"


class ForeignKeyViolation(IntegrityError):
    """The caller's fault: a referenced row is missing, or still referenced. Do not retry."""

    code = "23503"


class UniqueViolation(IntegrityError):
    """The caller's fault: the key exists already. Do not retry."""

    code = "23505"


class CheckViolation(IntegrityError):
    """The caller's fault: a row fails a CHECK. Retrying cannot help."""

    code = "23514"


class WithCheckOptionViolation(QserverError):
    """The caller's fault: a view WITH CHECK OPTION would not show the row. Do not retry."""

    code = "44000"
    name = "with_check_option_violation"


# --- classes 0A and 42: the statement is wrong ---------------------------------------------------


class StatementError(QserverError):
    """The caller's fault: the statement does not fit the database. Retrying cannot help."""

    code = "42000"
    name = "syntax_error_or_access_rule_violation"


class FeatureNotSupported(StatementError):
    """The caller's fault, or ours: this cannot be done here. Retrying cannot help."""

    code = "0A000"


class DatatypeMismatch(StatementError):
    """The caller's fault: a value or expression is of another type. Retrying cannot help."""

    code = "42804"


class CannotCoerce(StatementError):
    """The caller's fault: no cast leads from one type to the other. Retrying cannot help."""

    code = "42846"


class UndefinedTable(StatementError):
    """The caller's fault: there is no such table. Do not retry."""

    code = "42P01"


class UndefinedColumn(StatementError):
    """The caller's fault: there is no such column. Do not retry."""

    code = "42703"


class UndefinedObject(StatementError):
    """The caller's fault: there is no such index, type or other thing. Do not retry."""

    code = "42704"


class DuplicateTable(StatementError):
    """The caller's fault: a table or index of that name exists. Do not retry."""

    code = "42P07"


class DuplicateColumn(StatementError):
    """The caller's fault: a column of that name exists. Do not retry."""

    code = "42701"


class InvalidColumnDefinition(StatementError):
    """The caller's fault: a column cannot be defined like that. Retrying cannot help."""

    code = "42611"


class InvalidTableDefinition(StatementError):
    """The caller's fault: a table cannot be defined like that. Retrying cannot help."""

    code = "42P16"


class InvalidName(StatementError):
    """The caller's fault: a name is empty or has characters it cannot have. Do not retry."""

    code = "42602"


class NameTooLong(StatementError):
    """The caller's fault: a name is longer than names may be. Retrying cannot help."""

    code = "42622"


class UndefinedFunction(StatementError):
    """The caller's fault: no function or operator takes these arguments. Do not retry."""

    code = "42883"


class AmbiguousFunction(StatementError):
    """The caller's fault: several functions or operators would do as well. Do not retry."""

    code = "42725"


class AmbiguousColumn(StatementError):
    """The caller's fault: a name could mean two columns. Retrying cannot help."""

    code = "42702"


class AmbiguousAlias(StatementError):
    """The caller's fault: a name could mean two tables of FROM. Retrying cannot help."""

    code = "42P09"


class DuplicateAlias(StatementError):
    """The caller's fault: two tables of FROM have one name. Retrying cannot help."""

    code = "42712"


class GroupingError(StatementError):
    """The caller's fault: a column or aggregate stands where grouping forbids it. Do not retry."""

    code = "42803"


class WindowingError(StatementError):
    """The caller's fault: a window or its function stands where none may. Do not retry."""

    code = "42P20"


class InvalidColumnReference(StatementError):
    """The caller's fault: a column cannot be meant in that place. Retrying cannot help."""

    code = "42P10"


class SqlSyntaxError(StatementError):
    """The caller's fault: this is not SQL, or a list is too long or too short. Do not retry."""

    code = "42601"
    name = "syntax_error"


class IndeterminateDatatype(StatementError):
    """The caller's fault: nothing says which type a value has. Retrying cannot help."""

    code = "42P18"


class UndefinedParameter(StatementError):
    """The caller's fault: no value was sent for a parameter. Retrying cannot help."""

    code = "42P02"


class InvalidRecursion(StatementError):
    """The caller's fault: a query refers to itself in a way that cannot be. Do not retry."""

    code = "42P19"


class GeneratedAlways(StatementError):
    """The caller's fault: a value for a column that the database fills. Do not retry."""

    code = "428C9"


class WrongObjectType(StatementError):
    """The caller's fault: the thing of that name is of another kind. Retrying cannot help."""

    code = "42809"


# --- definitions ---------------------------------------------------------------------------------


class DuplicateObject(StatementError):
    """The caller's fault: a constraint, type or other thing of that name exists. Do not retry."""

    code = "42710"


class ReservedName(StatementError):
    """The caller's fault: the name is one that the system keeps for itself. Do not retry."""

    code = "42939"
    name = "reserved_name"


class DuplicateSchema(StatementError):
    """The caller's fault: a schema of that name exists. Do not retry."""

    code = "42P06"


class InvalidGrant(StatementError):
    """The caller's fault: things of that kind have no such right. Retrying cannot help."""

    code = "0LP01"
    name = "invalid_grant_operation"


class UndefinedSchema(StatementError):
    """The caller's fault: there is no such schema. Do not retry."""

    code = "3F000"
    name = "invalid_schema_name"


class InvalidObjectDefinition(StatementError):
    """The caller's fault: what is defined contradicts itself. Retrying cannot help."""

    code = "42P17"


class InvalidForeignKey(StatementError):
    """The caller's fault: the columns that are referenced are no key. Retrying cannot help."""

    code = "42830"


class DependentObjectsStillExist(StatementError):
    """The caller's fault: something else needs what should go. Drop that first, or CASCADE."""

    code = "2BP01"


class NotInPrerequisiteState(StatementError):
    """The caller's fault: something else has to happen first. Retrying cannot help."""

    code = "55000"
    name = "object_not_in_prerequisite_state"


class CannotChangeSetting(StatementError):
    """The caller's fault: the setting cannot be changed by a statement. Retrying cannot help."""

    code = "55P02"
    name = "cant_change_runtime_param"


class SequenceLimitExceeded(DataError):
    """The caller's fault: a sequence has come to its end. Retrying cannot help."""

    code = "2200H"
    name = "sequence_generator_limit_exceeded"


class ActiveTransaction(StatementError):
    """The caller's fault: a request is a transaction already. Retrying cannot help."""

    code = "25001"
    name = "active_sql_transaction"


class NoActiveTransaction(StatementError):
    """The caller's fault: the statement makes sense in a transaction only. Retrying cannot help."""

    code = "25P01"
    name = "no_active_sql_transaction"


class FailedTransaction(StatementError):
    """The caller's fault: an earlier statement of the open transaction failed. Roll back, as a
    whole or to a savepoint."""

    code = "25P02"
    name = "in_failed_sql_transaction"


class InvalidSavepoint(StatementError):
    """The caller's fault: there is no savepoint of that name. Retrying cannot help."""

    code = "3B001"
    name = "invalid_savepoint_specification"


class ProtocolViolation(QserverError):
    """The caller's fault: parameters and statement do not belong together. Do not retry."""

    code = "08P01"
