# Two commands do all the set-up: `make demo` and `make test`. Both are safe to repeat.
# Fresh Debian 12 needs nothing but make; other systems need Python 3.11+ and git.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
CASES ?= tests/cases/fresh.jsonl
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check tidy lint types layers accuracy bench symptom debian-base debian-browser clean

demo: $(VENV)/.ready ## the main job on a real failing multi-process run
	$(BIN)/python docs/demo.py

test: $(VENV)/.ready debian-browser check ## everything that CI checks
	$(BIN)/python -m pytest

check: $(VENV)/.ready lint types layers tidy

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

layers: $(VENV)/.ready
	$(BIN)/lint-imports

tidy: $(VENV)/.ready ## the rules that the knowledge keeps
	$(BIN)/python -m dtdebug_taxonomy.tidy tests/samples

accuracy: $(VENV)/.ready ## figures on rated cases: make accuracy CASES=FILE.jsonl
	$(BIN)/python benchmarks/accuracy.py $(CASES)

bench: $(VENV)/.ready ## time and memory, printed
	$(BIN)/python benchmarks/cost.py

symptom: $(VENV)/.ready ## make symptom NAME=what-is-seen: files for a new symptom
	$(BIN)/python -m dtdebug_taxonomy.scaffold "$(NAME)"

$(VENV)/.ready: pyproject.toml | debian-base
	@echo "== virtual environment in $(VENV): dtdebug, its tools, $(TORCH)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet "$(TORCH)" numpy
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	@touch $@

# Debian packages are installed only where they lack and apt-get is there.
debian-base:
	@command -v git >/dev/null && $(PYTHON) -c "import venv, ensurepip" 2>/dev/null || $(MAKE) --no-print-directory apt PACKAGES="git python3 python3-venv"

debian-browser:
	@command -v chromium >/dev/null || $(MAKE) --no-print-directory apt PACKAGES="chromium fonts-dejavu-core"

.PHONY: apt
apt:
	@command -v apt-get >/dev/null || { echo "please install: $(PACKAGES)"; exit 1; }
	@echo "== Debian packages: $(PACKAGES)"
	@if [ "$$(id -u)" = 0 ]; then S=; else S=sudo; fi; \
	$$S apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive $$S apt-get install --yes --quiet --quiet --no-install-recommends $(PACKAGES)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
