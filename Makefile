# Every target sets up what it needs, in a fresh clone too: .venv from the lock files, then a release build. Stamps in .venv keep
# a second run quick. What is asked of the machine is in tools/setup.sh.

VENV := .venv/bin
RUST := $(shell find crates bench -name '*.rs' -o -name '*.toml' -o -name '*.[ch]') Cargo.toml Cargo.lock tools/daemon.sh

# One interpreter for every build of the bindings, or cargo would build PyO3 anew for each.
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python

.PHONY: help demo build test bench bench-linux testbed-table linux-maxnet response equilibria threeway cohabit-table seeds ns3 lint docs lock clean
.NOTPARALLEL:

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

demo: build ## reproduce MaxNet's two-hop experiment: its table, its figure
	$(VENV)/waterfill reproduce maxnet-2007/two-hop

build: .venv/.built ## leave a working .venv/bin/waterfill

test: .venv/.dev build ## every test that this machine can run; says what it skipped and why
	@$(VENV)/python tools/run_tests.py

bench: .venv/.run ## the engine's speed and memory, as JSON
	@cargo run --release --locked --quiet --package waterfill-bench

bench-linux: build ## the testbed's delay line, by each way that frames can reach it; as root
	@$(VENV)/python -m waterfill.testbed.bench

testbed-table: build ## the kernel's TCPs against the simulator's, cell by cell; as root, an hour and a half
	@$(VENV)/python -m waterfill.testbed.table

linux-maxnet: build ## MaxNet in the kernel against what is asked of it, simulator and fluid beside; as root, three quarters of an hour
	@$(VENV)/python -m waterfill.testbed.maxnet

response: build ## Reno's and CUBIC's windows under loss against theory, 140 cells
	@$(VENV)/waterfill response

cohabit-table: build ## explicit protocols beside TCPs, protected or not, 624 cells; an hour or two, goes on where it was
	@$(VENV)/python -m waterfill.cohabit -o out/cohabit

seeds: build ## every experiment of the papers with seeds 1 to 5: which verdicts hang on chance; an hour and a quarter, goes on where it was
	@$(VENV)/python -m waterfill.seeds -o out/seeds

equilibria: build ## XCP's fixed point and max-min against the packet simulator, 150 random networks
	@$(VENV)/python -m waterfill.theory.check

threeway: build ## linear verdicts of stability beside fluid runs, on 200 random networks
	@$(VENV)/python -m waterfill.theory.threeway --draws 200 --seed 1

ns3: build ## TCPs side by side with ns-3's (Debian's libns3-dev): both sides, within 10 %
	@$(VENV)/python bench/ns3/compare.py

lint: .venv/.lint ## formatters, linters and types; a warning is an error
	@tools/lint.sh

docs: build ## make docs/reference/protocols from the module docs of the protocols' files
	@$(VENV)/python tools/docs.py

lock: ## bring the lock files in step with pyproject.toml and Cargo.toml (UPGRADE=1: newest versions)
	tools/lock.sh $(if $(UPGRADE),--upgrade)
	cargo update $(if $(UPGRADE),,--workspace)

clean: ## remove .venv and everything built; results in out/ stay
	rm -rf .venv target build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis python/waterfill/_core*.so

.venv/.run: requirements.lock tools/setup.sh
	@tools/setup.sh run

.venv/.dev: requirements-dev.lock tools/setup.sh .venv/.run
	@tools/setup.sh dev

.venv/.lint: .venv/.dev
	@tools/setup.sh lint

# PIP_NO_INDEX: what pyproject.toml asks for is in the lock file and so in .venv already, or this fails and says so.
.venv/.built: .venv/.run pyproject.toml $(RUST)
	@echo "build: compiling in release mode, about half a minute" >&2
	@env -u CONDA_PREFIX VIRTUAL_ENV=$(CURDIR)/.venv PIP_NO_INDEX=1 PIP_QUIET=1 CARGO_TERM_QUIET=true \
	  $(VENV)/maturin develop --release --quiet >&2
	@if [ "$$(uname)" = Linux ]; then \
	  programs=waterfill-delay features=; \
	  if why=$$(tools/daemon.sh); then programs="$$programs waterfilld" features="--features daemon"; \
	  else echo "build: $$why: left out" >&2; rm -f $(VENV)/waterfilld; fi; \
	  cargo build --release --locked --quiet --package waterfill-linux $$features --bins >&2 && \
	  for one in $$programs; do install "$${CARGO_TARGET_DIR:-target}/release/$$one" $(VENV)/ || exit 1; done; fi
	@touch $@
