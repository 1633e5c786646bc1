# Two commands for newcomers: `make demo` and `make test`. Each creates .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow test-minimum test-attacks attack coverage mutants docs reproduce bench lint format clean

demo: .venv/demo-installed
	rm -rf results/demo && mkdir -p results/demo
	$(BIN)/gpssl datasets breast_cancer --labels 150 --out results/demo/cells.csv
	$(BIN)/gpssl label results/demo/cells.csv --target target --max-risk 5% --out results/demo/labeled.csv
	$(BIN)/gpssl next results/demo/cells.csv --target target --model results/demo/labeled.gpssl -n 5
	$(BIN)/gpssl annotate results/demo/cells.csv --target target --model results/demo/labeled.gpssl --out results/demo/label.html
	$(BIN)/gpssl compare results/demo/cells.csv --target target --splits 10
	$(BIN)/gpssl report results/demo/labeled.gpssl results/demo/cells.csv --no-rivals --out results/demo/report.html
	$(BIN)/python -c "$$CIRCLES"
	@echo "Open results/demo/report.html and results/demo/label.html in a browser, and look at results/demo/circles.png."

# The paper's circles: where to believe a representation.
define CIRCLES
from gpssl import GPSSL, datasets, plots
X, _ = datasets.quadrant_circles()
axes = plots.plot_representation(GPSSL(2, random_state=0).fit(X), X)
axes[0, 0].figure.savefig("results/demo/circles.png", dpi=150)
endef
export CIRCLES

# Two processes with a BLAS thread each take little more than half the time of one with two. What is about threads runs by itself.
THREADS := tests/_runtime/test_threads.py tests/core/test_moments.py
PARALLEL := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses logical --maxprocesses 4 --dist worksteal
test: lint
	$(PARALLEL) $(THREADS:%=--ignore=%) --ignore=tests/attacks
	$(BIN)/python -m pytest -q $(THREADS)

# Proofs that take long: `make test` leaves them out, .ci/run runs both.
test-slow: .venv/dev-installed
	$(PARALLEL) -m slow

# The oldest versions that pyproject.toml claims: all tests of the core, and some of each extra. PyTorch, which the core's tests compare
# with, is that of constraints.txt. What the oldest Typer and Matplotlib still use of a new Click and pyparsing is no error here.
MINIMUM := .venv-minimum/bin/python
test-minimum: .venv-minimum/installed
	OPENBLAS_NUM_THREADS=1 $(MINIMUM) -m pytest -q --numprocesses logical --maxprocesses 4 --dist worksteal \
	  -W "ignore:'click.utils:DeprecationWarning" -W "ignore::pyparsing.warnings.PyparsingDeprecationWarning" \
	  tests/core tests/inference tests/kernels/test_vectors.py tests/test_estimator.py tests/io/test_model_files.py \
	  tests/cli/test_cells.py tests/data/test_dask.py tests/data/test_sources.py tests/kernels/test_graphs.py \
	  tests/plots/test_plots.py tests/spatial/test_spatial_embedding.py
	$(MINIMUM) -m pytest -q tests/_runtime/test_threads.py

.venv-minimum/installed: pyproject.toml constraints-minimum.txt
	$(PYTHON) -m venv .venv-minimum
	$(MINIMUM) -m pip install --quiet --disable-pip-version-check --constraint constraints-minimum.txt "$$(grep '^torch==' constraints.txt)" \
	  --editable ".[cli,duckdb,dask,graphs,spatial]" gpytorch grakel hypothesis polars pytest pytest-xdist
	touch $@

# Damaged files, faults and adversarial tables, the same ones on every run: some four minutes.
test-attacks: .venv/dev-installed
	$(PARALLEL) tests/attacks

# The same attacks for an hour, ten times as many inputs in each round and a new seed for each. A failure ends it and names the seed.
ATTACK_SECONDS ?= 3600
attack: .venv/dev-installed
	@end=$$(( $$(date +%s) + $(ATTACK_SECONDS) )); round=0; \
	while [ $$(date +%s) -lt $$end ]; do \
	  seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); round=$$(( round + 1 )); \
	  echo "Round $$round. To repeat it: GPSSL_ATTACK_SEED=$$seed GPSSL_ATTACK_FACTOR=10 make test-attacks"; \
	  GPSSL_ATTACK_SEED=$$seed GPSSL_ATTACK_FACTOR=10 $(MAKE) --no-print-directory test-attacks || exit 1; \
	done

# Lines and branches that tests run: of the core, which must be 95 %, and of the other rooms that decide what a person is told.
COVERED := tests/core tests/inference tests/kernels tests/test_estimator.py tests/evaluation tests/downstream tests/data
REPORTED := src/gpssl/inference/*,src/gpssl/evaluation/*,src/gpssl/downstream/*,src/gpssl/data/*
coverage: .venv/dev-installed
	rm -rf results/coverage && mkdir -p results/coverage
	OPENBLAS_NUM_THREADS=1 $(BIN)/coverage run -m pytest -q --numprocesses logical --maxprocesses 4 --dist worksteal $(COVERED)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include '$(REPORTED)'
	$(BIN)/coverage report --include 'src/gpssl/core/*' --fail-under 95

# Mistakes put into the code, and whether the tests of its folder notice. AREA: core, inference, risk, pool or readers.
AREA ?= core
SAMPLE ?= 100
SEED ?= 0
mutants: .venv/dev-installed
	OPENBLAS_NUM_THREADS=1 nice -n 19 $(BIN)/python tests/mutation/run.py $(AREA) --sample $(SAMPLE) --seed $(SEED)

lint: .venv/dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cat src/gpssl/report/*.js > .venv/report.js # the scripts of a page share one scope
	cat src/gpssl/report/shared.js src/gpssl/report/labeling/*.js > .venv/labeling.js
	$(BIN)/oxlint --no-ignore .venv/report.js .venv/labeling.js

docs: .venv/dev-installed
	$(BIN)/python -m sphinx -q -j 2 -W --keep-going -b html docs docs/_build

# Some hours: the paper's tables and figures. GPSSL_DATA names the folder with the data; an interrupted run resumes.
reproduce: .venv/dev-installed
	$(BIN)/python -m experiments all --report docs/results.md

bench: .venv/dev-installed
	$(BIN)/python -m benchmarks

format: .venv/dev-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .venv-minimum results docs/_build docs/gallery docs/api/generated

.venv/demo-installed: .venv/created pyproject.toml constraints.txt
	$(INSTALL) --editable ".[cli]"
	touch $@

.venv/dev-installed: .venv/created pyproject.toml constraints.txt
	$(INSTALL) --editable ".[dev]"
	touch $@

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gpssl needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@
