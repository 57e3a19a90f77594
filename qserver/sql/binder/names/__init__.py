"""Names: of relations, columns and types, and the scopes in which they are found."""
