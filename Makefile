# Every target works in a fresh clone: the first one makes .venv; later ones reuse it and install
# again only when pyproject.toml has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
BENCH := .venv-bench
BENCH_STAMP := $(BENCH)/.installed
UV := $(shell command -v uv 2>/dev/null)
install = $(if $(UV),uv pip install --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet)

.PHONY: demo test lint docs notebooks bench results dist plugin format clean

demo: $(STAMP)
	$(BIN)/hsreject run configs/indian_pines.toml --out out/demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/zizmor --offline .github
	sed -n '/^```python/,/^```/{/^```/!p;}' README.md > $(VENV)/readme.py
	$(BIN)/mypy hsreject tests/test_types.py $(VENV)/readme.py

# The site, into docs/_build/html. A warning is an error; so is a link that leads nowhere.
docs: $(DOCS_STAMP)
	$(BIN)/sphinx-build --fail-on-warning --keep-going --jobs auto docs docs/_build/html

# The picture of the README: the explorer of the demo in a browser.
docs/indian_pines.png: out/demo/explorer.html
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1300,900 \
		--virtual-time-budget=5000 --screenshot=$@ file://$(abspath $<)

# Run the notebooks and store what they show; a test fails when that is stale.
notebooks: $(STAMP)
	$(BIN)/python -m tests.test_notebooks --write

# Benchmarks compare with other packages, which only they install. `make bench ONLY="curve context"`;
# PAGE=docs/benchmarks.md writes what they print as a page.
bench: $(BENCH_STAMP)
	$(BENCH)/bin/python -m benchmarks $(ONLY) $(if $(PAGE),--page $(PAGE))

# The table of methods over many draws: `make results OPTIONS="--seeds 30 --enmap CUBE LABELS"`.
results: $(STAMP)
	$(BIN)/python -m benchmarks.results $(OPTIONS)

# What is published: built, checked, installed into an empty environment, and the demo run there.
dist: .venv-release/.installed
	rm -rf dist .venv-wheel
	.venv-release/bin/python -m build
	.venv-release/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet "$$(ls dist/*.whl)[datasets]"
	cd dist && ../.venv-wheel/bin/hsreject run ../configs/indian_pines.toml --out ../out/wheel --overwrite

# The QGIS plugin, checked for what the repository of QGIS checks, and zipped.
plugin: $(STAMP)
	$(BIN)/ruff check integrations/qgis
	$(BIN)/python -m tools.plugin_zip dist/hsreject_processing.zip

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(STAMP): WANTED = -e '.[datasets,distributed,remote,zarr]' --group test --group lint
$(BENCH_STAMP): WANTED = -e '.[datasets,distributed]' --group bench
$(BENCH_STAMP): ALONE = 'reject>=0.3'  # asks for NumPy 1, but works with NumPy 2

.venv-release/.installed: WANTED = --group release

%/.installed: pyproject.toml
ifdef UV
	test -x $*/bin/python || uv venv --python $(PYTHON) $*
else
	test -x $*/bin/python || $(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
endif
	$(call install,$*) $(WANTED)
	$(if $(ALONE),$(call install,$*) --no-deps $(ALONE))
	touch $@

$(DOCS_STAMP): $(STAMP)
	$(call install,$(VENV)) --group docs
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) .venv-release .venv-wheel build dist docs/_build docs/gallery docs/notebooks docs/reference .mypy_cache .pytest_cache .ruff_cache .hypothesis
