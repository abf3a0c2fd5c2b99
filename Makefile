# `make demo` and `make test` set themselves up in .venv from a clean checkout. What is missing on the machine is named, with the one command that gets it.
PY := .venv/bin/python
PYTEST := $(PY) -m pytest
NATIVE := $(wildcard agent/native/*.c agent/native/*.h agent/native/*.S agent/native/*.lds agent/native/Makefile)
GENERATORS := strobe.lanes.generate actors.spawner.bundle actors.gateway.schemas
.DEFAULT_GOAL := help
# Else each process would compile Strobe anew as it starts.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo       build a small buggy program and debug it through a real MCP session"
	@echo "make test       the tests that every change must pass (at most 15 min on 2 cores)"
	@echo "make test-full  those and the long matrices"
	@echo "make bench      the benchmarks; ARGS='--only launch' for some of them"
	@echo "make lint       ruff, mypy --strict, stale generated files"
	@echo "make generate   write the generated files anew"
	@echo "make native     the C parts: keeper and recorder"
	@echo "make lock       resolve and hash the requirements anew (needs uv)"
	@echo "make clean      remove what was built, .venv too"

setup-run:
	@sh deploy/setup.sh run

setup-dev:
	@sh deploy/setup.sh dev

native: agent/native/build/.made
agent/native/build/.made: $(NATIVE)
	@$(MAKE) --no-print-directory -C agent/native
	@touch $@

demo: setup-run native
	@.venv/bin/strobe demo

test: setup-dev native
	$(PYTEST) -m "not full" -n 2 --dist loadfile $(ARGS)

test-full: setup-dev native
	$(PYTEST) $(ARGS)

bench: setup-dev native
	$(PY) -m tests.bench $(ARGS)

lint: setup-dev
	$(PY) -m ruff check .
	$(PY) -m mypy
	@for generator in $(GENERATORS); do echo "$$generator --check"; $(PY) -m $$generator --check || exit 1; done

generate: setup-dev
	@for generator in $(GENERATORS); do $(PY) -m $$generator || exit 1; done

UV ?= uv
LOCK := $(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock:
	$(LOCK) --group build --output-file requirements.lock
	$(LOCK) --group build --group dev --constraint requirements.lock --output-file requirements-dev.lock

clean:
	$(MAKE) -C agent/native clean
	rm -rf .venv build dist *.egg-info tests/targets/build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find strobe actors tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup-run setup-dev native demo test test-full bench lint generate lock clean
