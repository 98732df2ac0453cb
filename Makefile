PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install run test lint docs bench clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e '.[dev,docs,mpirun]'
	touch $@

run: install
	$(BIN)/python -m mpi_examples.tour

test: install lint
	$(BIN)/python -m pytest -q -m 'not slow'
	$(BIN)/python -m pytest -q -m slow

lint: install
	$(BIN)/ruff check bmrm tests benchmarks mpi_examples
	$(BIN)/ruff format --check bmrm tests benchmarks mpi_examples
	$(BIN)/mypy bmrm
	$(BIN)/lint-imports

docs: install
	$(BIN)/mkdocs build --strict

bench: install
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist site runs
