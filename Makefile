# Every target sets up what it needs: a fresh clone, Python 3.11+ and pip are enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install atlas examples verify test test-slow test-gpu lint types bench defects docs clean

install: .venv/installed

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/pyright --version  # fetches what it needs now, so that everything else works offline
	touch $@

atlas: install            ## the main job: put every theorem to the test, show it all in out/atlas/atlas.html
	$(BIN)/featlab atlas --size smoke --out out/atlas

examples: install         ## run the example experiments, write their figures to out/examples
	$(BIN)/python examples/run_all.py --out out/examples

verify: install           ## put every theorem to the test; exit 3 says that one is inconclusive
	$(BIN)/featlab verify --all --out out/verdicts

test: install lint types  ## everything that decides, within minutes on two cores
	FEATLAB_TESTS=fast $(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not slow and not rounding'
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not slow and rounding'

test-slow: install        ## the same honesty, more seeds, and every deliberate defect
	$(BIN)/python -m pytest
	$(BIN)/python tests/defects.py

test-gpu: install
	$(BIN)/python -m pytest -m gpu

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: install            ## every speed as a ratio against what one would write instead; on an idle machine
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python benchmarks/dimension.py
	$(BIN)/python benchmarks/products.py
	$(BIN)/python benchmarks/heatmap.py
	$(BIN)/python benchmarks/refinement.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/workers.py
	$(BIN)/python benchmarks/adaptive.py
	$(BIN)/python benchmarks/ridge_path.py
	$(BIN)/python benchmarks/in_context.py
	$(BIN)/python benchmarks/transformer.py
	$(BIN)/python benchmarks/rfm.py

defects: install
	$(BIN)/python tests/defects.py

docs: .venv/docs-installed  ## the site, docs/_build/html/index.html; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html

.venv/docs-installed: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

clean:
	rm -rf .venv out .pytest_cache .ruff_cache docs/_build docs/generated
