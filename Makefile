# Start here: `make` lists what there is to do.

BIN := .venv/bin
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)
# A virtual environment and an editable install hold absolute paths: a copied or moved tree must make its own.
HERE := $(firstword $(shell pwd | cksum))
VENV := .venv/.made-$(HERE)
PACKAGES := .venv/.packages-$(HERE)
READY := .venv/.ready-$(HERE)
UV = $(if $(shell uv --version 2>/dev/null),uv,$(BIN)/uv)

# Runs a command and shows what it said only if it failed.
quietly = out=$$($(1) 2>&1) || { printf '%s\n' "$$out"; exit 1; }

# A run starts hundreds of Python processes: without bytecode each compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup packages lock lint lint-types lint-style lint-contracts lint-tidy test simulate docs bench soak trial demo wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## make .venv from requirements.txt; PYTHON=path picks the interpreter
	@:

packages: $(PACKAGES)
	@:

# Pyenv leaves a python3.x in PATH for versions that it will not run, so each candidate is tried by running it.
$(VENV):
	@rm -rf .venv; set -e; \
	for python in $(PYTHONS) ""; do \
	  $${python:-false} -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	done; \
	[ "$$python" ] || { echo "Python 3.11 or newer is needed: make setup PYTHON=/path/to/python" >&2; exit 1; }; \
	echo "Making .venv with $$($$python --version); the first time takes a minute or two"; \
	if uv --version >/dev/null 2>&1; then \
	  uv venv --quiet --python "$$($$python -c 'import sys; print(sys.executable)')" .venv; \
	else \
	  $$python -m venv .venv; \
	  $(BIN)/python -m pip --quiet --disable-pip-version-check install uv; \
	fi; \
	touch $@

install = $(UV) pip install --quiet --python $(BIN)/python --no-deps --require-hashes --requirement requirements.txt $(1)

# The lock has everything. To look for dependencies uv would fetch pyspark's source, 450 MB, and build what it has built before; and so it
# would to ask whether what it has kept is still the newest, which the lock's hashes make needless.
$(PACKAGES): requirements.txt pyproject.toml | $(VENV)
	@$(call install,--offline) 2>/dev/null || $(call install)
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(UV) pip check --quiet --python $(BIN)/python
	@touch $@

# Numba compiles what reads and writes records once, here, rather than in the first test or job that needs it; and Python what
# commands load.
$(READY): $(PACKAGES)
	@$(BIN)/python -c 'import local_log.engine.append.validator, remote.store.s3.store, tiering.api, local_log.formats.record_batch.columns as columns; columns.warm_up()'
	@touch $@
	@echo "Ready"

lock: | $(VENV) ## update requirements.txt from pyproject.toml; ARGS=--upgrade takes the newest versions
	@echo '--editable .[spark]' | $(UV) pip compile - --group dev --quiet $(ARGS) --output-file requirements.txt \
	  --universal --python-version 3.11 --generate-hashes --no-emit-package kafka-tiering \
	  --no-emit-index-url --no-emit-find-links --no-annotate --no-header
	@{ printf '# %s\n' "Every package of a developer's machine: pyproject.toml's own, its extra spark and its group dev." \
	  "A lock with hashes for Python 3.11 to 3.14; \`make lock\` renews it."; cat requirements.txt; } >requirements.new
	@mv requirements.new requirements.txt

lint: packages ## style, types, import contracts and the tidy test; silent when all is well
	@$(MAKE) --silent --jobs 2 lint-types lint-style lint-contracts lint-tidy

lint-types:
	@$(BIN)/mypy --no-error-summary

lint-style:
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet

lint-contracts:
	@$(call quietly,$(BIN)/lint-imports)

lint-tidy:
	@$(call quietly,$(BIN)/python -m pytest tests/test_tidy.py)

# Tests write and sync files all the time that are gone a second later; memory takes them in half the time, where there is room.
ROOM = $(shell df -k --output=avail /dev/shm 2>/dev/null | tail -n 1) $(shell sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null)
HAS_ROOM = [ $(words $(ROOM)) = 2 ] && [ $(firstword $(ROOM)) -gt 8000000 ] && [ $(lastword $(ROOM)) -gt 8000000 ]
MAY_RUN = ! grep -q ' /dev/shm .*noexec' /proc/mounts
IN_MEMORY = $(if $(TMPDIR),,$(shell $(HAS_ROOM) && $(MAY_RUN) && echo TMPDIR=/dev/shm))

# Six workers for two processors: Spark, Airflow and brokers leave each of them waiting half of the time.
test: setup ## all tests; ARGS="-k name" narrows them, ARGS=--quick leaves out what is slow or needs Java or a server
	@$(IN_MEMORY) $(BIN)/python -m pytest -n 6 --dist loadfile --no-loadscope-reorder $(ARGS)

simulate: setup ## seeded schedules of failures over the real code; ARGS="--seeds 10000 --first 1"
	@$(BIN)/python tests/simulation/simulate.py $(ARGS)

bench: setup ## benchmarks; ARGS go to bench/run.py
	@$(BIN)/python bench/run.py $(ARGS)

docs: setup ## docs/_build/html: the pages of docs/ as HTML
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

soak: setup ## ten minutes of load and kills for an agent beside a broker; ARGS=--own for a process that owns its logs, ARGS=--history for an endpoint
	@$(BIN)/python soak/soak_agent.py $(ARGS)

trial: setup ## three minutes of failures: store unavailable, records lost, disk lost; ARGS go to soak/trial.py
	@$(BIN)/python soak/trial.py $(ARGS)

demo: setup ## the life of a log on both tiers, in a minute; ARCHIVE=url keeps it in your bucket
	@$(BIN)/python demo/run.py $(if $(ARCHIVE),--archive $(ARCHIVE))

wheel: setup ## dist/: the wheel, and the same as kafka_tiering.zip for spark-submit --py-files
	@rm -rf dist
	@$(call quietly,$(BIN)/python -m hatchling build --target wheel)
	@cp dist/*.whl dist/kafka_tiering.zip
	@ls dist/*

clean: ## remove .venv, caches and the output of demo, bench and Spark
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache \
	  demo-out bench-out soak-out trial-out idle-out build dist docs/_build spark-warehouse metastore_db derby.log
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
