"""`make docs` writes the generated files of the docs; `tests/test_docs.py` compares them."""

from __future__ import annotations

from docs.generate.pages import generated


def main() -> None:
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
