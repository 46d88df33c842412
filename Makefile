# What a person types and what CI runs. Everything happens in a virtual environment of its own.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= auto

# Tests start hundreds of processes, and each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# In stages, so that running needs nothing of what developing needs. Modules are compiled when they
# are first imported: most never are, and a quarter of the space would be theirs.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

$(BIN)/.runtime: pyproject.toml relayd/version.py
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(BIN)/.dev: $(BIN)/.runtime
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --editable . --group dev
	@touch $@

# The engines that the examples run are large, and only their tests need them.
$(BIN)/.engines: $(BIN)/.dev
	$(PIP) --group examples
	@touch $@

setup: $(BIN)/.runtime  ## Install what running needs into .venv

dev: $(BIN)/.dev  ## Install what tests and lint need as well

engines: $(BIN)/.engines  ## Install the engines of the examples as well (pyspark, dask)

demo: setup  ## Set up and recommend a first transfer
	@echo '$$ relayd plan --src us-east --dst sa --volume 500GB'
	@$(BIN)/relayd plan --src us-east --dst sa --volume 500GB

demo-lab: $(BIN)/.runtime  ## Emulate twelve datacenters, measure them, plan on that (needs root)
	@sh scripts/install_tools.sh lab
	@scripts/demo_lab.sh $(BIN)/relayd

tools:  ## Install the programs that tests drive (iperf3, sshd, ...), where it may
	@sh scripts/install_tools.sh

# Tests are marked by what they need (tests/conftest.py). Those that measure on a lab have the machine
# to themselves, or share it with one other; all others share it.
PYTEST := $(BIN)/python -m pytest
PARALLEL = --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal

quick: dev  ## Pass the fast tests, that need no lab, server, browser or engine
	$(PYTEST) -m 'not (lab or service or browser or postgresql or engines or integrations or slow or thorough)' \
		--hypothesis-profile quick $(PARALLEL)

test:  ## Pass the tests that a change must pass
	@$(MAKE) --no-print-directory --keep-going test-parallel test-lab

thorough:  ## Pass all that takes longer: whole grids, many seeds, the docs' commands, long labs, engines (needs root)
	@$(MAKE) --no-print-directory --keep-going test-thorough bare-root test-lab-pairs test-integrations

# Most of its time, a test that starts processes or a lab waits for them.
test-parallel: WORKERS = $(shell expr 4 \* $$(getconf _NPROCESSORS_ONLN))
test-parallel: dev tools  ## Of them, those that can share the machine
	@$(PYTEST) --collect-only -qq >/dev/null || true  # compiled once, not by each worker
	$(PYTEST) -m 'not (alone or engines or integrations or thorough)' $(PARALLEL) --durations 20

test-thorough: WORKERS = $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
test-thorough: engines tools  ## Pass tests that compute or serve for long
	$(PYTEST) -m '(engines or thorough) and not (alone or integrations)' $(PARALLEL) --durations 20 --timeout 3600

bare-root: dev  ## Pass quick tests of tools in a bare Debian, as root and as a user (needs root and mmdebstrap)
	scripts/bare_root.sh tests/lab/test_life.py tests/relayd/cli tests/relayd/store \
		tests/probes/tools tests/probes/fleet tests/test_release.py

test-lab: dev tools  ## Pass the tests that have the machine to themselves: they measure rates (needs root)
	$(PYTEST) tests/lab tests/http/test_following.py --ignore tests/lab/end_to_end -m 'alone and not integrations' --durations 20

# What commands measure is a few Mbit/s, which leaves room for one other lab.
test-lab-pairs: dev tools  ## Pass the long tests on labs, two at a time: commands, from end to end (needs root)
	$(PYTEST) tests/lab/end_to_end -m 'alone and not integrations' \
		--numprocesses 2 --dist loadfile --durations 20 --timeout 3600

# Engines that go into no environment with others: each has one with relayd and its extra alone.
ENGINES := airflow plot ray skypilot
# A notebook needs what runs it, and what its questions need.
NEEDED_plot := nbclient ipykernel
$(VENV)/engines/%/.installed: pyproject.toml relayd/version.py
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[$*]' $(NEEDED_$*)
	@touch $@

test-integrations: engines tools $(ENGINES:%=$(VENV)/engines/%/.installed)  ## Run engines that CI has no time for, each with its extra alone (needs root)
	$(PYTEST) -m integrations --timeout 3600

lint: dev  ## Style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: dev  ## Put the code into its style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: dev  ## Measure speed, side by side with references
	$(BIN)/python -m benchmarks

shuffle-study: dev  ## Make every number and figure of docs/shuffle-study.md again
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group study
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m scripts.shuffle_study

screenshots: dev  ## Make the pictures of the dashboard again (needs chromium)
	$(PIP) --group study
	$(BIN)/python -m scripts.screenshots

reproduce: dev tools  ## Measure the 2018 paper's findings again, in a lab and on a grid
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m scripts.reproduce

MINUTES ?= 30
soak: dev  ## Ask and feed two services for MINUTES while their database fails, and watch their memory
	$(BIN)/python -m benchmarks.chaos soak --minutes $(MINUTES)

poisoning: dev  ## Let tokens lie about links, and count what that changes (SEEDS=10)
	$(BIN)/python -m benchmarks.poisoning $(SEEDS)

# `make thorough` has 10 seconds of each part.
fuzz: dev  ## Send what should not be sent for MINUTES over HTTP, in files and to pages
	$(BIN)/python -m benchmarks.fuzz --minutes $(MINUTES)

docs: dev  ## Build the documentation site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

release: dev  ## Build a release into dist/ with SBOM and sums, signed by SIGNING_KEY; needs no network
	$(BIN)/python -m scripts.release

install-check: dev  ## Install the wheel as a newcomer does, and say how large that is
	$(BIN)/python -m scripts.install_check

audit: dev  ## Look for weaknesses in the code, and for known ones in what it needs (needs a network)
	$(PIP) --group audit
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml relayd planner probes
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/installed.txt
	$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement $(VENV)/installed.txt

full-disk: dev  ## Fill the disk in every step, of SQLite and of PostgreSQL (needs root)
	$(BIN)/python -m benchmarks.full_disk
	$(BIN)/python -m benchmarks.full_disk --server

# `make test` has a few of each kind.
chaos: dev  ## Kill and stop services, importers and PostgreSQL (needs root, takes an hour)
	$(BIN)/python -m benchmarks.chaos $(CHAOS)

lab-check: dev  ## Measure what a lab can do on this machine (needs root, takes minutes)
	$(BIN)/python -m benchmarks.lab_check
	$(BIN)/python -m benchmarks.campaign_check
	$(BIN)/python -m benchmarks.verify_check
	scripts/demo_lab.sh $(BIN)/relayd 40 5

budget-check: dev tools  ## Hold 200 random budgets against what hosts send (needs root, an hour)
	$(BIN)/python -m benchmarks.budget_check

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup dev engines demo demo-lab tools quick test test-parallel test-lab test-lab-pairs
.PHONY: thorough test-thorough test-integrations bare-root lint format bench
.PHONY: docs release install-check audit full-disk shuffle-study screenshots reproduce soak poisoning fuzz chaos lab-check clean
