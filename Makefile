# Two commands do everything on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
USE    := $(VENV)/.ready-all
WORK   := $(VENV)/.ready-dev
CAMPAIGN ?= 60

.PHONY: env demo app test test-fast test-slow test-browser torture docs lint embedded clean
.DELETE_ON_ERROR:

# TORCH=cpu, TORCH=default or TORCH=/path/of/an/environment chooses where torch comes from.
$(VENV)/.ready-%: pyproject.toml constraints.txt tools/set_up.py
	@$(PYTHON) tools/set_up.py $(VENV) --extras $*
	@touch $@

env: $(WORK)

demo: $(USE)
	@$(BIN)/curvedray demo -o out/demo

app: $(USE)
	@$(BIN)/curvedray app

lint: $(WORK)
	@$(BIN)/python -m ruff check . && $(BIN)/python -m ruff format --check . && $(BIN)/python -m mypy

# All but what takes minutes: about seven minutes on two cores.
test: $(WORK) lint
	@$(BIN)/python -m pytest -q -n 2

# The quick lane: the laws, without the pages' commands, examples and whole runs.
test-fast: $(WORK)
	@$(BIN)/python -m pytest -q -n 2 -m 'not slow and not whole and not browser'

test-slow: $(WORK)
	@$(BIN)/python -m pytest -q -m slow

# The studio's page in the system's Chromium; says so in one line where there is none.
test-browser: $(WORK)
	@$(BIN)/python -m pytest -q -rs -m browser tests/app/browser

# Attacks: damaged inputs, kills, full disks, two writers. CAMPAIGN is its length in seconds per part.
torture: $(WORK)
	@$(BIN)/python -m tests.torture --seconds $(CAMPAIGN)

docs: $(WORK)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir out/docs
	@echo "open out/docs/index.html"

# Hours on two cores; every stage is skipped where its result is there, so it can be stopped and started again.
embedded: $(WORK)
	@$(BIN)/python experiments/embedded/make.py --runs runs/embedded

clean:
	rm -rf $(VENV) out build *.egg-info
