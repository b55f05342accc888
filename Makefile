# All commands set up what they need in .venv: make demo, make test, make docs, make paper.
# make demo installs the package alone; the others install everything.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
CORE := $(VENV)/installed-core
SOURCES := pyproject.toml setup.py constraints.txt $(shell find src -name '*.p[yx][xd]')
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of processes: compile the sources once

.PHONY: demo test test-spark test-rest lint bench docs paper hand-on clean

demo: $(CORE)
	$(BIN)/dp-sips demo

# Side by side: each waits for something else most of the time. Each is heard when it has ended.
test: $(STAMP)
	$(MAKE) --jobs=3 --output-sync=target lint test-spark test-rest

test-spark: $(STAMP)
	$(BIN)/pytest -n0 tests/spark  # a session on a cluster of its own

test-rest: $(STAMP)
	$(BIN)/pytest --ignore tests/spark

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/against_duckdb.py

docs: $(STAMP)
	$(BIN)/sphinx-build -W --keep-going -q docs build/site
	@echo build/site/index.html

# The paper's evaluation: make paper DATA=DIR, or make paper QUICK=1 on generated data alone.
OUT ?= $(if $(QUICK),build/paper,docs/paper)
paper: $(STAMP)
	$(BIN)/python experiments/paper.py --out $(OUT) $(if $(QUICK),--quick) $(if $(DATA),--data $(DATA))
	$(BIN)/python experiments/check_page.py $(OUT)/index.html

# Other libraries on a release, each in an environment of its own: downloads a lot.
hand-on: $(STAMP)
	$(BIN)/python experiments/hand_on/run.py

$(CORE): $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --editable .
	touch $@

$(STAMP): $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --no-compile --editable '.[pandas,polars,duckdb,spark,text,counts,plot,remote]' --group test
	touch $(CORE) $@

clean:
	rm -rf $(VENV) build src/*.egg-info $$(find src -name '*.c' -o -name '*.so')
