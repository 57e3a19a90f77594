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
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeWhen,
    OnConflict,
    Update,
)
from qserver.sql.ast.definitions import (
    AlterAction,
    AlterTable,
    ColumnDefinition,
    CommentOn,
    Constraint,
    CreateEnum,
    CreateIndex,
    CreateSchema,
    CreateSequence,
    CreateTable,
    CreateView,
    Drop,
    Explain,
    ForeignKey,
    IndexItem,
    SetVariable,
    Show,
    TableLike,
    TransactionControl,
    Truncate,
)
from qserver.sql.ast.expressions import (
    ArrayItems,
    ArrayQuery,
    Between,
    Call,
    Case,
    Cast,
    Collate,
    Constant,
    Default,
    Exists,
    Expression,
    Field,
    Frame,
    InList,
    InQuery,
    Is,
    Like,
    Literal,
    Name,
    NamedArgument,
    Node,
    Operator,
    OrderItem,
    Parameter,
    Quantified,
    Row,
    Run,
    ScalarQuery,
    Star,
    Subscript,
    Transform,
    TypeName,
    Window,
    Word,
)
from qserver.sql.ast.queries import (
    CommonTable,
    Cycle,
    FromItem,
    FunctionRef,
    GroupingSets,
    Join,
    Locking,
    Query,
    QueryBody,
    RowsFrom,
    Search,
    Select,
    SetOperation,
    SubqueryRef,
    TableRef,
    TableSample,
    Target,
    Values,
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

__all__ = [
    "PLANNED",
    "AlterAction",
    "AlterTable",
    "ArrayItems",
    "ArrayQuery",
    "Assignment",
    "Between",
    "Call",
    "Case",
    "Cast",
    "Collate",
    "ColumnDefinition",
    "CommentOn",
    "CommonTable",
    "Constant",
    "Constraint",
    "CreateEnum",
    "CreateIndex",
    "CreateSchema",
    "CreateSequence",
    "CreateTable",
    "CreateView",
    "Cycle",
    "Default",
    "Delete",
    "Drop",
    "Exists",
    "Explain",
    "Expression",
    "Field",
    "ForeignKey",
    "Frame",
    "FromItem",
    "FunctionRef",
    "GroupingSets",
    "InList",
    "InQuery",
    "IndexItem",
    "Insert",
    "Is",
    "Join",
    "Like",
    "Literal",
    "Locking",
    "Merge",
    "MergeWhen",
    "Name",
    "NamedArgument",
    "Node",
    "OnConflict",
    "Operator",
    "OrderItem",
    "Parameter",
    "Quantified",
    "Query",
    "QueryBody",
    "Row",
    "RowsFrom",
    "Run",
    "ScalarQuery",
    "Search",
    "Select",
    "SetOperation",
    "SetVariable",
    "Show",
    "Star",
    "Statement",
    "SubqueryRef",
    "Subscript",
    "TableLike",
    "TableRef",
    "TableSample",
    "Target",
    "TransactionControl",
    "Transform",
    "Truncate",
    "TypeName",
    "Update",
    "Values",
    "Window",
    "Word",
]
