# `make test` checks everything, `make demo` searches the fastest kernel of attention and
# shows it.
# Both first put what pyproject.toml names and constraints.txt pins into .venv, and again
# when either file has changed.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: test demo lint

test: lint
	$(BIN)/lit -j2 test/filecheck
	$(BIN)/pytest -n 2

demo: $(READY)
	$(BIN)/cleave doctor
	mkdir -p build
	$(BIN)/cleave compile examples/attention_softmax.mlir --effort quick --no-cache \
		--out build/demo > build/demo.txt
	cat build/demo/module.py build/demo.txt

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

# Setuptools comes first because the build of the editable install, not being isolated,
# uses the pinned one.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade \
		pip setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt \
		--no-build-isolation --group dev --editable '.[tilelang]'
	touch $@
