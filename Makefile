# Headwater's bench. `make` alone lists what there is.
#
# Every target sets itself up first; nothing but Python 3.11 or newer, make and git need be there.
# PYTHON=/path/to/python chooses the interpreter, JOBS=n how many tests run side by side; MACHINE
# (as `uname -m` says it) and DEB (as dpkg does) the machine that wheels and packages are for.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV_VERSION := 0.13.8
# What Python compiles is kept: every process that the tests start would compile it all anew.
export PYTHONDONTWRITEBYTECODE =
MACHINE ?= $(shell uname -m)
DEB ?= $(shell dpkg --print-architecture 2>/dev/null || echo amd64)
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); [ $$n -gt 4 ] && n=4; echo $$n)

.PHONY: help setup demo demo-lab demo-server test check compiled test-compose wheels deb release test-pi long sanitized bench papers docs

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv with everything locked in uv.lock; nothing to do where that is done

demo: $(READY)  ## the main job: six brokers and real measurements, offline
	@$(BIN)/headwater demo

demo-lab: $(READY)  ## a laboratory: six brokers that decide by themselves where its tasks run
	@$(BIN)/python examples/placement/run_laboratory.py

demo-server: $(READY)  ## brokers, the replay and Spark in one go, ending with what the history holds
	@$(BIN)/python -m server.demo

# While the static checks take one core, another compiles the tests, which all workers would do else.
test: $(READY)  ## the static checks and the fast tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync check compiled
	@$(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 16

compiled: $(READY)
	@$(BIN)/python -m pytest --collect-only --quiet >/dev/null 2>&1 || :

check: $(READY)  ## the static part: lint, format, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

test-compose: $(READY)  ## docker-compose.yml on a real engine; needs root and Debian's packages
	@HEADWATER_TEST_COMPOSE=1 $(BIN)/python -m pytest tests/compose -p no:xdist \
		--timeout 1800 --durations 8 -rs

wheels: $(READY)  ## dist/wheels-MACHINE: a broker's wheels for a machine without a network
	@$(BIN)/python deploy/wheels.py $(MACHINE) dist/wheels-$(MACHINE)

deb: $(READY)  ## dist/headwater_…_DEB.deb: a Debian package of a broker
	@$(BIN)/python deploy/deb.py $(DEB) dist

release: $(READY)  ## dist/release: wheels, packages, images' contexts, an SBOM and checksums
	@$(BIN)/python deploy/release.py dist/release

test-pi: $(READY)  ## the package and the installer in bare roots; needs root and debootstrap
	@HEADWATER_TEST_PI=1 $(BIN)/python -m pytest tests/pi -p no:xdist --timeout 900 -rs

long: $(READY)  ## the tests with many seeds or much data, and those of `sanitized`
	@$(BIN)/python -m pytest -m long -n $(JOBS)
	@$(MAKE) --no-print-directory sanitized

sanitized: $(READY)  ## the tests of what is compiled, with two sanitizers of the compiler
	@sh .ci/sanitized tests/broker/core/test_compiled*.py

bench: $(READY)  ## measure: figures with the machine they were taken on
	@$(BIN)/python -m bench

papers: $(READY)  ## repeat the papers' experiments and write their pages; takes its time
	@$(BIN)/python -m simulation.papers --page docs/papers.md --jobs 2
	@$(BIN)/python -m experiments.rfid --page docs/papers-rfid.md
	@$(BIN)/python -m experiments.motes --page docs/papers-motes.md
	@$(BIN)/python -m experiments.placing --page docs/papers-placement.md
	@$(BIN)/python -m experiments.restriction --page docs/papers-time.md

docs: $(READY)  ## write the pages that are generated from code
	@$(BIN)/python -m headwater.pages

# uv lives beside the environment's own packages, where syncing does not reach it.
$(READY): pyproject.toml uv.lock .ci/compile.py $(wildcard broker/engine/native/*.[ch])
	@VENV='$(VENV)' UV_VERSION='$(UV_VERSION)' PYTHON='$(PYTHON)' sh .ci/setup
	@touch $@
