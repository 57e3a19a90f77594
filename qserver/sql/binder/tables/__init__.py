"""What stands in FROM: tables, joins, subqueries, common tables and views."""
