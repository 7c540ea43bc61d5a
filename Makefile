# Python 3.11 or newer, make and git are enough: every target sets up what it needs, again only when pyproject.toml changes.

BIN := .venv/bin
READY := .venv/.ready
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help demo test lint bench

help:
	@echo "make demo    show what Tenure does to a session found here, or made on the spot"
	@echo "make test    lint, then run every test"
	@echo "make lint    ruff, its formatter and pyright"
	@echo "make bench   run every benchmark, ours beside our peers'"

demo: $(READY)
	@$(BIN)/tenure demo

test: lint
	@$(BIN)/pytest -n auto

lint: $(READY)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright

bench: $(READY)
	@set -e; for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script; echo; done

$(READY): pyproject.toml scripts/setup
	@scripts/setup
	@touch $@
