# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test test-slow embedded lint env clean
.DELETE_ON_ERROR:

# torch comes first and pinned: asked for by range, pip would fetch gigabytes of CUDA.
$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (a few minutes, once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "curvedray needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[wan,train,sfm,dev]'
	@touch $@

env: $(READY)

demo: $(READY)
	@$(BIN)/curvedray demo -o out/demo

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

test: $(READY) lint
	@$(BIN)/python -m pytest -q -n 2

test-slow: $(READY)
	@$(BIN)/python -m pytest -q -m slow

# Hours on two cores; every stage is skipped where its result is there, so it can be stopped and started again.
embedded: $(READY)
	@$(BIN)/python experiments/embedded/make.py --runs runs/embedded

clean:
	rm -rf $(VENV) out build *.egg-info
