# make demo | test | check-deep | mutants | lint | docs | e2e | ci | bench | watch | generate | accept | pictures
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
BENCH_VENV := .venv-bench
BENCH_BIN := $(BENCH_VENV)/$(notdir $(BIN))
BENCH ?=
BASE ?= main
VERSION = dev
MUTANTS ?=
TESTS = not e2e and not deep
FIRST := $(addprefix tests/,action analysis bench cases collecting contract engines gates git github governance stats)
CONTAINERS := $(addprefix tests/e2e/,test_act.py test_action_gold.py test_action_image.py test_harness.py test_image.py)
.DEFAULT_GOAL := help
.PHONY: help demo test test-first test-rest check-deep mutants lint ci e2e e2e-image e2e-published e2e-rest e2e-tools docs docs-serve docs-version bench watch generate pins accept pictures format clean

help:
	@echo "make demo      install into $(VENV) and score the packaged example"
	@echo "make test      install and run the tests that take minutes at most"
	@echo "make check-deep  simulations of error rates, one text at a time, and more examples of every property"
	@echo "make mutants   small faults in the lines changed since BASE: which of them does no test notice"
	@echo "make lint      ruff, mypy --strict, import contracts, generated files, workflow and image linters"
	@echo "make docs      build the docs site into site/, with every link checked; make docs-serve shows it while you write"
	@echo "make docs-version  commit the site to the branch gh-pages: VERSION='1.0 latest', or dev"
	@echo "make e2e       the real image, a workflow runner, GitHub's API description, the hooks (make e2e-tools installs them)"
	@echo "make ci        all of these at once, as CI does"
	@echo "make bench     measure against the peers and write bench/RESULTS.md; BENCH='--quick' and more: BENCH=--help"
	@echo "make watch     instructions of small runs against BASE, main where not said (needs valgrind)"
	@echo "make generate  write the files that are read off the metrics"
	@echo "make pins      raise the versions that CI and the image install (needs uv)"
	@echo "make pictures  the pictures of the docs, by Chromium (make e2e-tools installs it); a test says which are stale"
	@echo "make accept    take the rendered reports and the output of sessions as they are now for the expected ones"

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "rag-eval needs Python 3.11 or newer; say PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.run: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[action,patterns,zstd]"
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.frameworks: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group frameworks
	@touch $@

$(VENV)/.lint: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group lint
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

demo: $(VENV)/.run
	$(BIN)/rag-eval demo

test: $(VENV)/.test
	$(MAKE) -k -j2 --output-sync=target test-first test-rest

# Two halves at once, of about the same length.
test-first: $(VENV)/.test
	$(BIN)/python -m pytest -q -m "$(TESTS)" $(FIRST)

test-rest: $(VENV)/.test
	$(BIN)/python -m pytest -q -m "$(TESTS)" tests $(FIRST:%=--ignore=%)

# The tests marked deep, and every Hypothesis test with three times the examples of `make test`.
check-deep: export RAG_EVAL_TESTS = deep
check-deep:
	$(MAKE) test TESTS="(deep or hypothesis) and not e2e"

# MUTANTS="--modules 'src/rag_eval/cli/*.py' --sample 100"; without it, the lines changed since BASE.
mutants: $(VENV)/.test
	$(BIN)/python tools/mutants.py --base $(BASE) $(MUTANTS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/generate.py --check
	$(BIN)/python tools/check_tests.py
	$(BIN)/python tools/prose.py --check
	$(BIN)/actionlint
	$(BIN)/actionlint examples/forks/*.yml examples/pages/*.yml
	$(BIN)/zizmor --offline --persona=auditor --no-progress --quiet .github action.yml python/action.yml examples/forks/*.yml examples/pages/*.yml
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml python/action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/forks/*.yml examples/pages/*.yml src/rag_eval/templates/workflow.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci examples/ci/gitlab-ci.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.azure-pipelines --data-transform azure-pipelines --regex-variant nonunicode examples/ci/azure-pipelines.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.circle-ci examples/ci/circleci.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/shellcheck --severity=warning .ci/run tests/e2e/*.sh
	$(BIN)/pre-commit validate-manifest .pre-commit-hooks.yaml
	$(BIN)/pre-commit validate-config .pre-commit-config.yaml src/rag_eval/templates/pre-commit.yaml

docs docs-serve docs-version: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.docs
	$(BIN)/mkdocs serve

# Commits the site to the branch gh-pages as one more version: VERSION="1.0 latest", a version and its alias.
docs-version: export PATH := $(abspath $(BIN)):$(PATH)
docs-version: $(VENV)/.docs
	mike deploy --update-aliases $(VERSION)
	mike set-default --allow-undefined latest

# Builds the real image and runs it, the workflow and the hooks. What is missing here is said and skipped; with CI=true it
# must be there.
e2e: $(VENV)/.frameworks $(VENV)/.docs
	$(MAKE) -k -j2 --output-sync=target e2e-image e2e-rest

# What starts containers, and what does not: the two share nothing, and wait a good deal.
e2e-image: $(VENV)/.test $(E2E_TOOLS)
	$(BIN)/python -m pytest $(CONTAINERS)

# What a release runs on the image that it pushed: RAG_EVAL_IMAGE names it.
e2e-published: $(VENV)/.test
	$(BIN)/python -m pytest tests/e2e/test_action_gold.py tests/e2e/test_action_image.py

e2e-rest: $(VENV)/.frameworks $(VENV)/.docs $(E2E_TOOLS)
	$(BIN)/python -m pytest tests/e2e $(CONTAINERS:%=--ignore=%)

# All of the above, without bench. The tests of `make test` and check-deep are one run, with the examples of check-deep.
# Three targets at once on two cores, because downloads and the tests with containers mostly wait.
ci: export RAG_EVAL_TESTS = deep
ci: $(VENV)/.frameworks $(VENV)/.lint $(VENV)/.docs
	$(MAKE) --no-print-directory -k -j3 --output-sync=target TESTS="not e2e" E2E_TOOLS=e2e-tools \
	  e2e-tools lint docs e2e-image test-first test-rest e2e-rest

# Installs what make e2e needs: as root, on Debian.
e2e-tools:
	tests/e2e/install.sh

# The peers are a gigabyte of packages: in an environment of their own, with rag-eval as it is installed.
$(BENCH_VENV)/.peers: pyproject.toml
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BENCH_BIN)/python -m pip install --quiet ".[dask]"
	$(BENCH_BIN)/python bench/speed/install.py
	@touch $@

bench: $(BENCH_VENV)/.peers
	$(BENCH_BIN)/python -m pip install --quiet --no-deps --force-reinstall .
	$(BENCH_BIN)/python bench/speed $(BENCH)

watch: $(VENV)/.run
	$(BIN)/python bench/watch.py --base $(BASE)

generate: $(VENV)/.run
	$(BIN)/python tools/generate.py

# The versions that CI and the image install, raised to the newest ones (needs uv).
pins:
	printf 'pip\nsetuptools\n' | uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate --no-header --all-extras --group test --group frameworks --group lint --group docs pyproject.toml - --output-file requirements/ci.txt
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --extra action --extra zstd --extra patterns pyproject.toml --output-file requirements/action.txt

accept: $(VENV)/.test
	RAG_EVAL_ACCEPT=1 $(BIN)/python -m pytest tests/rendering/test_renderers.py tests/cli/test_sessions.py

pictures: $(VENV)/.test
	$(BIN)/python tools/pictures.py

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(BENCH_VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
