# On a fresh machine with Python 3.11 or newer and make, each of these does everything it needs:
#   make embed-corpus    from raw text to a map of its words: a Zarr store, a picture, a table
#   make test            every test
# and, with the peers that it is measured against:
#   make bench           ours and theirs side by side: a quarter of an hour
#   make bench-scale     time and memory from 1e4 to 1e7 rows, and the picture in docs/
# Options for the run go in ARGS:  make embed-corpus ARGS="--set input='books/*.txt' --output books.zarr"

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin

.PHONY: embed-corpus test lint bench bench-scale clean

embed-corpus: $(VENV)/.installed
	@$(BIN)/locpipe run embed-corpus $(ARGS)

test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest --cov --cov-report=term:skip-covered $(ARGS)

lint: $(VENV)/.installed-test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# Each file of benchmarks/ says at its head what it measures and which options it has.
# `python benchmarks/page.py` writes what they print into docs/benchmarks.md.
SIDE_BY_SIDE := attention density spectral pruned neighbours on_dask
OURS_ALONE := graphs memory unfolding command_line

bench: $(VENV)/.installed-bench
	@for name in $(SIDE_BY_SIDE) $(OURS_ALONE); do $(BIN)/python benchmarks/$$name.py || exit 1; done

bench-scale: $(VENV)/.installed-bench
	@$(BIN)/python benchmarks/scale.py --picture docs/benchmarks.png

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage

# Installing: uv where it can be had (seconds instead of minutes), plain pip where it cannot.
# The stamps make a second call instant; a change of pyproject.toml installs again.
define install
	@echo "Installing locpipe and what it needs into $(VENV) (once) ..."
	@start=$$(date +%s); \
	if $(BIN)/uv pip install --quiet --python $(BIN)/python --editable "$(1)" 2>$(VENV)/uv.log \
	    || $(BIN)/python -m pip install --quiet --editable "$(1)"; \
	then touch $@; echo "Installed in $$(( $$(date +%s) - start )) s."; else cat $(VENV)/uv.log; exit 1; fi
endef

$(VENV)/.installed: pyproject.toml | $(VENV)/.created
	$(call install,.)

$(VENV)/.installed-test: pyproject.toml | $(VENV)/.created
	$(call install,.[test])
	@touch $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/.created
	$(call install,.[test,bench])
	@touch $(VENV)/.installed $(VENV)/.installed-test

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "locpipe needs Python 3.11 or newer; name one with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv \
	    || echo "uv is not to be had here; installing with pip instead (slower)."
	@touch $@
