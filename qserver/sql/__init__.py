"""SQL: compiles the text of a statement into a Python function.

    text ─ fingerprint ─► fingerprint, literals ─► cached? ─── yes ───► function
                                                     │ no                  ▲
                                                     ▼                     │
    text ─ lexer ─► tokens ─ terminals ─► terminals ─ parser ─► AST        │
                                                                 │ binder  │
    logical plan, whose expressions are bound  ◄─────────────────┘         │
         │ optimizer                                                       │
    optimized plan ─ codegen ──────────────────────────────────────────────┘

    fingerprint, value_rows     the statement without its literals, and multi-row VALUES as data
    lexer, literals,            tokens, and the values of literals
      string_escapes
    keywords, ddl_keywords,        from words to the grammar's terminals
      terminals
    grammar.lark, parser,       the LALR(1) grammar and its parser, and the limit on nesting
      depth
    ast, ast_builder            the AST, and its construction from grammar rules
    binder, expressions         name and type resolution, and the bound expressions it produces
    folding                     marks what is constant, to be computed before any row
    plan, walk,                 logical plans, how to traverse and rewrite them, and the keys of
      join_conditions             hash joins
    optimizer, explain          the optimizer rules, and EXPLAIN
    codegen, execution          from plan to Python source, and the interface of compiled code
    functions/                  functions and operators by family: aggregates, arrays, datetime,
                                  json, numbers, regex, text
    ddl                         CREATE, ALTER, DROP
    parameters,                 values that come beside the text
      parameter_steps
    step_budget                 the budget of planning, in steps
    ports                       what this room needs from the catalog

The room is pure: no waiting, no clock, no randomness, no files. It reads the database through
ports, and the caller drives the generators that compiled code returns. Start with `fingerprint`,
then `ast`.
"""
