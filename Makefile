# One-line verbs. Each makes .venv where there is none, installs what it needs and runs one command.
# HARNESS_INPUTS (folder with the registered data files), DOCKER_HOST (the container engine) and HARNESS_SANDBOX_IMAGE (the
# image that code is run in) are passed through from the environment. Smoke needs neither engine nor image.

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name) 2> /dev/null)))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help smoke test formal replay sandbox bench lint type

help:
	@echo "make smoke   install the model extra, run the smoke gates on the embedded model"
	@echo "make test    install the dev, deepseek and sandbox extras, run the harness's own tests"
	@echo "make formal replay  install the model and sandbox extras, run the whole protocol, or compare with its snapshots"
	@echo "make sandbox build the sandbox's image with the engine that DOCKER_HOST names (docs/sandbox.md)"
	@echo "make lint type bench"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-model: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[model]'
	@touch $@

$(VENV)/.installed-sandbox: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[model,sandbox]'
	@touch $@ $(VENV)/.installed-model

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[model,deepseek,sandbox,dev]'
	@touch $@ $(VENV)/.installed-sandbox $(VENV)/.installed-model

smoke: $(VENV)/.installed-model
	$(PYTEST) gates/ -m smoke

formal: $(VENV)/.installed-sandbox
	$(PYTEST) gates/ -m formal

replay: $(VENV)/.installed-sandbox
	$(PYTEST) gates/ -m replay

# Needs no environment, only a python3. Prints the line that names the image to the harness.
sandbox:
	@$(PYTHON) fixtures/sandbox/build.py

# Timings are never part of a verdict. Tests that read registered data files are listed as not run without them.
test: $(VENV)/.installed-dev
	$(PYTEST) -m 'not bench' -n 2 --dist loadfile --no-loadscope-reorder

bench: $(VENV)/.installed-dev
	$(PYTEST) tests/bench -m bench -s

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports

type: $(VENV)/.installed-dev
	$(BIN)/mypy
