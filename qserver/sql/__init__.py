"""SQL: compiles the text of a statement into a Python function.

    text ─ fingerprint ─► fingerprint, literals ─► cached? ─── yes ───► function
                                                     │ no                  ▲
                                                     ▼                     │
    text ─ lexer ─► tokens ─ terminals ─► terminals ─ parser ─► AST        │
                                                                 │ binder  │
    logical plan, whose expressions are bound  ◄─────────────────┘         │
         │ optimizer                                                       │
    optimized plan ─ codegen ──────────────────────────────────────────────┘

    terminals, ddl_keywords     from words to the grammar's terminals
    grammar.lark, parser,       the LALR(1) grammar and its parser, and the limit on nesting
      depth
    ast, ast_builder            the AST, and its construction from grammar rules
    binder, expressions         name and type resolution, and the bound expressions it produces
    folding                     marks what is constant, to be computed before any row
    plan, walk,                 logical plans, how to traverse and rewrite them, and the keys of
      join_conditions             hash joins
    optimizer, explain          the optimizer rules, and EXPLAIN
    codegen, execution          from plan to Python source, and the interface of compiled code
    ddl                         CREATE, ALTER, DROP
    parameters,                 values that come beside the text
      parameter_steps
    prepare                     the way from an AST to a compiled plan
    described, positions        statements that are kept for later; the place of an error
    type_texts, printing        a type that stands in a text; expressions as PostgreSQL prints them
    stored_texts, shown_texts   names in texts of definitions: independent of search_path, and not
    statistics                  what is known of the rows, from the other rooms
    step_budget                 the budget of planning, in steps
    ports                       what this room needs from the catalog

The room is pure: no waiting, no clock, no randomness, no files. It reads the database through
ports, and the caller drives the generators that compiled code returns. Start with `prepare`,
then `ast`. Other rooms import what stands below, and nothing else.
"""

from __future__ import annotations

from qserver.sql import absent_kinds as absent_kinds
from qserver.sql import ast as ast
from qserver.sql.binder import Literals as Literals
from qserver.sql.binder.changes.current import with_row_key as with_row_key
from qserver.sql.binder.names.type_names import bind_type as bind_type
from qserver.sql.codegen import compile_statement as compile_statement
from qserver.sql.ddl import perform as perform
from qserver.sql.ddl.constraints import referenced_index as referenced_index
from qserver.sql.ddl.create_table import is_skipped as is_skipped
from qserver.sql.ddl.lasting import require_lasting as require_lasting
from qserver.sql.ddl.port import DdlPort as DdlPort
from qserver.sql.ddl.port import refuse_other_database as refuse_other_database
from qserver.sql.described import Described as Described
from qserver.sql.described import describe as describe
from qserver.sql.described import view_text as view_text
from qserver.sql.execution import Compiled as Compiled
from qserver.sql.execution import Rows as Rows
from qserver.sql.explain import Details as Details
from qserver.sql.explain import explain as explain
from qserver.sql.explain import explain_as_json as explain_as_json
from qserver.sql.expressions import Expression as Expression
from qserver.sql.expressions import RunRefused as RunRefused
from qserver.sql.live import check_live as check_live
from qserver.sql.live import explain_live as explain_live
from qserver.sql.live import linear_scan as linear_scan
from qserver.sql.measuring import Profile as Profile
from qserver.sql.optimizer import RULES as RULES
from qserver.sql.optimizer import Rule as Rule
from qserver.sql.parameter_steps import is_heavy as is_heavy
from qserver.sql.parameter_steps import slots_in_steps as slots_in_steps
from qserver.sql.parameters import Given as Given
from qserver.sql.parameters import PartlyDeclared as PartlyDeclared
from qserver.sql.parameters import json_of as json_of
from qserver.sql.parameters import types_of as types_of
from qserver.sql.parser import Parsed as Parsed
from qserver.sql.parser import load_grammar as load_grammar
from qserver.sql.parser import parse as parse
from qserver.sql.parser import parse_expression as parse_expression
from qserver.sql.plan import OutputColumn as OutputColumn
from qserver.sql.plan import Scan as Scan
from qserver.sql.positions import locate as locate
from qserver.sql.prepare import CompiledPlan as CompiledPlan
from qserver.sql.prepare import prepare as prepare
from qserver.sql.prepare import runs_on_snapshot as runs_on_snapshot
from qserver.sql.prepare import statement_inside as statement_inside
from qserver.sql.printing import StoredExpression as StoredExpression
from qserver.sql.shown_texts import NamesPort as NamesPort
from qserver.sql.shown_texts import shown_query as shown_query
from qserver.sql.statistics import UNKNOWN as UNKNOWN
from qserver.sql.statistics import End as End
from qserver.sql.statistics import Sizes as Sizes
from qserver.sql.statistics import Statistics as Statistics
from qserver.sql.statistics import value_of_literal as value_of_literal
from qserver.sql.step_budget import NotShort as NotShort
from qserver.sql.step_budget import StepBudget as StepBudget
from qserver.sql.type_texts import type_of_text as type_of_text
from qserver.sql.view_facts import view_facts as view_facts
