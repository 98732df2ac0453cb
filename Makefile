PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := $(VENV)-lowest
LOWEST_PYTHON ?= $(firstword $(foreach v,3.10 3.11,$(shell python$(v) -c "print('python$(v)')" 2>/dev/null)) $(PYTHON))

.PHONY: install run test test-quick test-slow test-nightly test-lowest wheel-test lint docs measurements papers bench bench-full clean

install: $(VENV)/installed

# What trains over ranks, and no more.
$(VENV)/trains: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e '.[mpirun]'
	touch $@

$(VENV)/installed: $(VENV)/trains
	$(BIN)/pip install --quiet -e '.[dev,docs]'
	touch $@

run: $(VENV)/trains
	$(BIN)/python -m mpi_examples.tour

PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

test test-quick test-slow test-nightly: export PYTHONDONTWRITEBYTECODE =
test: lint
	$(PYTEST) -m 'not nightly'

test-quick: install
	$(PYTEST) -m 'not slow and not nightly'

test-slow: install
	$(PYTEST) -m slow

# What `make test` leaves out: the site, pages, examples, benchmarks; more examples of all properties, more random problems.
test-nightly: install
	$(PYTEST) -m 'nightly or hypothesis' --hypothesis-profile nightly

# The lower bounds of pyproject.toml; wheels of such age exist for Python 3.10 and 3.11 only.
test-lowest: export NUMBA_CACHE_DIR = $(abspath $(LOWEST))/kernels
test-lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest -q -n 2 --dist loadfile -m 'not slow and not nightly'

$(LOWEST)/installed: pyproject.toml release/lowest.py $(VENV)/installed
	$(LOWEST_PYTHON) -m venv --clear $(LOWEST)
	$(BIN)/python -m release.lowest > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/pip install --quiet --upgrade pip
	$(LOWEST)/bin/pip install --quiet -c $(LOWEST)/constraints.txt -e '.[dev,mpirun]'
	touch $@

wheel-test: install
	$(BIN)/python -m release.wheel dist

lint: install
	$(BIN)/ruff check bmrm tests benchmarks mpi_examples pages release
	$(BIN)/ruff format --check bmrm tests benchmarks mpi_examples pages release
	$(BIN)/mypy bmrm
	$(BIN)/lint-imports

docs: install
	$(BIN)/python -m pages
	$(BIN)/zensical build --clean --strict
	$(BIN)/python -m pages.search

measurements: install
	$(BIN)/python -m benchmarks

# QUICK=1: some cells of each study; JOBS: processes.
papers: install
	$(BIN)/python -m benchmarks.papers --jobs $(or $(JOBS),2) $(if $(QUICK),--quick)

$(VENV)/peers: pyproject.toml
	$(BIN)/pip install --quiet -e '.[bench]'
	$(BIN)/pip install --quiet --no-deps --target $(VENV)/multicore 'liblinear-multicore>=2.47'
	touch $@

bench: install $(VENV)/peers
	$(BIN)/python -m benchmarks.race --quick

bench-full: install $(VENV)/peers
	$(BIN)/python -m benchmarks.race --solvers all --keep && $(BIN)/python -m benchmarks.race --page

clean:
	rm -rf $(VENV) $(LOWEST) build dist site runs
