"""Code generation: prints a plan as the source of one Python function."""

from qserver.sql.codegen.compile import compile_statement

__all__ = ["compile_statement"]
