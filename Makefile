# Each target creates the virtual environment and installs what it needs.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SEEDS  ?=
EMAIL  ?=
DATA   ?= rove-data
# Two test processes. The tests of a file stay together because they share crawls; slow directories start first.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# The tests start rove hundreds of times, and would compile its modules each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo crawl docs examples pictures lint unit test test-long coverage
.PHONY: bench bench-quick bench-stages bench-frontier bench-zoo interop clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.runtime: pyproject.toml
	@test -x $(BIN)/python || { python=$$($(SHELL) scripts/find-python.sh "$(PYTHON)") && "$$python" -m venv $(VENV); }
	@echo "Installing rove into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.runtime
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	@touch $@

demo: $(VENV)/.runtime ## crawl a small web on this machine for half a minute
	@$(BIN)/rove demo

crawl: $(VENV)/.runtime ## a real crawl: make crawl SEEDS=seeds.txt EMAIL=YOUR-ADDRESS
	@test -n "$(SEEDS)" || { echo "make crawl: say which seeds: SEEDS=seeds.txt" >&2; exit 2; }
	@test -n "$(EMAIL)" || { echo "make crawl: say how webmasters reach you: EMAIL=YOUR-ADDRESS" >&2; exit 2; }
	@$(BIN)/rove crawl "$(SEEDS)" --email "$(EMAIL)" --data-dir "$(DATA)"

docs: $(VENV)/.runtime ## generate docs/cli.md from the program
	$(BIN)/python -m rove.cli.reference docs/examples > docs/cli.md

examples: $(VENV)/.dev ## make docs/examples from real runs of every command
	$(BIN)/python -m tests.examples docs/examples

pictures: $(VENV)/.dev ## draw docs/pictures from runs of the demo (eight minutes; needs Chromium)
	$(BIN)/python -m rove.cli.pictures docs/pictures
	$(BIN)/python -m tests.pictures docs/pictures

lint: $(VENV)/.dev ## style, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.dev ## tests without servers, processes or a database server
	$(PYTEST) -m "not system and not long"

test: lint ## everything that must pass: lint, types, import rules, all tests
	$(PYTEST) -m "not long"

test-long: $(VENV)/.dev ## the random tests with many more rounds
	$(BIN)/python -m pytest -m long

coverage: $(VENV)/.dev ## nearly all tests, and the share of lines and branches of src that they run
	$(PYTEST) -m "not long" --cov --cov-report=term:skip-covered --ignore tests/acceptance/test_disk_full.py

bench: $(VENV)/.bench ## a crawl measured on ten webs, against bare loops and Scrapy (over two hours; see docs/performance.md)
	$(BIN)/python -m benchmarks.crawl --json docs/performance/bench.json

bench-quick: $(VENV)/.dev ## the same on tiny webs, to see that it works
	$(BIN)/python -m benchmarks.crawl --quick

bench-stages: $(VENV)/.bench ## where the crawler's CPU time goes, page by page
	$(BIN)/python -m benchmarks.stages --before docs/performance/before.json --svg docs/performance/stages.svg

bench-frontier: $(VENV)/.bench ## the frontiers: ways to claim, and growth to ten million URLs (an hour; see docs/performance.md)
	$(BIN)/python -m benchmarks.claim_strategies
	$(BIN)/python -m benchmarks.frontier

bench-zoo: $(VENV)/.dev ## whether servers that misbehave slow down the others
	$(BIN)/python -m benchmarks.zoo

$(VENV)-interop/.installed: pyproject.toml $(VENV)/.runtime
	@$(BIN)/python -m venv $(VENV)-interop
	@$(VENV)-interop/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[interop]'
	@touch $@

interop: $(VENV)-interop/.installed ## read every output with the programs that it is made for, such as datasets, DuckDB and pywb
	$(VENV)-interop/bin/python -m benchmarks.interop

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) $(VENV)-interop .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* build dist
