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

from qserver.sql.ast.changes import (
    Assignment as Assignment,
    Delete as Delete,
    Insert as Insert,
    Merge as Merge,
    MergeWhen as MergeWhen,
    OnConflict as OnConflict,
    Update as Update,
)
from qserver.sql.ast.definitions import (
    AlterAction as AlterAction,
    AlterTable as AlterTable,
    ColumnDefinition as ColumnDefinition,
    CommentOn as CommentOn,
    Constraint as Constraint,
    CreateEnum as CreateEnum,
    CreateIndex as CreateIndex,
    CreateSchema as CreateSchema,
    CreateSequence as CreateSequence,
    CreateTable as CreateTable,
    CreateView as CreateView,
    Drop as Drop,
    Explain as Explain,
    ForeignKey as ForeignKey,
    IndexItem as IndexItem,
    SetVariable as SetVariable,
    Show as Show,
    TableLike as TableLike,
    TransactionControl as TransactionControl,
    Truncate as Truncate,
)
from qserver.sql.ast.expressions import (
    ArrayItems as ArrayItems,
    ArrayQuery as ArrayQuery,
    Between as Between,
    Call as Call,
    Case as Case,
    Cast as Cast,
    Collate as Collate,
    Constant as Constant,
    Default as Default,
    Exists as Exists,
    Expression as Expression,
    Field as Field,
    Frame as Frame,
    InList as InList,
    InQuery as InQuery,
    Is as Is,
    Like as Like,
    Literal as Literal,
    Name as Name,
    NamedArgument as NamedArgument,
    Node as Node,
    Operator as Operator,
    OrderItem as OrderItem,
    Parameter as Parameter,
    Quantified as Quantified,
    Row as Row,
    Run as Run,
    ScalarQuery as ScalarQuery,
    Star as Star,
    Subscript as Subscript,
    Transform as Transform,
    TypeName as TypeName,
    Window as Window,
    Word as Word,
)
from qserver.sql.ast.queries import (
    CommonTable as CommonTable,
    Cycle as Cycle,
    FromItem as FromItem,
    FunctionRef as FunctionRef,
    GroupingSets as GroupingSets,
    Join as Join,
    Locking as Locking,
    Query as Query,
    QueryBody as QueryBody,
    RowsFrom as RowsFrom,
    Search as Search,
    Select as Select,
    SetOperation as SetOperation,
    SubqueryRef as SubqueryRef,
    TableRef as TableRef,
    TableSample as TableSample,
    Target as Target,
    Values as Values,
)

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
    | TransactionControl
)

PLANNED = (Query, Insert, Update, Delete, Merge)
"""The statements that have a plan."""
