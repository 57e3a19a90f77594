"""`qserver backup`, `restore` and `check`: a data folder as a whole, without going over HTTP."""
