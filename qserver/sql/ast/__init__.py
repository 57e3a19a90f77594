"""The AST: statements before name resolution.

Nodes are frozen; `position` is the offset of the first character, for errors. The parser creates
them; the binder and DDL read them.

A literal is a slot, not a value: `Literal.index` numbers the literals of the statement, and the
values come with each execution, so one AST serves every statement of the same fingerprint. Where
the meaning depends on the value (ORDER BY 1, VARCHAR(20)), the binder makes the value part of the
fingerprint.
"""

from __future__ import annotations

from typing import TypeAlias

from qserver.sql.ast.changes import Assignment as Assignment
from qserver.sql.ast.changes import CurrentOf as CurrentOf
from qserver.sql.ast.changes import Delete as Delete
from qserver.sql.ast.changes import Insert as Insert
from qserver.sql.ast.changes import Merge as Merge
from qserver.sql.ast.changes import MergeWhen as MergeWhen
from qserver.sql.ast.changes import OnConflict as OnConflict
from qserver.sql.ast.changes import Update as Update
from qserver.sql.ast.definitions import AlterAction as AlterAction
from qserver.sql.ast.definitions import AlterTable as AlterTable
from qserver.sql.ast.definitions import ColumnDefinition as ColumnDefinition
from qserver.sql.ast.definitions import CommentOn as CommentOn
from qserver.sql.ast.definitions import Constraint as Constraint
from qserver.sql.ast.definitions import CreateEnum as CreateEnum
from qserver.sql.ast.definitions import CreateIndex as CreateIndex
from qserver.sql.ast.definitions import CreateSchema as CreateSchema
from qserver.sql.ast.definitions import CreateSequence as CreateSequence
from qserver.sql.ast.definitions import CreateTable as CreateTable
from qserver.sql.ast.definitions import CreateView as CreateView
from qserver.sql.ast.definitions import Drop as Drop
from qserver.sql.ast.definitions import Explain as Explain
from qserver.sql.ast.definitions import ForeignKey as ForeignKey
from qserver.sql.ast.definitions import IndexItem as IndexItem
from qserver.sql.ast.definitions import SetConstraints as SetConstraints
from qserver.sql.ast.definitions import SetVariable as SetVariable
from qserver.sql.ast.definitions import Show as Show
from qserver.sql.ast.definitions import TableLike as TableLike
from qserver.sql.ast.definitions import TransactionControl as TransactionControl
from qserver.sql.ast.definitions import Truncate as Truncate
from qserver.sql.ast.expressions import ArrayItems as ArrayItems
from qserver.sql.ast.expressions import ArrayQuery as ArrayQuery
from qserver.sql.ast.expressions import Between as Between
from qserver.sql.ast.expressions import Call as Call
from qserver.sql.ast.expressions import Case as Case
from qserver.sql.ast.expressions import Cast as Cast
from qserver.sql.ast.expressions import Collate as Collate
from qserver.sql.ast.expressions import Constant as Constant
from qserver.sql.ast.expressions import Default as Default
from qserver.sql.ast.expressions import Exists as Exists
from qserver.sql.ast.expressions import Expression as Expression
from qserver.sql.ast.expressions import Field as Field
from qserver.sql.ast.expressions import Frame as Frame
from qserver.sql.ast.expressions import InList as InList
from qserver.sql.ast.expressions import InQuery as InQuery
from qserver.sql.ast.expressions import Is as Is
from qserver.sql.ast.expressions import KeyColumn as KeyColumn
from qserver.sql.ast.expressions import Like as Like
from qserver.sql.ast.expressions import Literal as Literal
from qserver.sql.ast.expressions import Name as Name
from qserver.sql.ast.expressions import NamedArgument as NamedArgument
from qserver.sql.ast.expressions import Node as Node
from qserver.sql.ast.expressions import Operator as Operator
from qserver.sql.ast.expressions import OrderItem as OrderItem
from qserver.sql.ast.expressions import Parameter as Parameter
from qserver.sql.ast.expressions import Quantified as Quantified
from qserver.sql.ast.expressions import Row as Row
from qserver.sql.ast.expressions import Run as Run
from qserver.sql.ast.expressions import ScalarQuery as ScalarQuery
from qserver.sql.ast.expressions import Star as Star
from qserver.sql.ast.expressions import Subscript as Subscript
from qserver.sql.ast.expressions import Transform as Transform
from qserver.sql.ast.expressions import TypeName as TypeName
from qserver.sql.ast.expressions import Window as Window
from qserver.sql.ast.expressions import Word as Word
from qserver.sql.ast.queries import CommonTable as CommonTable
from qserver.sql.ast.queries import Cycle as Cycle
from qserver.sql.ast.queries import FromItem as FromItem
from qserver.sql.ast.queries import FunctionRef as FunctionRef
from qserver.sql.ast.queries import GroupingSets as GroupingSets
from qserver.sql.ast.queries import Join as Join
from qserver.sql.ast.queries import Locking as Locking
from qserver.sql.ast.queries import Query as Query
from qserver.sql.ast.queries import QueryBody as QueryBody
from qserver.sql.ast.queries import RowsFrom as RowsFrom
from qserver.sql.ast.queries import Search as Search
from qserver.sql.ast.queries import Select as Select
from qserver.sql.ast.queries import SetOperation as SetOperation
from qserver.sql.ast.queries import SubqueryRef as SubqueryRef
from qserver.sql.ast.queries import TableRef as TableRef
from qserver.sql.ast.queries import TableSample as TableSample
from qserver.sql.ast.queries import Target as Target
from qserver.sql.ast.queries import Values as Values
from qserver.sql.ast.sessions import Administer as Administer
from qserver.sql.ast.sessions import Close as Close
from qserver.sql.ast.sessions import Deallocate as Deallocate
from qserver.sql.ast.sessions import Declare as Declare
from qserver.sql.ast.sessions import Discard as Discard
from qserver.sql.ast.sessions import Execute as Execute
from qserver.sql.ast.sessions import Fetch as Fetch
from qserver.sql.ast.sessions import Grant as Grant
from qserver.sql.ast.sessions import Listen as Listen
from qserver.sql.ast.sessions import Lock as Lock
from qserver.sql.ast.sessions import Maintain as Maintain
from qserver.sql.ast.sessions import Notify as Notify
from qserver.sql.ast.sessions import Prepare as Prepare

Statement: TypeAlias = (
    Query
    | Insert
    | Update
    | Delete
    | Merge
    | CreateTable
    | CreateIndex
    | CreateView
    | CreateSequence
    | CreateEnum
    | CreateSchema
    | Drop
    | Truncate
    | AlterTable
    | CommentOn
    | Explain
    | Show
    | SetVariable
    | SetConstraints
    | TransactionControl
    | Close
    | Deallocate
    | Declare
    | Discard
    | Execute
    | Fetch
    | Administer
    | Grant
    | Listen
    | Lock
    | Maintain
    | Notify
    | Prepare
)

PLANNED = (Query, Insert, Update, Delete, Merge)
"""The statements that have a plan."""
