# Python 3.11 or newer, make and git are enough: every target sets up what it needs, again only when pyproject.toml changes.

BIN := .venv/bin
READY := .venv/.ready
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help demo test lint bench evidence

help:
	@echo "make demo    watch the agent work in a small window: what fills it, what leaves, what comes back"
	@echo "make test    lint, then run every test"
	@echo "make lint    ruff, its formatter and pyright"
	@echo "make bench   run every benchmark, ours beside our peers'"
	@echo "make evidence CORPUS=FOLDER   compare all policies on recorded sessions; ENGINE=ray for a cluster"

demo: $(READY)
	@$(BIN)/tenure demo

test: lint
	@$(BIN)/pytest -n auto

lint: $(READY)
	@$(BIN)/ruff check --no-cache
	@$(BIN)/ruff format --check
	@$(BIN)/pyright

bench: $(READY)
	@set -e; for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script; echo; done

# What an interrupted run has finished is used again, unless the code or the sessions have changed.
evidence: $(READY)
	@test -n "$(CORPUS)" || { echo "make evidence: name a folder of recorded sessions, as in make evidence CORPUS=FOLDER" >&2; exit 2; }
	@$(BIN)/tenure evidence "$(CORPUS)" --out docs/evidence --engine $(or $(ENGINE),processes) --resume

$(READY): pyproject.toml scripts/setup
	@scripts/setup
	@touch $@
