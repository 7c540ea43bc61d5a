# Python 3.11 or newer, make and git are enough: every target sets up what it needs, again only when pyproject.toml changes.

BIN := .venv/bin
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
unexport PYTHONDONTWRITEBYTECODE  # tests start the program many times: it is compiled once

.PHONY: frameworks help demo test tests test-all clients lint docs bench evidence

help:
	@echo "make demo      watch the agent work in a small window: what fills it, what leaves, what comes back"
	@echo "make test      lint, then every test but the long ones"
	@echo "make test-all  make test, then the long ones: kills, mutants, a cluster, and every property with more examples"
	@echo "make clients   install real agents into a cache, and drive each through the gateway"
	@echo "make lint      ruff, its formatter and pyright"
	@echo "make frameworks   the adapters of frameworks against the real ones: installs them, checks types, runs tests/adapters"
	@echo "make docs      build the documentation site, every link checked"
	@echo "make bench     run every benchmark, ours beside our peers'"
	@echo "make evidence CORPUS=FOLDER   compare all policies on recorded sessions; MARKS=FOLDER, CAP=N, ENGINE=ray for a cluster"

demo: .venv/.demo
	@$(BIN)/tenure demo

test: .venv/.dev
	@$(MAKE) --no-print-directory --jobs 2 lint tests

tests: .venv/.dev
	@$(BIN)/pytest -n auto --dist loadfile

test-all: test .venv/.all
	@TENURE_EXAMPLES=60 $(BIN)/pytest -n auto -m "long or hypothesis" --hypothesis-seed 0

clients: .venv/.dev
	@scripts/clients
	@$(BIN)/pytest -m "long or not long" tests/clients

lint: .venv/.dev
	@$(BIN)/ruff check --no-cache
	@$(BIN)/ruff format --check
	@$(BIN)/pyright

docs: .venv/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Frameworks say deprecation warnings of their own, and leave connections to be closed by the collector. APART have an environment each: their pins do not go together.
TOGETHER := google_adk langchain litellm openai_agents pydantic_ai
APART := strands inspect-ai crewai openhands

frameworks: .venv/.frameworks
	@$(BIN)/pyright --pythonpath $(BIN)/python $(TOGETHER:%=src/tenure/adapters/%.py) $(foreach name,$(TOGETHER),$(wildcard examples/frameworks/$(name)_*.py))
	@$(BIN)/pytest -n auto -o filterwarnings=ignore -m "long or not long" tests/adapters
	@set -e; for name in $(APART); do scripts/apart $$name; done

bench: .venv/.all
	@set -e; for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script; echo; done

# What an interrupted run has finished is used again, unless the code or the sessions have changed.
evidence: .venv/.all
	@test -n "$(CORPUS)" || { echo "make evidence: name a folder of recorded sessions, as in make evidence CORPUS=FOLDER" >&2; exit 2; }
	@$(BIN)/tenure evidence "$(CORPUS)" $(foreach cap,$(CAP),--cap $(cap)) $(if $(MARKS),--marks "$(MARKS)") --out docs/evidence --engine $(or $(ENGINE),processes) --resume

.venv/.%: pyproject.toml scripts/setup
	@scripts/setup $*
	@touch $@
