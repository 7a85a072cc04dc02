# Every target sets itself up: it makes .venv, installs the locked packages there, then the
# project. PYTHON=python3.13 names the Python to make .venv with; another one makes it anew.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements-dev.lock
ROOMS := agent playbooks sandbox tools
CANDIDATES := python3.13 python3.12 python3.11 python3
PYTHON ?=
LOCK_FLAGS ?=

.PHONY: help setup demo test lint bench lock clean venv rebuild project

help:
	@echo 'make setup   makes $(VENV) and installs everything there; the other targets do it by themselves'
	@echo 'make demo    runs the double-scaling playbook on real SGLang source'
	@echo 'make test    lints, type-checks, then runs every test'
	@echo 'make lint    only the linters and the type checker'
	@echo 'make bench   prints how long things take beside the raw command'
	@echo 'make lock    resolves the lock files again (LOCK_FLAGS=--upgrade takes the newest versions)'
	@echo 'make clean   removes what the targets made; cases in .sleuth stay'

# sleuth ends with 1 when a suspect is guilty and with 3 when the case stays open: a finished
# investigation, so not a failure of the demo.
demo: setup
	@$(BIN)/sleuth run double-scaling -d playbooks/demo/double-scaling/sleuth.yaml; code=$$?; \
	case $$code in \
	0) said='nothing found against any suspect' ;; \
	1) said='a suspect is guilty' ;; \
	3) said='inconclusive' ;; \
	*) echo "demo: sleuth failed with exit code $$code" >&2; exit $$code ;; \
	esac; \
	echo "demo: the investigation finished; sleuth's exit code was $$code ($$said)" >&2

test: lint
	@$(BIN)/pytest

# mypy follows folders, not the package-dir mapping, so `project` lays links named as the packages
# are; the sed gives each message the file's own path.
lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@said=$$(MYPYPATH=$(VENV)/typing $(BIN)/mypy -p sleuth); code=$$?; \
	printf '%s\n' "$$said" | sed 's|^$(VENV)/typing/sleuth/||'; exit $$code

bench: setup
	@$(BIN)/python bench/run.py

# --- Set-up. What was done is recorded inside .venv only after it succeeded. stdout stays free.

setup: project

# Tells one virtual environment from another: this folder, the Python behind it, the lock file.
DESCRIBE := import os, sys; print(os.getcwd(), os.path.realpath(sys._base_executable), sys.version)
identity = { "$(1)" -I -c '$(DESCRIBE)' 2>/dev/null; cat $(LOCK); } | cksum

venv:
	@made=$$(cat $(VENV)/.made 2>/dev/null); \
	for python in $(BIN)/python $(if $(PYTHON),"$(PYTHON)"); do \
		test "$$made" = "$$($(call identity,$$python))" \
		|| exec $(MAKE) --no-print-directory rebuild; \
	done

# One word on what a Python can do: its path when it serves, else what it lacks.
PROBE := import sys; from importlib.util import find_spec; \
	version = "%d.%d" % sys.version_info[:2]; whole = find_spec("ensurepip") and find_spec("venv"); \
	print("old " + version if sys.version_info < (3, 11) else \
	sys._base_executable if whole else "bare " + version)

# Sets $python to the first candidate that serves, or says what is missing and stops.
define pick_python
python=; bare=; \
for candidate in $(if $(PYTHON),"$(PYTHON)",$(CANDIDATES)); do \
	found=$$("$$candidate" -I -c '$(PROBE)' 2>/dev/null) || continue; \
	case $$found in \
	old*) ;; \
	bare*) bare=$${found#bare } ;; \
	*) python=$$found; break ;; \
	esac; \
done; \
if test -z "$$python" && test -n "$$bare"; then \
	echo "setup: Python $$bare is here without ensurepip, which makes virtual environments." >&2; \
	echo "setup: on Debian and Ubuntu: sudo apt-get install python$$bare-venv" >&2; exit 1; \
elif test -z "$$python"; then \
	echo "setup: no working Python 3.11 or newer among: $(if $(PYTHON),$(PYTHON),$(CANDIDATES))" >&2; \
	echo "setup: install one, or name it: make setup PYTHON=/path/to/python3.13" >&2; exit 1; \
fi
endef

# pip's own words go to a file; its end is shown when pip fails.
SETUP_LOG := $(VENV)/setup.log
PIP = PIP_USER=0 $(BIN)/python -I -m pip install --no-input --progress-bar off
pip_log = >> $(SETUP_LOG) 2>&1 || { \
	tail -n 15 $(SETUP_LOG) >&2; echo "setup: pip failed; $(SETUP_LOG) has all it said" >&2; exit 1; }

rebuild:
	@$(pick_python); \
	echo "setup: making $(VENV) with $$python" >&2; \
	rm -rf $(VENV) && "$$python" -I -m venv $(VENV) >&2
	@echo "setup: installing the packages of $(LOCK), about a minute" >&2
	@$(PIP) --require-hashes -r $(LOCK) $(pip_log)
	@$(call identity,$(BIN)/python) > $(VENV)/.made

project: venv
	@now=$$(cksum < pyproject.toml); \
	test "$$now" = "$$(cat $(VENV)/.project 2>/dev/null)" && exit 0; \
	echo "setup: installing sleuth itself" >&2; \
	$(PIP) --no-deps --no-build-isolation --no-index -e . $(pip_log); \
	mkdir -p $(VENV)/typing/sleuth && \
	for room in $(ROOMS); do ln -sfn "../../../$$room" $(VENV)/typing/sleuth/ || exit 1; done; \
	echo "$$now" > $(VENV)/.project

# --- Upkeep.

# uv resolves for every platform at once; indexes that this machine's settings name stay out of it.
COMPILE = env -u UV_INDEX -u UV_INDEX_URL -u UV_EXTRA_INDEX_URL -u UV_DEFAULT_INDEX -u UV_FIND_LINKS \
	"$$tmp/bin/uv" pip compile -q --no-config --universal --python-version 3.11 --generate-hashes \
	--no-header --annotation-style line $(LOCK_FLAGS) pyproject.toml

lock:
	@$(pick_python); \
	tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT INT TERM && \
	"$$python" -I -m venv "$$tmp" && "$$tmp/bin/python" -I -m pip install -qq uv && \
	$(COMPILE) -o requirements.lock && \
	$(COMPILE) --group dev -c requirements.lock -o $(LOCK)

clean:
	@rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name .git -prune -o -name .sleuth -prune -o -name __pycache__ -prune -exec rm -rf {} +
