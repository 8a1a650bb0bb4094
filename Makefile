# Everything works on a fresh machine with Python 3.11 or newer and make; `make help` says what there is.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-long lint bench docs clean

help:
	@echo "make demo    train the date normaliser, translate, and see where it looked (three minutes)"
	@echo "make test    run all tests (ten minutes on two quiet cores)"
	@echo "make test-fast   run the laws of models, search, configuration, data and training (a minute)"
	@echo "make test-long   try 5,000 damaged runs, the long tests, and break the code in 150 places, one at a time (hours)"
	@echo "make lint    check style and types"
	@echo "make bench   measure Regard and its peers side by side (25 minutes; PARTS=decode for one part)"
	@echo "make docs    build the documentation site in build/site, with search, without a network"
	@echo "make setup   install everything into .venv (the others do it by themselves)"
	@echo "make clean   remove caches; keeps .venv and runs/"

setup: $(INSTALLED)

# Every version is pinned, the build backend's too, so that today's machine and next year's get the same.
$(INSTALLED): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Setting up .venv (the first time takes a few minutes) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: setup
	@$(BIN)/regard demo

# Two workers with one thread each: two cores are enough. Tests of one file share a worker, and with it their fixtures.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test: setup
	@$(PYTEST)
	@echo "All tests passed."

FAST := architecture formulas independent mutations parity positions config config_layers config_fuzzer upgrade search \
	batches text training checkpoints cleaning store stored_runs

test-fast: setup
	@$(PYTEST) $(foreach name,$(FAST),tests/test_$(name).py)

# Its last result is committed: benchmarks/results/test-long.md and mutations.md.
test-long: setup
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.run_fuzzer 5000 $(or $(SEED),1000000)
	@REGARD_SEED=$(or $(SEED),$(shell date +%j%H%M)) $(PYTEST) -m "long or learning"
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.run_mutations --jobs 2

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@echo "Style and types are in order."

bench: setup
	@$(BIN)/regard bench $(PARTS)

# The sources are staged with the layout of the repository, so that their relative links hold on the site.
SITE_PAGES := CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE CITATION.cff docs recipes

docs: setup
	@$(BIN)/python docs/generate.py
	@rm -rf build/docs build/site && mkdir -p build/docs/benchmarks
	@cp -r $(SITE_PAGES) build/docs/ && cp -r benchmarks/results build/docs/benchmarks/
	@cp README.md build/docs/index.md && rm -rf build/docs/docs/*.py build/docs/docs/__pycache__
	@PYTHONPATH=docs:$$PYTHONPATH $(BIN)/zensical build --clean --strict
	@$(BIN)/python -m tests.site_links build/site
	@$(BIN)/python -m tests.test_docs_run
	@echo "The site is in build/site. To read it, with search: $(BIN)/python -m http.server --directory build/site"

clean:
	@rm -rf build .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
