# `make demo` and `make test` need Python 3.11 or newer, pip and make. They set up the rest in .venv.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
INSTALLED_DEV := .venv/.installed-dev
INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt

.PHONY: help demo test lint bench results docs clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    run the shipped model, then train one on a small sample (about 3 minutes)"
	@echo "make test    lint, then run all tests (about 10 minutes); TERCET_DATA=DIR adds tests on real data"
	@echo "make lint    ruff, codespell and mypy --strict"
	@echo "make bench   measure this machine, as a ratio to sentence-transformers"
	@echo "make results render the pages of results/ from their records"
	@echo "make docs    build the documentation site in build/site; a dead link fails"
	@echo "make clean   remove what these commands made, except .venv"

demo: $(INSTALLED)
	@echo "The shipped model: no download, no training."
	$(BIN)/tercet predict sentiment --text "A quiet triumph." --text "A dull and lifeless film."
	$(BIN)/tercet predict paraphrase \
		--text "How do I learn the guitar?" --text "What is the best way to learn guitar?"
	$(BIN)/tercet predict similarity \
		--text "A man is slicing bread in the kitchen." --text "Someone cuts a loaf at home."
	rm -rf demo
	$(BIN)/python -c "from pathlib import Path; from tercet.data.sample import write_sample; \
		write_sample(Path('demo/data'), rows=480)"
	@echo "The closest pairs in a small corpus."
	$(BIN)/tercet mine demo/data/sts-train.csv --column sentence1 --top 5
	@echo "A new model: a short training run and its report."
	$(BIN)/tercet weights all-minilm-l6-v2
	$(BIN)/tercet train tercet/demo --data demo/data --out demo/run
	$(BIN)/tercet evaluate demo/run --data demo/data --report demo/report.html

# Tests that compare against missing weights are skipped and say so.
test: lint
	@for name in all-minilm-l6-v2 all-mpnet-base-v2; do \
		$(BIN)/tercet weights $$name || echo "$$name: not fetched; its tests are skipped" >&2; \
	done
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: $(INSTALLED_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell *.md docs results src tools
	$(BIN)/mypy

bench: $(INSTALLED_DEV)
	$(BIN)/tercet bench
	@echo "More: .venv/bin/tercet bench --list"

results: $(INSTALLED_DEV)
	$(BIN)/python tools/render_results.py

# The repository is the source folder, so that links to files beside docs/ work on the site too.
docs: $(INSTALLED_DEV)
	$(BIN)/python -m sphinx -W --keep-going -q -c docs -d build/doctrees . build/site
	@echo "open build/site/index.html"

clean:
	rm -rf demo build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +

$(INSTALLED_DEV): $(INSTALLED)
	$(INSTALL) -e '.[dev,docs,onnx,ray,search,serve,surgery,tensorboard,torch]'
	@touch $@

# Some systems ship Python without ensurepip; their own pip then installs pip into .venv.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Tercet needs Python 3.11 or newer, and $(PYTHON) is older; name another one, such as:" \
			"make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv 2>/dev/null || { \
		$(PYTHON) -m venv --clear --without-pip .venv && \
		$(PYTHON) -m pip --python .venv/bin/python install -q pip; }
	@echo "installing into .venv (torch is large; this takes some minutes)"
	$(INSTALL) -e '.[torch]'
	@touch $@
