# Needs Python 3.11 or newer, make, git and a C compiler. Everything else goes into .venv.

# Which Python makes .venv: the first of python3.11 and python3 that is new enough.
PYTHON ?=
# The seeds of `make simulate`: one number, or a range such as 1..1000.
SEEDS ?= 1..1000
# How often `make torture` kills the server, and the seed of a run that is to be repeated (also for
# `make powerloss`).
KILLS ?= 200
SEED ?=
# How many faults `make processes-torture`, `make log-torture` and `make cluster-torture` cause.
FAULTS ?= 100
# How long `make powerloss` goes on.
MINUTES ?= 10
# How much `make differential` runs: so many statements, or for so many seconds (also for
# `make hostile`; without it, each attack is sent once).
STATEMENTS ?= 20000
SECONDS ?=
# Set it (SIDE_BY_SIDE=1) for `make hostile` to compare an organization alone and beside a hostile one.
SIDE_BY_SIDE ?=
# Set it (LARGE=1) for `make differential` over tables of thousands of rows.
LARGE ?=
# How many queries `make metamorphic` asks about, and the one shape of SEED that is to be repeated.
QUERIES ?= 10000
SHAPE ?=
# How the tests are shared out: file by file, in the order of tests/conftest.py, to three processes,
# because a third of the time they wait: for servers that start, disks and each other. WORKERS= runs
# them in one.
WORKERS ?= --numprocesses 3 --dist loadfile --no-loadscope-reorder
# The largest table of `make growth`; ten million rows take 25 minutes and 3 GB of disk.
ROWS_MAX ?= 1000000
# What `make serve` passes on, for example ARGS="--port 8080".
ARGS ?=

# What `make nightly` runs: targets with their variables, one line each, all of them, whichever
# fail. What takes longer than seconds and is not for every commit belongs here, or into a test with
# the marker `nightly`. Some seeds are the day's: each night tries others, and can be repeated.
TODAY ?= $(shell date +%Y%m%d)
define NIGHTLY
lint
pytest QSERVER_NIGHTLY=1 QSERVER_FRESH_SEEDS=1
slowly
simulate SEEDS=1..1000
simulate SEEDS=$(TODAY)0000..$(TODAY)2999
simulate SEEDS=$(TODAY)0000..$(TODAY)9999 WORKLOAD=replicated
simulate SEEDS=$(TODAY)0000..$(TODAY)9999 WORKLOAD=nodes
torture KILLS=200
processes-torture FAULTS=100
log-torture FAULTS=100
cluster-torture FAULTS=200
powerloss MINUTES=30
hostile SECONDS=900
hostile SIDE_BY_SIDE=1
differential STATEMENTS=100000
differential STATEMENTS=20000 LARGE=1
metamorphic QUERIES=50000
suites
endef
export NIGHTLY

VENV := .venv
BIN := $(VENV)/bin
# Tests start hundreds of processes; without bytecode each would compile the whole program.
unexport PYTHONDONTWRITEBYTECODE
INSTALLED := $(VENV)/.installed
SERVES := $(VENV)/.serves
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
CODE := qserver simulations tests docs

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.PHONY: help install serve test test-browser nightly lint pytest slowly durations coverage simulate torture \
	processes-torture log-torture cluster-torture powerloss hostile differential metamorphic suites bench growth counts docs site recording format constraints clean

help: ## list the targets
	@echo "qserver: make <target>"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv and install qserver and its tools, at the pinned versions

serve: $(SERVES) ## run the server (ARGS="--port 8080"), installing no more than it needs
	@$(BIN)/qserver serve $(ARGS)

test: install ## everything that must hold before a commit: lint, types, tests
	@$(MAKE) --jobs 2 lint pytest

nightly: install ## all tests and all campaigns, which `make test` has samples of: hours
	@echo "$$NIGHTLY" | { failed=; while read -r part; do \
		echo "nightly: make $$part"; $(MAKE) $$part </dev/null || failed="$$failed, make $$part"; \
	done; \
	if [ "$$failed" ]; then echo "nightly: failed: $${failed#, }" >&2; exit 1; fi; \
	echo "nightly: ok"; }

test-browser: install ## the console in a real browser, which is installed if that is possible (QSERVER_SCREENSHOTS=1)
	@tests/console/install
	@QSERVER_BROWSER_TESTS=1 $(BIN)/python -m pytest --quiet -rs tests/console/test_in_browser.py

lint: install ## ruff (rules, format) and mypy --strict
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/ruff format --quiet --check $(CODE) || \
		{ echo "Not formatted. Run: make format" >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@echo "lint: ok"

pytest: install ## the tests alone (ARGS="tests/storage -k split")
	@$(BIN)/python -m pytest --quiet $(WORKERS) $(ARGS)

slowly: install ## the tests on cores slowed to a third by busy neighbours (ARGS="tests/query")
	@$(BIN)/python -m tests.slowed $(BIN)/python -m pytest --quiet $(WORKERS) $(ARGS)

durations: install ## which tests took longest when they last ran
	@$(BIN)/python -m tests.durations

coverage: install ## the tests, and which lines they did not reach
	@$(BIN)/coverage run -m pytest --quiet $(ARGS)
	@$(BIN)/coverage report

simulate: install ## run the engine in the simulated world (SEEDS=1..1000)
	@$(BIN)/python -m simulations --seeds $(SEEDS) $(if $(WORKLOAD),--workload $(WORKLOAD))

torture: install ## kill the real server again and again; nothing may be lost (KILLS=200 SEED=7)
	@$(BIN)/python -m tests.torture --kills $(KILLS) $(if $(SEED),--seed $(SEED))

processes-torture: install ## kill and stop processes of several that serve one folder (FAULTS=100 SEED=7)
	@$(BIN)/python -m tests.processes --faults $(FAULTS) $(if $(SEED),--seed $(SEED))

log-torture: install ## kill and stop nodes of a replicated log, and who writes it (FAULTS=100 SEED=7)
	@$(BIN)/python -m tests.replication --faults $(FAULTS) $(if $(SEED),--seed $(SEED))

cluster-torture: install ## kill, stop and cut off nodes that share a replicated log (FAULTS=200 SEED=7)
	@$(BIN)/python -m tests.nodes --faults $(FAULTS) $(if $(SEED),--seed $(SEED))

powerloss: install ## let the power fail at every operation on the real files (MINUTES=10 SEED=7)
	@$(BIN)/python -m tests.powerloss --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

differential: install ## random programs beside a real PostgreSQL (STATEMENTS=20000 SEED=7 LARGE=1)
	@$(BIN)/python -W error::SyntaxWarning -m tests.differential $(if $(SECONDS),--seconds $(SECONDS),--statements $(STATEMENTS)) \
		$(if $(SEED),--seed $(SEED)) $(if $(LARGE),--large)

metamorphic: install ## random queries in many ways that must agree (QUERIES=10000 SEED=7 SHAPE=)
	@$(BIN)/python -W error::SyntaxWarning -m tests.differential.metamorphic --queries $(QUERIES) \
		$(if $(SEED),--seed $(SEED)) $(if $(SHAPE),--shape $(SHAPE))

suites: install ## the public suites of sqllogictest in the folder that QSERVER_SLT names
	@if [ "$$QSERVER_SLT" ]; then $(BIN)/python -m tests.conformance; \
	else echo "suites: skipped, because QSERVER_SLT is not set"; fi

hostile: install ## attack a real server, and see how its neighbours fare (SECONDS=600 SEED=7)
	@$(BIN)/python -m tests.hostile $(if $(SIDE_BY_SIDE),--side-by-side) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

bench: install ## measure storage, the engine, SQL beside sqlite3 and DuckDB, and the log on disk
	@$(BIN)/python -m tests.speed.storage
	@$(BIN)/python -m tests.speed.engine
	@$(BIN)/python -m tests.speed.sql
	@$(BIN)/python -m tests.speed.tpch
	@$(BIN)/python -m tests.speed.durability
	@$(BIN)/python -m tests.speed.processes
	@$(BIN)/python -m tests.speed.nodes
	@$(BIN)/python -m tests.speed.wire
	@$(BIN)/python -m tests.speed.pgbench

growth: install ## measure how cost grows, and draw it: 15 minutes (ROWS_MAX=1000000)
	@$(BIN)/python -m tests.speed.growth --rows-max $(ROWS_MAX) --output docs/performance
	@$(BIN)/python -m docs.generate

counts: install ## record what requests of the hot path take, for the tests to hold
	@$(BIN)/python -m tests.hot_path

docs: install ## write the page of limits and the plots of docs/performance.md
	@$(BIN)/python -m docs.generate

site: install ## the docs as a site with search, in build/site
	@$(BIN)/python -m docs.generate.site

recording: install ## draw the session of README.md anew, with a real server
	@$(BIN)/python -m docs.generate.recording

format: install ## let ruff format and mend the code
	@$(BIN)/ruff check --quiet --fix $(CODE)
	@$(BIN)/ruff format --quiet $(CODE)

constraints: ## renew constraints.txt: the newest versions that fit, from a fresh environment
	@set -e; $(find_python); fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	pip="$$fresh/bin/python -m pip --disable-pip-version-check"; \
	"$$python" -m venv "$$fresh"; \
	$$pip install -qq --upgrade pip setuptools; \
	$$pip install -qq --no-build-isolation --editable '.[dev]'; \
	{ sed -n '/^#/p' constraints.txt; $$pip freeze --all --exclude-editable; } > "$$fresh/new"; \
	cp "$$fresh/new" constraints.txt; \
	echo "constraints.txt renewed. Run: make test"

clean: ## remove .venv and everything that tools have left behind
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.coverage htmlcov .test-durations.json
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# Built again only when one of the two files changes. The build runs without isolation, so that
# setuptools too is the pinned one. Bytecode is made of what is imported, when it is: of all that is
# installed it takes pip nearly half of its time. What tests need is most of the rest: a server needs
# a fifth of it.
$(INSTALLED): pyproject.toml constraints.txt
	@$(call installed,.[dev])
	@touch $@ $(SERVES)

$(SERVES): pyproject.toml constraints.txt
	@$(call installed,.)
	@touch $@

# Shell code that makes $(VENV) if it is not there, and installs into it.
define installed
set -e; $(BIN)/python -c '' 2>/dev/null || \
	{ $(find_python); echo "making $(VENV) with $$python"; "$$python" -m venv --clear $(VENV); }; \
	echo "installing into $(VENV)"; \
	$(PIP) install --no-compile --constraint constraints.txt pip setuptools; \
	$(PIP) install --no-compile --constraint constraints.txt --no-build-isolation --editable '$(1)'
endef

# Shell code that sets $python, or ends the recipe with what to do. A name on the path proves
# nothing (version managers leave empty shims there), so each candidate is asked for its version.
define find_python
python=; for candidate in $(or $(PYTHON),python3.11 python3); do \
	if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then python=$$candidate; break; fi; done; \
if [ -z "$$python" ]; then \
	echo "qserver needs Python 3.11 or newer; tried: $(or $(PYTHON),python3.11 python3)." >&2; \
	echo "Install it, or name one: make install PYTHON=/path/to/python3.11" >&2; exit 1; fi
endef
