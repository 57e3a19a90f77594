"""`qserver backup --continuous`, `--list`, and `restore` and `check` of what that has made."""
