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
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

demo: build ## reproduce MaxNet's two-hop experiment: print its table, write its figure
	$(VENV)/waterfill reproduce maxnet-2007/two-hop

build: .venv/.built ## compile everything; leaves .venv/bin/waterfill and, on Linux, waterfilld

test: .venv/.dev build ## run every test that this host can run; says what it skipped and why
	@$(VENV)/python tools/run_tests.py

bench: .venv/.run ## measure the engine's speed against a calibration loop and the history; fails if 10 % slower; 3 minutes
	@$(VENV)/python bench/measure.py $(CASES)

bench-compare: .venv/.run ## compare the engine's speed with another commit's, in pairs: make bench-compare BASE=HEAD~1; 5 minutes
	@$(VENV)/python bench/compare.py "$(BASE)" $(CASES)

bench-peers: .venv/.run ## run ns-3, ns-2 and htsim (HTSIM=driver) beside the engine, on equal work; 10 minutes
	@$(VENV)/python bench/peers/table.py $(if $(HTSIM),--htsim "$(HTSIM)")

growth: .venv/.run ## measure the packet engine's cost and memory against flows (10 to 1,000,000) and links (1 to 10,000); 5 minutes
	@cargo run --release --locked --quiet --package waterfill-bench --example growth

roofline: .venv/.run ## measure the floor of a packet's cost: a loop that touches the same memory and computes nothing
	@cargo run --release --locked --quiet --package waterfill-bench --example roofline

pgo: .venv/.run ## build the Python wheel with a profile of the packet engine, apart from the ordinary build; 5 minutes
	@tools/pgo.sh

bench-linux: build ## measure the testbed's delay line, with each way of receiving frames; as root
	@$(VENV)/python -m validation linux-delay-line -o out/linux-delay-line

testbed-table: build ## compare the kernel's TCPs with the simulator's; as root, 90 minutes
	@$(VENV)/python -m validation linux-tcp -o out/linux-tcp

linux-maxnet: build ## compare MaxNet in the kernel with its requirements, the simulator and the fluid model; as root, 45 minutes
	@$(VENV)/python -m validation linux-maxnet -o out/linux-maxnet

linux-laws: build ## compare every explicit law in the kernel with the simulator and the fluid model; as root, 15 minutes
	@$(VENV)/python -m validation linux-laws -o out/linux-laws

linux-cohabit: build ## run explicit flows beside CUBIC and BBR on the kernel, protected and not; as root, 20 minutes, resumes
	@$(VENV)/python -m validation linux-cohabit -o out/linux-cohabit

linux-connections: build ## open 10,000 short MaxNet connections and check that each asks for prices; as root, 10 minutes at most
	@$(VENV)/python -m validation linux-connections -o out/linux-connections

kills: build ## end commands by signals at random moments, 600 in all, and check what they leave; 10 minutes
	@$(VENV)/python -m validation kills -o out/kills

certificates: build ## check every law's steps against the papers' equations; 5 minutes; in the kernel: make validate STUDY=kernel-certificates
	@$(VENV)/python -m validation certificates $(OPTIONS)

certificate-mutants: build ## change a law's C and see that certificates reject it; LAW= (maxnet) COUNT= (200) SEED= (1); minutes, resumes
	@$(VENV)/python -m validation certificate-mutants --laws $(or $(LAW),maxnet) --count $(or $(COUNT),200) --seed $(or $(SEED),1) $(STEPS)

certificate-mutants-rust: build ## the same with the laws in Rust, LAW= or all; COUNT= (40 of each) SEED= (1); needs cargo-mutants; 5 to 10 s a mutant, resumes
	@$(VENV)/python -m validation certificate-mutants-rust $(LAW) --count $(or $(COUNT),40) --seed $(or $(SEED),1)

soak: build ## run the daemon for an hour under traffic, reloads and kills, and look for leaks; as root; writes out/soak.json
	@$(VENV)/python -m validation soak -o out/soak

scone: ## give a million packets to the SCONE element by test-run, and measure what it costs other UDP; as root
	SCONE_PACKETS=1000000 cargo test --locked --quiet --package waterfill-linux --features daemon --test scone -- --nocapture --include-ignored \
		every_kind_of_packet other_udp

decoders: ## give a million frames for each law to its decoders in Rust, in C and in the kernel; as root; 5 minutes
	DECODER_FRAMES=4000000 cargo test --locked --package waterfill-linux --features daemon --test decoders

scone-advice: build ## compare a router's SCONE advice with the max-min shares of 1 to 8 MaxNet flows; as root; 4 minutes
	@$(VENV)/python -m validation linux-scone -o out/linux-scone

studio-check: .venv/.dev build ## walk the studio's tours by keyboard and measure how soon its sliders answer; 5 minutes
	@STUDIO_CHECK=1 $(VENV)/python -m pytest -q tests/python/studio/test_browser.py

validate: .venv/.dev build ## list the studies with cost and needs, or run one: make validate STUDY=faults [OPTIONS="--quick"]
	@$(VENV)/python -m validation $(if $(STUDY),$(STUDY) -o out/$(STUDY)) $(OPTIONS)

response: build ## compare Reno's and CUBIC's windows under loss with theory, 140 cases
	@$(VENV)/waterfill response

cohabit-table: build ## run explicit protocols beside TCPs, protected and not, 624 cases; 1 to 2 hours, resumes
	@$(VENV)/python -m validation cohabit -o out/cohabit

link-events: build ## run every law on a link whose rate steps and that fails, in packets and as a fluid: table, figure; half a minute
	@$(VENV)/python -m validation link-events -o out/link-events

linux-link-events: build ## the same on the kernel, for the same table and figure; as root, 35 minutes, resumes
	@$(VENV)/python -m validation linux-link-events -o out/linux-link-events

faults: build ## run every protocol under 18 faults of links, routers and hosts: tables, figure; ten minutes, resumes
	@$(VENV)/python -m validation faults -o out/faults

linux-faults: build ## run the faults that the kernel can run, with ten protocols, beside the simulator; as root, 35 minutes, resumes
	@$(VENV)/python -m validation linux-faults -o out/linux-faults $(PROTOCOLS)

topologies: build ## compare every explicit law with max-min on 229 real networks, in the fluid model; hours, resumes
	@$(VENV)/python -m validation topologies -o out/topologies

linux-trace: build ## run a link that follows a trace on the simulator and the kernel, and compare the rates; as root, 5 minutes
	@$(VENV)/python -m validation linux-trace -o out/linux-trace

seeds: build ## run every experiment of the papers with seeds 1 to 5, to see which verdicts depend on chance; 75 minutes, resumes
	@$(VENV)/python -m validation seeds -o out/seeds

readings: build ## judge the papers' claims under every reading of what the papers leave open; resumes
	@$(VENV)/python -m validation readings -o out/readings

proofs: .venv/.dev ## prove codecs, fixed-point C, MaxNet's source and its equilibrium by z3 (needs clang); 10 minutes, resumes
	@$(VENV)/python -m validation proofs -o out/proofs

price-bits: build ## what 5, 7 and 20 bits of a law's signal cost in load, queue and shares; 2 minutes, resumes
	@$(VENV)/python -m validation price-bits -o out/price-bits

fct: build ## flow completion times of web-search load in two fabrics, every law, three seeds; 30 minutes of a core, resumes
	@$(VENV)/python -m validation fct -o out/fct

fct-ns3: build ## the same list of flows in ns-3 (Debian's libns3-dev) and in the simulator, side by side; 15 minutes, resumes
	@$(VENV)/python -m validation fct-ns3 -o out/fct-ns3

peers: build ## compare RCP, VCP and XCP with what their authors' ns-2 code gives on two links; 2 minutes, resumes
	@$(VENV)/python -m validation peers -o out/peers

thread-scaling: build ## measure runs on 1 to 64 threads, and what they would take with a CPU for each thread; 5 minutes
	@$(VENV)/python -m validation thread-scaling -o out/thread-scaling

equilibria: build ## compare XCP's fixed point and max-min shares with the packet simulator, 150 random networks
	@$(VENV)/python -m validation equilibria -o out/equilibria

threeway: build ## compare linear stability analysis with fluid runs, 200 random networks
	@$(VENV)/python -m validation stability -o out/stability

sweep-scale: build ## time sweeps with two workers against one, in pairs, and the overhead of 10,000 points; 15 minutes, on an idle host
	@$(VENV)/python -m validation sweep-scale -o out/sweep-scale

sweep-kills: build ## kill workers, scheduler and front end of a sweep 20 times, and check that each point is there once; 2 minutes
	@$(VENV)/python -m validation sweep-kills -o out/sweep-kills

sweep-hosts: build ## run sweeps over two network namespaces, and by SLURM where it is installed; as root, 2 minutes
	@$(VENV)/python -m validation sweep-hosts
	@$(VENV)/python -m validation sweep-slurm

abc: build ## compare ABC with CUBIC, CoDel and the explicit laws on links that vary (TRACES=DIR: on mahimahi's traces)
	@$(VENV)/python -m validation abc -o out/abc $(if $(TRACES),--traces "$(TRACES)")

ns3: build ## compare TCPs with ns-3's (Debian's libns3-dev), both to agree within 10 %
	@$(VENV)/python bench/ns3/compare.py

fuzz: .venv/.run ## fuzz one target by libFuzzer: make fuzz TARGET=wire SECONDS=60; targets are in fuzz/src/lib.rs
	@$(VENV)/python -m validation.fuzzing one "$(TARGET)" --seconds $(or $(SECONDS),60)

fuzz-all: .venv/.run ## fuzz every target for its share of executions, and keep coverage in out/fuzz; hours, resumes
	@$(VENV)/python -m validation.fuzzing all --share $(or $(SHARE),1)

sanitize: ## run unsafe code and the laws' C under the address and undefined-behaviour sanitizers; 10 minutes
	@tools/sanitize.sh

fuzz-page: .venv/.run ## write the table of docs/validation/fuzzing.md from out/fuzz
	@$(VENV)/python -m validation.fuzzing page

mutants: .venv/.run ## which mutants of a law its tests catch: make mutants LAW=xcp [SHARD=0/10]; needs cargo-mutants; 2 to 15 minutes a law, resumes
	@$(VENV)/python -m validation.mutants $(LAW) $(if $(SHARD),--shard "$(SHARD)")

coverage: .venv/.run ## measure which lines of laws and engines the tests run, at least 95 %; needs llvm-profdata; 15 minutes
	@$(VENV)/python -m validation.coverage $(if $(LINES),--lines)

fuzz-python: .venv/.run build ## fuzz what Python reads: make fuzz-python TARGET=scenario SECONDS=60 (PLAIN=1: without atheris); no TARGET: all
	@$(VENV)/python -m validation.fuzz_python $(TARGET) --seconds $(or $(SECONDS),60) $(if $(PLAIN),--plain)

lint: .venv/.lint ## run formatters, linters and type checkers; a warning is an error
	@tools/lint.sh

audit: .venv/.dev ## check licences of crates (cargo-deny) and Python packages, and crates' sources; offline once all is downloaded
	@$(VENV)/python tools/licences.py
	@cargo deny --version >/dev/null 2>&1 || { echo "audit: needs cargo-deny: cargo install --locked cargo-deny" >&2; exit 1; }
	@cargo deny --locked check bans licenses sources

sbom: .venv/.run ## list all crates and Python packages as CycloneDX in out/sbom (needs cargo-cyclonedx); same commit, same bytes
	@tools/sbom.sh

reproducible: .venv/.dev ## build deb and wheel twice in other folders and compare bytes (WHAT=deb or WHAT=wheel); 20 minutes
	@tools/reproducible.sh $(WHAT)

wheel: .venv/.run ## build the source archive and a wheel for Linux (manylinux_2_28, abi3) into dist/, and audit it; 5 minutes
	@tools/wheel.sh

deb: ## build the Debian package of waterfilld into out/, from the lock files; the same commit gives the same bytes
	@packaging/debian/build.sh

# 0.0.1 stands for an older release, to upgrade from.
deb-test: build deb ## install, upgrade, run under systemd and remove the package in fresh Debian roots; as root, 5 minutes
	@packaging/debian/build.sh 0.0.1
	@$(VENV)/python -m validation.package out/waterfilld_0.0.1_amd64.deb \
	  out/waterfilld_$$(sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml | head -n1)_amd64.deb

oci: build deb ## pack OCI images of the command line and of waterfilld into out/oci, from the lock files; as root
	@packaging/oci/build.sh

kernels: build ## run waterfilld on Debian's kernels under QEMU and on the running one; as root, 5 minutes; writes a page
	@$(VENV)/python -m validation kernels -o out/kernels

new-protocol: .venv/.run ## write the first version of a protocol, with a failing equation test: make new-protocol NAME=foo
	@$(VENV)/python tools/new_protocol.py "$(NAME)"

docs: build ## write the pages made from the code: protocols, keys of a scenario, commands, claims
	@$(VENV)/python -m tools.docs

site: .venv/.dev ## build the documentation site into out/site, readable without a network
	@NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --strict --quiet
	@echo "open out/site/index.html, or: $(VENV)/python -m http.server --directory out/site --bind 127.0.0.1"

lock: .venv/.run ## update the lock files from pyproject.toml and Cargo.toml (UPGRADE=1: to the newest versions)
	tools/lock.sh $(if $(UPGRADE),--upgrade)
	cargo update $(if $(UPGRADE),,--workspace)

clean: ## remove .venv and everything built; results in out/ stay
	rm -rf .venv target build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis python/waterfill/_core*.so

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
