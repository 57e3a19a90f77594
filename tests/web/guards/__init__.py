"""One table of all guards: what each does to each kind of statement, by each way to send it."""
