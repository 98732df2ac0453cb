PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install run test lint docs measurements bench bench-full clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e '.[dev,docs,mpirun]'
	-$(BIN)/bmrm warm mpi_examples/breast_cancer/config.yaml mpi_examples/sparse_text/config.yaml
	touch $@

run: install
	$(BIN)/python -m mpi_examples.tour

test: export PYTHONDONTWRITEBYTECODE =
test: install lint
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m 'not slow'
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m slow

lint: install
	$(BIN)/ruff check bmrm tests benchmarks mpi_examples pages
	$(BIN)/ruff format --check bmrm tests benchmarks mpi_examples pages
	$(BIN)/mypy bmrm
	$(BIN)/lint-imports

docs: install
	$(BIN)/python -m pages
	$(BIN)/zensical build --clean --strict
	$(BIN)/python -m pages.search

measurements: install
	$(BIN)/python -m benchmarks

$(VENV)/peers: pyproject.toml
	$(BIN)/pip install --quiet -e '.[bench]'
	touch $@

bench: install $(VENV)/peers
	$(BIN)/python -m benchmarks.race --quick

bench-full: install $(VENV)/peers
	$(BIN)/python -m benchmarks.race --solvers all --keep && $(BIN)/python -m benchmarks.race --page

clean:
	rm -rf $(VENV) build dist site runs
