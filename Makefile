# Every target sets up what it needs, also in a fresh clone: .venv from the lock files, then a release build. Stamp files in .venv
# make a second run quick. System requirements are checked in tools/setup.sh.

VENV := .venv/bin
RUST := $(shell find crates bench -name '*.rs' -o -name '*.toml' -o -name '*.[ch]') Cargo.toml Cargo.lock

# One interpreter for every build of the Python extension, or cargo would build PyO3 again for each.
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python

# Every target that the help lists.
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*\#\#.*/\1/p' $(firstword $(MAKEFILE_LIST))) FORCE
.NOTPARALLEL:

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

deps: ## name the missing system packages and install them, as root on Debian; also those that single tests need
	@tools/setup.sh deps

demo: build ## reproduce MaxNet's two-hop experiment: print its table, write its figure
	$(VENV)/waterfill reproduce maxnet-2007/two-hop

build: .venv/.built ## compile everything; leaves .venv/bin/waterfill and, on Linux, waterfilld

# Next to the release build, which the program starts, it compiles the tests.
test: .venv/.dev ## run every test that this host can run, about 15 minutes on two cores; says what it skipped and why
	@$(VENV)/python tools/run_tests.py

lint: .venv/.lint ## run formatters, linters, type checkers and checks of licences; a warning is an error
	@tools/lint.sh

bench: .venv/.run $(if $(filter linux large,$(CASE)),build) ## measure the engine's speed; CASE=NAME, peers, growth, large, roofline or linux; BASE=HEAD~1 compares in pairs
	@$(if $(CASE),,$(if $(CASES),echo 'make bench CASES=… is now: make bench CASE="$(CASES)"' >&2;)) tools/bench.sh "$(or $(CASE),$(CASES))" "$(BASE)" $(if $(HTSIM),--htsim "$(HTSIM)")

docs: build ## write the pages made from the code: protocols, keys of a scenario, commands, claims
	@$(VENV)/python -m tools.docs

site: .venv/.dev build ## build the documentation site into out/site, readable without a network
	@echo "site: compiling the simulator for pages, one to two minutes the first time" >&2
	@NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --strict --quiet
	@echo "open out/site/index.html, or: $(VENV)/python -m http.server --directory out/site --bind 127.0.0.1"

new-protocol: .venv/.run ## write the first version of a protocol, with a failing equation test: make new-protocol NAME=foo [KERNEL=1]
	@$(VENV)/python tools/new_protocol.py "$(NAME)" "$(KERNEL)"

# The list needs an extension, but not a current one.
validate: .venv/.dev $(if $(STUDY)$(OPTIONS),build,$(if $(wildcard python/waterfill/_core*),,build))
validate: ## list the studies with cost and needs, or run one: make validate STUDY=faults [OPTIONS="--quick"]
	@$(VENV)/python -m validation $(if $(STUDY),$(STUDY) -o out/$(STUDY)) $(OPTIONS)

fuzz: .venv/.run $(if $(filter python,$(TARGET)),build) ## fuzz by TARGET=NAME, all, python, sanitize or page; SECONDS=60, OPTIONS=…
	@$(VENV)/python -m validation.fuzzing $(TARGET) $(if $(SECONDS),--seconds $(SECONDS)) $(OPTIONS)

# What a package is made from; deb builds all of its own.
package: $(if $(filter wheel sbom pgo,$(WHAT)),.venv/.run) $(if $(filter reproducible,$(WHAT)),.venv/.dev) $(if $(filter oci deb-test,$(WHAT)),build)
package: ## build or check a package: WHAT=wheel, deb, deb-test, oci, sbom, reproducible [OPTIONS=deb] or pgo
	@tools/package.sh "$(WHAT)" $(OPTIONS)

lock: .venv/.run ## update the lock files from pyproject.toml and Cargo.toml (UPGRADE=1: to the newest versions)
	tools/lock.sh $(if $(UPGRADE),--upgrade)
	cargo update $(if $(UPGRADE),,--workspace)

clean: ## remove .venv and everything built; results in out/ stay
	rm -rf .venv target build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis python/waterfill/_core*.so

# Names of targets up to release 0.2: each prints the new name and runs it. The release after the next drops them. Variables of
# the command line are part of the new command, so make must not pass them on a second time: TARGET would replace TARGET=python.
MAKEOVERRIDES =
define moved
.PHONY: $(1)
$(1):
	@echo 'make $(1) is now: make $(2)' >&2
	@$$(MAKE) --no-print-directory $(2)

endef
STUDY_NAMES := certificates cohabit-table=cohabit decoders equilibria faults fct fct-ns3 kernels kills link-events linux-cohabit \
	linux-connections linux-laws linux-link-events linux-maxnet linux-trace ns3 peers price-bits proofs readings response scone \
	scone-advice=linux-scone seeds soak studio-check=studio sweep-hosts sweep-kills sweep-scale testbed-table=linux-tcp thread-scaling \
	threeway=stability topologies
$(foreach one,$(STUDY_NAMES),$(eval $(call moved,$(firstword $(subst =, ,$(one))),validate STUDY=$(lastword $(subst =, ,$(one))))))
$(foreach one,wheel deb deb-test oci sbom pgo,$(eval $(call moved,$(one),package WHAT=$(one))))
$(foreach one,growth roofline,$(eval $(call moved,$(one),bench CASE=$(one))))
$(eval $(call moved,bench-compare,bench BASE=$(BASE) CASE=$(CASES)))
$(eval $(call moved,bench-peers,bench CASE=peers))
$(eval $(call moved,bench-linux,bench CASE=linux))
$(eval $(call moved,reproducible,package WHAT=reproducible OPTIONS=$(WHAT)))
$(eval $(call moved,audit,lint))
$(eval $(call moved,threads,test))
$(eval $(call moved,coverage,validate STUDY=coverage$(if $(LINES), OPTIONS=--lines)))
$(eval $(call moved,linux-faults,validate STUDY=linux-faults$(if $(PROTOCOLS), OPTIONS="$(PROTOCOLS)")))
$(eval $(call moved,abc,validate STUDY=abc$(if $(TRACES), OPTIONS="--traces $(TRACES)")))
$(eval $(call moved,mutants,validate STUDY=mutants OPTIONS="$(LAW)$(if $(SHARD), --shard $(SHARD))"))
$(eval $(call moved,certificate-mutants,validate STUDY=certificate-mutants OPTIONS="--laws $(or $(LAW),maxnet) --count $(or $(COUNT),200)$(if $(SEED), --seed $(SEED))$(if $(STEPS), $(STEPS))"))
$(eval $(call moved,certificate-mutants-rust,validate STUDY=certificate-mutants-rust OPTIONS="$(LAW) --count $(or $(COUNT),40)$(if $(SEED), --seed $(SEED))"))
$(eval $(call moved,fuzz-all,fuzz TARGET=all$(if $(SHARE), OPTIONS="--share $(SHARE)")))
$(eval $(call moved,fuzz-page,fuzz TARGET=page))
$(eval $(call moved,fuzz-python,fuzz TARGET=python OPTIONS="$(TARGET)$(if $(PLAIN), --plain)"))
$(eval $(call moved,sanitize,fuzz TARGET=sanitize))

.venv/.run: requirements.lock tools/setup.sh
	@tools/setup.sh run

.venv/.dev: requirements-dev.lock tools/setup.sh tools/daemon.sh .venv/.run
	@tools/setup.sh dev

.venv/.lint: .venv/.dev
	@tools/setup.sh lint

.venv/.built: .venv/.run .venv/.daemon pyproject.toml tools/build.sh $(RUST)
	@tools/build.sh
	@touch $@

# What the daemon's build lacks here, checked each time; the file changes, and so causes a build, only if that has changed.
.venv/.daemon: .venv/.run FORCE
	@tools/daemon.sh >$@.new; cmp --silent $@.new $@ && rm $@.new || mv $@.new $@
