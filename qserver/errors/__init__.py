"""The error classes: every failure that a user, a disk or a clock can cause.

Each class is one condition of PostgreSQL, with its SQLSTATE code and its name, and answers a
caller's three questions:

    whose fault is it?     the docstring says
    was anything applied?  `applied`: NO, or UNKNOWN if only the log can tell
    may I try again?       `retryable`: the same request, unchanged, may succeed later

Our own mistakes are not here; they are `assert`s. The package imports nothing of qserver, so that
every other package, and the client, may import it.
"""

from __future__ import annotations

from qserver.errors.error import Applied as Applied
from qserver.errors.error import QserverError as QserverError
from qserver.errors.groups import first_of as first_of
from qserver.errors.plain import error_from_plain as error_from_plain
from qserver.errors.plain import error_to_plain as error_to_plain
from qserver.errors.requests import CardinalityViolation as CardinalityViolation
from qserver.errors.requests import ChangeUnconfirmed as ChangeUnconfirmed
from qserver.errors.requests import DatabaseDropped as DatabaseDropped
from qserver.errors.requests import DatabaseMoved as DatabaseMoved
from qserver.errors.requests import DatabaseUnavailable as DatabaseUnavailable
from qserver.errors.requests import DataCorrupted as DataCorrupted
from qserver.errors.requests import DataInUse as DataInUse
from qserver.errors.requests import DataUnknown as DataUnknown
from qserver.errors.requests import DeadlockDetected as DeadlockDetected
from qserver.errors.requests import DiskFull as DiskFull
from qserver.errors.requests import InvalidArgumentForNthValue as InvalidArgumentForNthValue
from qserver.errors.requests import InvalidArgumentForNtile as InvalidArgumentForNtile
from qserver.errors.requests import InvalidFrameOffset as InvalidFrameOffset
from qserver.errors.requests import InvalidRowCountInLimit as InvalidRowCountInLimit
from qserver.errors.requests import InvalidRowCountInOffset as InvalidRowCountInOffset
from qserver.errors.requests import LogFailed as LogFailed
from qserver.errors.requests import LogTaken as LogTaken
from qserver.errors.requests import NotFreshEnough as NotFreshEnough
from qserver.errors.requests import OutcomeUnknown as OutcomeUnknown
from qserver.errors.requests import OutOfMemory as OutOfMemory
from qserver.errors.requests import PageUnreadable as PageUnreadable
from qserver.errors.requests import ProgramLimitExceeded as ProgramLimitExceeded
from qserver.errors.requests import QueryCanceled as QueryCanceled
from qserver.errors.requests import ReadOnlyTransaction as ReadOnlyTransaction
from qserver.errors.requests import SerializationFailure as SerializationFailure
from qserver.errors.requests import StatementTooComplex as StatementTooComplex
from qserver.errors.requests import TooManyAffected as TooManyAffected
from qserver.errors.requests import TooManyColumns as TooManyColumns
from qserver.errors.requests import TooManyRequests as TooManyRequests
from qserver.errors.service import AlreadyExists as AlreadyExists
from qserver.errors.service import CannotListen as CannotListen
from qserver.errors.service import Forbidden as Forbidden
from qserver.errors.service import HistoryTooOld as HistoryTooOld
from qserver.errors.service import IdempotencyMismatch as IdempotencyMismatch
from qserver.errors.service import InvalidRequest as InvalidRequest
from qserver.errors.service import InvalidSetting as InvalidSetting
from qserver.errors.service import MethodNotAllowed as MethodNotAllowed
from qserver.errors.service import NotAcceptable as NotAcceptable
from qserver.errors.service import NotFound as NotFound
from qserver.errors.service import RateLimited as RateLimited
from qserver.errors.service import ReaderTooSlow as ReaderTooSlow
from qserver.errors.service import RequestInProgress as RequestInProgress
from qserver.errors.service import RequestTooLarge as RequestTooLarge
from qserver.errors.service import StorageTestFailed as StorageTestFailed
from qserver.errors.service import TooManyOpen as TooManyOpen
from qserver.errors.service import TransactionNotFound as TransactionNotFound
from qserver.errors.service import Unauthorized as Unauthorized
from qserver.errors.service import UnsupportedMediaType as UnsupportedMediaType
from qserver.errors.service import WrongHost as WrongHost
from qserver.errors.statements import ActiveTransaction as ActiveTransaction
from qserver.errors.statements import AmbiguousAlias as AmbiguousAlias
from qserver.errors.statements import AmbiguousColumn as AmbiguousColumn
from qserver.errors.statements import AmbiguousFunction as AmbiguousFunction
from qserver.errors.statements import CannotChangeSetting as CannotChangeSetting
from qserver.errors.statements import CannotCoerce as CannotCoerce
from qserver.errors.statements import CheckViolation as CheckViolation
from qserver.errors.statements import DatatypeMismatch as DatatypeMismatch
from qserver.errors.statements import DependentObjectsStillExist as DependentObjectsStillExist
from qserver.errors.statements import DuplicateAlias as DuplicateAlias
from qserver.errors.statements import DuplicateColumn as DuplicateColumn
from qserver.errors.statements import DuplicateObject as DuplicateObject
from qserver.errors.statements import DuplicateSchema as DuplicateSchema
from qserver.errors.statements import DuplicateTable as DuplicateTable
from qserver.errors.statements import FailedTransaction as FailedTransaction
from qserver.errors.statements import FeatureNotSupported as FeatureNotSupported
from qserver.errors.statements import ForeignKeyViolation as ForeignKeyViolation
from qserver.errors.statements import GeneratedAlways as GeneratedAlways
from qserver.errors.statements import GroupingError as GroupingError
from qserver.errors.statements import IndeterminateDatatype as IndeterminateDatatype
from qserver.errors.statements import IntegrityError as IntegrityError
from qserver.errors.statements import InvalidColumnDefinition as InvalidColumnDefinition
from qserver.errors.statements import InvalidColumnReference as InvalidColumnReference
from qserver.errors.statements import InvalidForeignKey as InvalidForeignKey
from qserver.errors.statements import InvalidGrant as InvalidGrant
from qserver.errors.statements import InvalidName as InvalidName
from qserver.errors.statements import InvalidObjectDefinition as InvalidObjectDefinition
from qserver.errors.statements import InvalidRecursion as InvalidRecursion
from qserver.errors.statements import InvalidSavepoint as InvalidSavepoint
from qserver.errors.statements import InvalidTableDefinition as InvalidTableDefinition
from qserver.errors.statements import NameTooLong as NameTooLong
from qserver.errors.statements import NoActiveTransaction as NoActiveTransaction
from qserver.errors.statements import NotInPrerequisiteState as NotInPrerequisiteState
from qserver.errors.statements import NotNullViolation as NotNullViolation
from qserver.errors.statements import ProtocolViolation as ProtocolViolation
from qserver.errors.statements import ReservedName as ReservedName
from qserver.errors.statements import SequenceLimitExceeded as SequenceLimitExceeded
from qserver.errors.statements import SqlSyntaxError as SqlSyntaxError
from qserver.errors.statements import StatementError as StatementError
from qserver.errors.statements import UndefinedColumn as UndefinedColumn
from qserver.errors.statements import UndefinedFunction as UndefinedFunction
from qserver.errors.statements import UndefinedObject as UndefinedObject
from qserver.errors.statements import UndefinedParameter as UndefinedParameter
from qserver.errors.statements import UndefinedSchema as UndefinedSchema
from qserver.errors.statements import UndefinedTable as UndefinedTable
from qserver.errors.statements import UniqueViolation as UniqueViolation
from qserver.errors.statements import WindowingError as WindowingError
from qserver.errors.statements import WithCheckOptionViolation as WithCheckOptionViolation
from qserver.errors.statements import WrongObjectType as WrongObjectType
from qserver.errors.values import ArraySubscriptError as ArraySubscriptError
from qserver.errors.values import CharacterNotInRepertoire as CharacterNotInRepertoire
from qserver.errors.values import DataError as DataError
from qserver.errors.values import DatetimeFieldOverflow as DatetimeFieldOverflow
from qserver.errors.values import DivisionByZero as DivisionByZero
from qserver.errors.values import IntervalFieldOverflow as IntervalFieldOverflow
from qserver.errors.values import InvalidArgumentForLogarithm as InvalidArgumentForLogarithm
from qserver.errors.values import InvalidArgumentForPower as InvalidArgumentForPower
from qserver.errors.values import InvalidArgumentForWidthBucket as InvalidArgumentForWidthBucket
from qserver.errors.values import InvalidDatetimeFormat as InvalidDatetimeFormat
from qserver.errors.values import InvalidEscapeSequence as InvalidEscapeSequence
from qserver.errors.values import InvalidParameterValue as InvalidParameterValue
from qserver.errors.values import InvalidRegularExpression as InvalidRegularExpression
from qserver.errors.values import InvalidTextRepresentation as InvalidTextRepresentation
from qserver.errors.values import InvalidTimeZoneDisplacement as InvalidTimeZoneDisplacement
from qserver.errors.values import InvalidUseOfEscapeCharacter as InvalidUseOfEscapeCharacter
from qserver.errors.values import NullValueNotAllowed as NullValueNotAllowed
from qserver.errors.values import NumericValueOutOfRange as NumericValueOutOfRange
from qserver.errors.values import StringDataRightTruncation as StringDataRightTruncation
from qserver.errors.values import SubstringError as SubstringError
from qserver.errors.values import UntranslatableCharacter as UntranslatableCharacter
from qserver.errors.wire import BadCopyFileFormat as BadCopyFileFormat
from qserver.errors.wire import DuplicateCursor as DuplicateCursor
from qserver.errors.wire import DuplicatePreparedStatement as DuplicatePreparedStatement
from qserver.errors.wire import IdleInTransaction as IdleInTransaction
from qserver.errors.wire import InvalidAuthorization as InvalidAuthorization
from qserver.errors.wire import InvalidBinaryRepresentation as InvalidBinaryRepresentation
from qserver.errors.wire import InvalidCursorName as InvalidCursorName
from qserver.errors.wire import InvalidCursorState as InvalidCursorState
from qserver.errors.wire import InvalidPassword as InvalidPassword
from qserver.errors.wire import InvalidStatementName as InvalidStatementName
from qserver.errors.wire import SessionEnded as SessionEnded
from qserver.errors.wire import UnknownDatabase as UnknownDatabase
