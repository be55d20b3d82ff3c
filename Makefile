# Two commands do all: `make demo` and `make test`. Both set up what they need on a fresh Debian machine.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup engine environment demo test test-fast lint bench clean

help:
	@echo "make demo        measure three bundled subjects, run a bake-off without a key, write pages to open"
	@echo "make test        everything: linters, types, floors, tests with real containers and packages"
	@echo "make test-fast   the tests that need no engine, registry or browser (under a minute)"
	@echo "make lint        ruff, mypy, import-linter"
	@echo "make bench       the benchmarks of bench/, side by side with their peers"
	@echo "make setup       .venv, dependencies, web assets"

setup: $(STAMP) assets

$(STAMP): requirements.lock pyproject.toml scripts/setup.sh
	@bash scripts/setup.sh $(VENV)
	@touch $@

.PHONY: assets
assets: $(STAMP)
	@bash scripts/assets.sh

# Docker where it answers; else, as root with apt, installed and started; else the overlay sandbox is used.
engine: setup
	@bash scripts/engine.sh || true

environment: engine
	@if $(BIN)/referee env ready --quiet; then true; else $(BIN)/referee env build --if-engine; fi

demo: environment
	@$(BIN)/referee demo

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --config pyproject.toml >build-lint.log 2>&1 || { cat build-lint.log; rm -f build-lint.log; exit 1; }; rm -f build-lint.log

test: environment lint
	@bash scripts/test.sh

test-fast: setup
	@bash scripts/test.sh fast

bench: environment
	@$(BIN)/python bench/attempt_overhead.py
	@$(BIN)/python bench/recorder.py
	@$(BIN)/python bench/gateway.py
	@$(BIN)/python bench/grading.py --install
	@$(BIN)/python bench/bakeoff_statistics.py
	@$(BIN)/python bench/bakeoff_throughput.py --install
	@$(BIN)/python bench/summary.py
	@$(BIN)/python bench/bakeoff_endurance.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache node_modules
