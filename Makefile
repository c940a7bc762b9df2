# Two commands do all set-up: `make demo` and `make test` work in a fresh clone with python3, pip and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# What the demo needs is a small part of what the tests need.
DEMO := $(VENV)/.demo
FILTER ?=

# Two processes on two cores: more threads only fight.
export OMP_NUM_THREADS ?= 1
# Build environments too must not reach for another torch than the pinned one.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

MINUTES ?= 10
HOURS ?=
RUNS ?= runs

# What is computed again with other arithmetic than this processor's best: every numerical suite but those that mostly
# start processes or train networks (tests/unit/training, experiments, many processes, label noise, samplers). Bits may
# differ between instruction sets, results not.
NUMERICAL := tests/numerics tests/golden tests/contracts src \
	$(addprefix tests/unit/,stability diagnostics optim models resampling)
APART := $(addprefix --ignore tests/,contracts/test_experiments.py contracts/test_sharpness_aware_distributed.py \
	numerics/test_label_noise.py numerics/test_learning_coefficient_peer.py)

.PHONY: help demo test lint types tests coverage arithmetic docs tables bench soak soak-quick campaign install clean

help:
	@echo "make demo    install, run the method on embedded data, end with a page to open"
	@echo "make test    install, then lint, types, docs and tests"
	@echo "make soak    kill, fuzz and flood for MINUTES=10, and end with a table of what broke"
	@echo "make bench   speed and memory as ratios, into benchmarks/RESULTS.md (FILTER=data for one part)"
	@echo "make docs    build the documentation into docs/_build/html and check its links"
	@echo "make campaign  run declared experiments at low priority in the background (HOURS=8), rows go to claims/"
	@echo "make tables  the tables of README and docs, filled from the ledger"
	@echo "make lint    ruff"

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $@

$(DEMO): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -e $(INSTALLED) || $(BIN)/pip install --quiet --editable .
	touch $@

install: $(INSTALLED)

demo: $(DEMO)
	$(BIN)/evenly demo

# The checks are one process each, so two of them run side by side; the tests use all cores by themselves.
test: $(INSTALLED)
	$(MAKE) --jobs 2 --output-sync lint types docs
	$(MAKE) tests arithmetic soak-quick

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

tests: $(INSTALLED)
	$(BIN)/pytest --numprocesses 3 --dist loadgroup

coverage: $(INSTALLED)
	$(BIN)/pytest --numprocesses 2 --cov --cov-report term

arithmetic: $(INSTALLED)
	ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2 $(BIN)/pytest --numprocesses 2 -q $(APART) $(NUMERICAL)

soak: $(INSTALLED)
	$(BIN)/python -m soak --minutes $(MINUTES)

soak-quick: $(INSTALLED)
	$(BIN)/python -m soak --quick

docs: $(INSTALLED)
	$(BIN)/sphinx-build --quiet --fail-on-warning --nitpicky -d docs/_build/doctrees -b html docs docs/_build/html
	$(BIN)/sphinx-build --quiet --fail-on-warning -d docs/_build/doctrees -b linkcheck docs docs/_build/linkcheck
	@echo "documentation: docs/_build/html/index.html"

tables: $(INSTALLED)
	$(BIN)/python docs/tables.py

campaign: $(INSTALLED)
	@mkdir -p runs
	nohup $$(command -v setsid) $(BIN)/evenly reproduce --next $(if $(HOURS),--hours $(HOURS)) --runs $(RUNS) > runs/campaign.log 2>&1 &
	@echo "running in the background; follow it with: tail -f runs/campaign.log"

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks $(FILTER)

clean:
	rm -rf $(VENV) docs/_build .mypy_cache .ruff_cache .pytest_cache .coverage
