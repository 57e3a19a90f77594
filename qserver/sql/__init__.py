"""SQL: from the text of a statement to a Python function that carries it out.

    text ─► fingerprint, literals ─► cached? ────────────────────────────────────────► function
                                       │ no                                             ▲
    text ─ lexer ─► tokens ─ terminals ─► grammar ─ builder ─► syntax                   │
                                                                 │ binder               │
                                                               bound ─ plan ─ rules ─ codegen

    fingerprint, value_rows         the statement without its literals, for each request and fast
    lexer, literals,            what a token is, and what a literal is worth
      string_escapes
    keywords, ddl_words, which word is a keyword where
      terminals
    grammar.lark, parser,       the grammar, and AST nodes from what it recognizes
      builder, depth
    syntax                      what a statement says
    binder, bound               what its names mean
    plan, rules, explain        how it will be answered, optimized step by step, and shown
    codegen, execution          the plan as Python source; what runs it
    functions                   what can be called and computed
    definitions                 CREATE, ALTER, DROP
    ports, parameters           what this room reads through; values that come beside the text

The room is pure: no waiting, no clock, no chance, no files. It asks the database through ports, and
whoever runs a function decides when. Start with `fingerprint`, then `ast`.
"""
