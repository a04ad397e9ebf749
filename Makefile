# One command each. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types layers docs docs-check goldens fix bench oracle wheel clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

demo: $(VENV)/.base ## install and diagnose a sample run
	$(BIN)/shardscope diagnose sample_traces/recorded/tp2

test: $(VENV)/.dev ## install and run the tests
	$(BIN)/pytest -q -n 2 --dist loadgroup -m "not slow and not server"

check: lint types layers docs-check ## lint, strict types, import contracts, stale docs

lint: $(VENV)/.dev ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy --strict
	$(BIN)/mypy

layers: $(VENV)/.dev ## import-linter
	$(BIN)/lint-imports

docs: $(VENV)/.dev ## write docs/rules.md, docs/cli.md and the JSON schema
	$(BIN)/python tests/generate_docs.py

docs-check: $(VENV)/.dev ## fail where a generated page is stale
	$(BIN)/python tests/generate_docs.py --check

goldens: $(VENV)/.dev ## accept the current output as expected; review with git diff
	$(BIN)/pytest -q tests/test_render_text.py tests/test_json_goldens.py --goldens

fix: $(VENV)/.dev ## format and repair what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.hta ## reading and breakdown beside Holistic Trace Analysis, as ratios
	$(BIN)/python tests/bench.py --peer $(BIN)/python

oracle: $(VENV)/.hta ## compare with Holistic Trace Analysis on real traces
	$(BIN)/pytest -q tests/test_oracle_hta.py tests/test_second_opinion.py

wheel: $(VENV)/.dev ## build the wheel and try it in an empty environment
	$(BIN)/pytest -q tests/test_wheel.py -m slow

clean: ## remove the environment and caches
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "shardscope needs Python 3.10 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check "torch==2.13.0" --editable ".[dev,collect]"
	@touch $@ $(VENV)/.base

$(VENV)/.hta: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[hta]"
	@touch $@
