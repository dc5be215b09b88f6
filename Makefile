# Two commands do all the set-up: `make demo` and `make test`. Both are safe to repeat.
# Fresh Debian 12 needs nothing but make; other systems need Python 3.11+ and git.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
TENSORFLOW ?= tensorflow-cpu==2.21.0
BIN := $(VENV)/bin
CASES ?= tests/cases/fresh.jsonl
# Tests of real jobs and editors mostly wait, so that more of them run than there are cores.
WORKERS ?= 4
# Of the long proofs (tests/rotation.py) another share is made with each commit: a turn from 0 to 11, or all.
SHARE ?= commit
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Tests start dtdebug thousands of times: where Python may not write bytecode, as in many containers, each start would
# compile it again (0.5 s of processor time instead of 0.2).
PYTEST = $(BIN)/python -m compileall -qq -x '(labs|notebooks)/|/(bad|good|near_miss|program|run)[^/]*$$' kernel lsp taxonomy; \
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo test proofs attack check tidy lint types layers accuracy words goldens ablate bench labs-tensorflow doctor-lab docs images release message symptom check-rule extension card vsix lab node code-server
.PHONY: debian-base debian-network debian-browser debian-editors clean

demo: $(VENV)/.torch ## the main job on a real failing multi-process run
	$(BIN)/python docs/demo.py

# What uses the environment waits for pip, where one make is asked for both.
PIP := $(filter $(VENV)/.ready,$(MAKECMDGOALS))

# Nearly all of the set-up keeps one core busy: two parts of it at a time, and the longest chain first.
test: $(VENV)/.core debian-network debian-browser debian-editors ## everything that CI checks
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target $(VENV)/.ready code-server check extension
	$(PYTEST) --share $(SHARE)

proofs: $(VENV)/.core debian-network debian-browser debian-editors ## all long proofs, of which `make test` makes a share, and all labs
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target $(VENV)/.ready code-server extension
	$(PYTEST) -m "rotating or labs"

check: $(VENV)/.core lint types layers tidy ## the quick half: no torch, no browser, no editor

lint: $(VENV)/.core
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.core | $(PIP)
	$(BIN)/mypy

layers: $(VENV)/.core | $(PIP)
	$(BIN)/lint-imports

tidy: $(VENV)/.core | $(PIP) ## the rules that the knowledge keeps
	$(BIN)/python -m dtdebug_taxonomy.dev.lint tests/samples

words: $(VENV)/.ready ## fit the reader of words to rated cases, sentences of the knowledge and written texts
	$(BIN)/python -m pip install --quiet --group words
	$(BIN)/python benchmarks/fit_words.py

accuracy: $(VENV)/.ready ## figures on rated cases: make accuracy CASES=FILE.jsonl
	$(BIN)/python benchmarks/accuracy.py $(CASES)
	$(BIN)/python benchmarks/strengths.py $(CASES)

goldens: $(VENV)/.ready ## write the answers to all committed inputs anew, for review as a diff
	$(BIN)/python -m pytest -q -p no:xdist tests/taxonomy/diagnosis/test_goldens.py --update-goldens

ablate: $(VENV)/.core ## what each part of the inference changes on committed inputs (minutes)
	$(BIN)/python benchmarks/ablate.py

attack: $(VENV)/.ready debian-editors ## hostile input, broken disks and kills at full length (half an hour)
	DTDEBUG_ATTACK=1 $(BIN)/python -m pytest -p no:xdist --timeout=0 --durations=10 -s tests/repository/test_attack.py tests/repository/test_hold.py tests/kernel/privacy/test_masking.py tests/kernel/recorded/test_flight_bounds.py tests/kernel/live/test_output.py tests/kernel/live/test_ranks_hostile.py

bench: $(VENV)/.ready debian-browser card lab ## time and memory, printed
	$(BIN)/python benchmarks/cost.py
	$(BIN)/python benchmarks/editor.py
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/panel.py
	$(BIN)/python benchmarks/lab.py

labs-tensorflow: $(VENV)-tensorflow/.ready ## labs of TensorFlow and Keras, two workers each, in an environment of their own (2 GB, once)
	for lab in $(notdir $(patsubst %/,%,$(dir $(shell grep -l '"tensorflow"' taxonomy/dtdebug_taxonomy/labs/*/lab.toml)))); do \
		$(VENV)-tensorflow/bin/python -m dtdebug lab verify $$lab || exit 1; done

$(VENV)-tensorflow/.ready: | debian-base
	$(PYTHON) -m venv $(VENV)-tensorflow
	$(VENV)-tensorflow/bin/python -m pip install --quiet --editable . "$(TENSORFLOW)"
	@touch $@

doctor-lab: $(VENV)/.ready ## all faults of several hosts, in network namespaces, beside real gloo: needs root, nft
	$(BIN)/python benchmarks/doctor.py --gloo

docs: $(VENV)/.ready ## the site in build/site; to look at it: python -m http.server -d build/site
	$(BIN)/python -m sphinx -q -b dirhtml -n -W --keep-going -j auto -d build/doctrees docs build/site

images: $(VENV)/.ready debian-browser lab ## the pictures of docs/images, taken from a real JupyterLab
	$(BIN)/python docs/images.py

release: $(VENV)/.core lab ## what a release would upload, in dist/: built, compared and checked; nothing is uploaded
	$(BIN)/python -m pip install --quiet --group release
	$(BIN)/python .ci/release.py

message: $(VENV)/.core ## make message TEXT='a line that was printed' [FILE=gloo]: its entry, and a sample that is run
	@$(BIN)/python -m dtdebug_taxonomy.dev.new_message "$$TEXT" "$$FILE"

symptom: $(VENV)/.core ## make symptom NAME=what-is-seen: files for a new symptom
	$(BIN)/python -m dtdebug_taxonomy.dev.new_symptom "$(NAME)"

check-rule: $(VENV)/.core ## make check-rule NAME=what-is-wrong GROUP=5: the folder of a new check
	$(BIN)/python -m dtdebug_taxonomy.dev.new_check "$(NAME)" "$(GROUP)"

extension: card vsix lab ## all that is written in TypeScript, checked and built

card: node ## the card of a diagnosis that notebooks show
	cd extension/shared && $(NPM_CI) && npm test --silent

vsix: node ## the VS Code extension: extension/vscode/build/dtdebug-VERSION.vsix
	cd extension/vscode && $(NPM_CI) && npm run --silent types && npm test --silent && npm run --silent package

LAB := extension/jupyterlab
lab: $(LAB)/labextension/package.json ## JupyterLab's extension, which the wheel holds

$(LAB)/labextension/package.json: $(VENV)/.core $(wildcard $(LAB)/*.py $(LAB)/src/*.ts $(LAB)/schema/* $(LAB)/package*.json extension/shared/src/* extension/shared/src/ranks/* taxonomy/dtdebug_taxonomy/messages/* taxonomy/dtdebug_taxonomy/symptoms/*) | node $(PIP) $(if $(PIP),layers tidy)
	$(BIN)/python $(LAB)/generate.py
	cd $(LAB) && export PATH="$(abspath $(BIN)):$$PATH" && $(NPM_CI) && npm test --silent && npm run --silent build
	@touch $@ && $(BIN)/python -m pip install --quiet --no-deps --editable .

# Installs what the lock file names, unless it is there.
NPM_CI = export PATH="$(CURDIR)/build/node/bin:$$PATH" && \
	{ cmp --silent package-lock.json node_modules/.installed || { npm ci --loglevel=error --no-audit --no-fund && cp package-lock.json node_modules/.installed; }; }

node: build/node/bin/npm

build/node/bin/npm: | $(VENV)/.core
	sh extension/install_node.sh build/node $(BIN)/python

code-server: node debian-editors ## a real VS Code for the tests of editors, in build/code-server (300 MB, once)
	sh tests/editors/install_code_server.sh build/code-server build/node/bin

$(VENV)/.core: pyproject.toml | debian-base
	@echo "== virtual environment in $(VENV): dtdebug and what checks its source"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group core
	@touch $@

$(VENV)/.torch: $(VENV)/.core
	@echo "== $(TORCH)"
	$(BIN)/python -m pip install --quiet "$(TORCH)" numpy
	@touch $@

$(VENV)/.ready: $(VENV)/.torch
	@echo "== what the tests use"
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

# Debian packages are installed only where they are missing and apt-get is there.
debian-base:
	@command -v git >/dev/null && $(PYTHON) -c "import venv, ensurepip" 2>/dev/null || $(MAKE) --no-print-directory apt PACKAGES="git python3 python3-venv"

debian-network: ## network namespaces and a packet filter, for hosts that only seem to be several
	@command -v ip >/dev/null && command -v nft >/dev/null || $(MAKE) --no-print-directory apt PACKAGES="iproute2 nftables"

debian-browser:
	@command -v chromium >/dev/null || $(MAKE) --no-print-directory apt PACKAGES="chromium fonts-dejavu-core"

debian-editors:
	@command -v nvim >/dev/null && command -v g++ >/dev/null && test -e /usr/share/emacs/site-lisp/elpa/eglot-1.9 || $(MAKE) --no-print-directory apt PACKAGES="neovim emacs-nox elpa-eglot g++ make"

.PHONY: apt
apt:
	@command -v apt-get >/dev/null || { echo "please install: $(PACKAGES)"; exit 1; }
	@echo "== Debian packages: $(PACKAGES)"
	@if [ "$$(id -u)" = 0 ]; then S=; else S=sudo; fi; \
	$$S apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive $$S apt-get install --yes --quiet --quiet --no-install-recommends $(PACKAGES)

clean:
	rm -rf $(VENV) $(VENV)-tensorflow build dist taxonomy/dtdebug_taxonomy/_index .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
