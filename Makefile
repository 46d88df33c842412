# What a person types and what CI runs. Everything happens in a virtual environment of its own.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SHARED ?= ../shared/data

.DEFAULT_GOAL := help

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

# The engines that the examples run are large, and only their tests need them.
$(BIN)/.engines: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group examples
	@touch $@

setup: $(BIN)/.installed  ## Make the virtual environment

demo: setup  ## Set up and recommend a first transfer
	@echo '$$ relayd plan --src us-east --dst sa --volume 500GB'
	@$(BIN)/relayd plan --src us-east --dst sa --volume 500GB

demo-lab: setup tools  ## Emulate twelve datacenters, measure them, plan on that (needs root)
	@scripts/demo_lab.sh $(BIN)/relayd

tools:  ## Install the programs that tests drive (iperf3, sshd, ...), where it may
	@sh scripts/install_tools.sh

test: setup tools $(BIN)/.engines  ## Set up and pass all tests
	$(BIN)/python -m pytest

lint: setup  ## Style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup  ## Put the code into its style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## Measure speed, side by side with references
	$(BIN)/python -m benchmarks

shuffle-study: setup  ## Make every number and figure of docs/shuffle-study.md again
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group study
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m scripts.shuffle_study

screenshots: setup  ## Make the pictures of the dashboard again (needs chromium)
	$(BIN)/python -m scripts.screenshots

reproduce: setup tools  ## Make docs/reproduction.md again: the 2018 paper in a lab and on a grid
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m scripts.reproduce

soak: setup  ## Ask and feed a service for 15 minutes, and watch its memory
	$(BIN)/python -m benchmarks.soak

lab-check: setup  ## Measure what a lab can do on this machine (needs root, takes minutes)
	$(BIN)/python benchmarks/lab_check.py
	$(BIN)/python benchmarks/campaign_check.py
	$(BIN)/python benchmarks/verify_check.py
	scripts/demo_lab.sh $(BIN)/relayd 40 5

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup demo demo-lab tools test lint format bench shuffle-study screenshots reproduce soak
.PHONY: lab-check clean
