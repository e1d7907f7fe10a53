# Every target works in a fresh clone: the first one makes .venv, later ones reuse it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Only one thing decides whether to install again: did pyproject.toml change since the last time?
STAMP := $(VENV)/.installed
UV := $(shell command -v uv 2>/dev/null)

.PHONY: demo test lint bench format clean

demo: $(STAMP)
	$(BIN)/python -m hsreject.demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(STAMP): pyproject.toml
ifdef UV
	test -x $(BIN)/python || uv venv --python $(PYTHON) $(VENV)
	uv pip install --python $(BIN)/python -e '.[datasets,distributed]' --group test --group lint
else
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet -e '.[datasets,distributed]' --group test --group lint
endif
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
