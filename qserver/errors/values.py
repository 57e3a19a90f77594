"""Class 22: a value is wrong, or does not fit where it should go."""

from __future__ import annotations

from qserver.errors.error import QserverError

# --- class 22: a value is wrong ------------------------------------------------------------------


class DataError(QserverError):
    """The caller's fault: a value does not fit where it should go. Retrying cannot help."""

    code = "22000"
    name = "data_exception"


class NumericValueOutOfRange(DataError):
    """The caller's fault: a number is too large for its type. Retrying cannot help."""

    code = "22003"


class InvalidTextRepresentation(DataError):
    """The caller's fault: a text does not spell a value of the type. Retrying cannot help."""

    code = "22P02"
    is_body = False
    """It is the body of the request that is no text of its kind, not a value in it."""


class StringDataRightTruncation(DataError):
    """The caller's fault: a text is longer than its column allows. Retrying cannot help."""

    code = "22001"


class CharacterNotInRepertoire(DataError):
    """The caller's fault: a text holds what UTF-8 text cannot. Retrying cannot help."""

    code = "22021"


class DivisionByZero(DataError):
    """The caller's fault: something was divided by zero. Retrying cannot help."""

    code = "22012"


class DatetimeFieldOverflow(DataError):
    """The caller's fault: a date or time that the calendar or our range lacks. Do not retry."""

    code = "22008"


class InvalidTimeZoneDisplacement(DataError):
    """The caller's fault: an offset from UTC that no zone can have. Retrying cannot help."""

    code = "22009"
    name = "invalid_time_zone_displacement_value"


class InvalidDatetimeFormat(DataError):
    """The caller's fault: a text does not spell a date or time. Retrying cannot help."""

    code = "22007"


class InvalidParameterValue(DataError):
    """The caller's fault: a parameter lies outside of what is allowed. Retrying cannot help."""

    code = "22023"


class SubstringError(DataError):
    """The caller's fault: a piece of negative length was asked for. Retrying cannot help."""

    code = "22011"


class InvalidEscapeSequence(DataError):
    """The caller's fault: a pattern ends with its escape character. Retrying cannot help."""

    code = "22025"


class InvalidRegularExpression(DataError):
    """The caller's fault: a regular expression cannot be read. Retrying cannot help."""

    code = "2201B"


class InvalidUseOfEscapeCharacter(DataError):
    """The caller's fault: the parts of a SIMILAR pattern are not well separated. Do not retry."""

    code = "2200C"


class InvalidArgumentForLogarithm(DataError):
    """The caller's fault: only positive numbers have a logarithm. Retrying cannot help."""

    code = "2201E"


class InvalidArgumentForPower(DataError):
    """The caller's fault: this power or root is no real number. Retrying cannot help."""

    code = "2201F"
    name = "invalid_argument_for_power_function"


class InvalidArgumentForWidthBucket(DataError):
    """The caller's fault: the buckets of a histogram make no sense. Retrying cannot help."""

    code = "2201G"
    name = "invalid_argument_for_width_bucket_function"


class IntervalFieldOverflow(DataError):
    """The caller's fault: a part of an interval is too large. Retrying cannot help."""

    code = "22015"


class UntranslatableCharacter(DataError):
    """The caller's fault: an escape stands for a character no text can hold. Do not retry."""

    code = "22P05"


class NullValueNotAllowed(DataError):
    """The caller's fault: NULL where a function needs a value. Retrying cannot help."""

    code = "22004"


class ArraySubscriptError(DataError):
    """The caller's fault: an array's shape does not fit, or has no such place. Do not retry."""

    code = "2202E"


# --- SQL/JSON paths ------------------------------------------------------------------------------


class InvalidArgumentForJsonDatetime(DataError):
    """The caller's fault: a text in JSON is no date or time of the template. Do not retry."""

    code = "22031"
    name = "invalid_argument_for_sql_json_datetime_function"


class InvalidJsonSubscript(DataError):
    """The caller's fault: a path asks for an element that an array does not have. Do not retry."""

    code = "22033"
    name = "invalid_sql_json_subscript"


class NonNumericJsonItem(DataError):
    """The caller's fault: a path wants a number where JSON has none. Retrying cannot help."""

    code = "22036"
    name = "non_numeric_sql_json_item"


class SingletonJsonItemRequired(DataError):
    """The caller's fault: a path finds none or several where it needs one. Do not retry."""

    code = "22038"
    name = "singleton_sql_json_item_required"


class JsonArrayNotFound(DataError):
    """The caller's fault: a path wants an array where JSON has none. Retrying cannot help."""

    code = "22039"
    name = "sql_json_array_not_found"


class JsonMemberNotFound(DataError):
    """The caller's fault: a path wants a member that an object does not have. Do not retry."""

    code = "2203A"
    name = "sql_json_member_not_found"


class JsonNumberNotFound(DataError):
    """The caller's fault: a path gives a sign to what is no number. Retrying cannot help."""

    code = "2203B"
    name = "sql_json_number_not_found"


class JsonObjectNotFound(DataError):
    """The caller's fault: a path wants an object where JSON has none. Retrying cannot help."""

    code = "2203C"
    name = "sql_json_object_not_found"
