# make demo | test | lint | e2e | bench | generate | accept
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help demo test lint e2e bench generate accept format clean

help:
	@echo "make demo      install into $(VENV) and score the packaged example"
	@echo "make test      install and run all tests"
	@echo "make lint      ruff, mypy --strict, import contracts, generated files"
	@echo "make generate  write the files that are read off the metrics"
	@echo "make accept    take the rendered reports as they are now for the expected ones"

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "rag-eval needs Python 3.11 or newer; say PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.run: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[zstd]"
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.lint: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group lint
	@touch $@

demo: $(VENV)/.run
	$(BIN)/rag-eval demo

test: $(VENV)/.test
	$(BIN)/python -m pytest

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/generate.py --check

generate: $(VENV)/.run
	$(BIN)/python tools/generate.py

accept: $(VENV)/.test
	RAG_EVAL_ACCEPT=1 $(BIN)/python -m pytest tests/test_renderers.py

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
