# A thin front of the Meson build. `make help` lists what it can do.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
FILTER  ?=

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -c

# -j4 of make is ninja's, too: it cannot reach the job server, which make keeps to itself.
jobs    = $(filter-out -j,$(filter -j%,$(MAKEFLAGS)))
# On a terminal the build shows where it stands, in one line; elsewhere only what fails.
idle    = ninja -C $(BUILD) $(jobs) -n $(1) | grep -q 'no work to do'
ninja   = if [ -t 1 ] && ! $(idle); then ninja -C $(BUILD) $(jobs) $(1); \
          else ninja -C $(BUILD) $(jobs) --quiet $(1) | { grep -v 'no work to do' || true; }; fi
quietly = { log=$$($(1) 2>&1) || { echo "$$log"; exit 1; }; }

.DEFAULT_GOAL := all
.PHONY: all configure configure-native configure-install demo test test-slurm test-ssh test-mpi test-collectives test-strategies test-store test-servers test-random test-kills test-member-kills test-gpu test-gpu-sanitizer unit bench bench-overlap bench-peers peers-check deps deps-dev install uninstall \
        dist deb reference format check asan ubsan tsan fuzz clean help

all: configure ## release build in build/
	@$(call ninja)

# Sets up the build, or brings it up to date with the meson.build files; silent unless it fails.
configure:
	@[ -f $(BUILD)/build.ninja ] || tools/deps.sh --quiet build
	@[ -f $(BUILD)/build.ninja ] || $(call quietly, meson setup $(BUILD))
	@[ ! -f $(BUILD)/native ] || $(call quietly, meson configure $(BUILD) -Dinstruction_sets=all -Djoined=auto && rm $(BUILD)/native)
	@$(call quietly, ninja -C $(BUILD) $(jobs) build.ninja)

# The demo of a fresh checkout has kernels for this machine's CPU only, and compiles sources many at a
# time. Installing adds the other kernels and keeps what is compiled; every other target compiles
# sources one by one.
configure-native:
	@[ -f $(BUILD)/build.ninja ] || $(call quietly, meson setup $(BUILD) -Dinstruction_sets=native && touch $(BUILD)/native)
	@$(call quietly, ninja -C $(BUILD) $(jobs) build.ninja)

configure-install:
	@[ -f $(BUILD)/build.ninja ] || $(MAKE) --no-print-directory configure
	@[ ! -f $(BUILD)/native ] || $(call quietly, meson configure $(BUILD) -Dinstruction_sets=all -Djoined=enabled)
	@$(call quietly, ninja -C $(BUILD) $(jobs) build.ninja)

demo: ## installs what is missing, builds, and trains a network on digits drawn here
	@tools/deps.sh --quiet test
	@$(MAKE) --no-print-directory configure-native
	@$(call ninja, tutti) || $(MAKE) --no-print-directory all # file by file, should joined ones not compile here
	@$(BUILD)/tutti train mnist --epochs 2 --set expect=0.98 --save $(BUILD)/demo/mnist \
	    --logs $(BUILD)/demo/logs --set checkpoints=$(BUILD)/demo/ckpt/{epoch}
	@echo
	@echo "It is saved: $(BUILD)/tutti eval $(BUILD)/demo/mnist"
	@echo "Its curves:  tensorboard --logdir $(BUILD)/demo/logs"
	@echo "More to do:  $(BUILD)/tutti train --help; the programs are in examples/, the manual is docs/guide.md"

test: ## everything that must hold; the last line is "N passed, N failed, N skipped"
	@tools/deps.sh --quiet test
	@$(MAKE) --no-print-directory all || { echo "the build failed"; echo "0 passed, 1 failed"; exit 1; }
	@tools/run_tests.sh $(BUILD)

test-collectives: configure ## every collective algorithm on 64 MiB over every engine
	@$(call ninja, tutti_tests)
	@TUTTI_TEST_LARGE=1 $(BUILD)/tutti_tests --timeout 3600 comm_messages_of_64_mib

test-strategies: all ## every example under every strategy, engine and kind of device, 50 steps; ARGS="--jobs 4 '^mnist_'"
	@tools/deps.sh --quiet mpi
	@tests/strategies/run.sh $(BUILD) --long $(ARGS)

test-store: configure ## the protocol of parameter servers under 100,000 seeds of a simulator; SEED=17 replays one
	@$(call ninja, tutti_tests)
	@TUTTI_TEST_SEEDS=100000 $(if $(SEED),TUTTI_TEST_SEED=$(SEED)) $(BUILD)/tutti_tests --timeout 3600 store_sim

test-servers: configure ## processes of parameter servers are killed at random: 100 servers with replicas, 200 workers; KILLS=10
	@$(call ninja, tutti_tests)
	@TUTTI_TEST_KILLS=$(or $(KILLS),100) $(BUILD)/tutti_tests --timeout 3600 parameter_server_random

test-random: configure ## random graphs in every way of running against reference kernels; ARGS='--from 5000 --seeds 1000'
	@$(call ninja, tests/random/random_graphs)
	@$(BUILD)/tests/random/random_graphs --seeds 300 $(ARGS)

test-kills: configure ## a process of small jobs is killed at every boundary between instructions and messages, and at random times
	@$(call ninja, tutti_tests)
	@TUTTI_TEST_KILLS=all $(BUILD)/tutti_tests --timeout 3600 survivors_hold

test-slurm: all ## the resolver for Slurm under the real Slurm: installs and starts it (Debian, root)
	@$(call ninja, tests/cluster/cluster_member tests/cluster/cluster_open)
	@tests/cluster/slurm.sh $(BUILD)

test-member-kills: all ## 100 random kills of a job with parameter servers; KILLS=500
	@$(call ninja, tests/cluster/cluster_open tests/cluster/cluster_member)
	@KILLS=$(or $(KILLS),100) VERBOSE=1 tests/cluster/open.sh $(BUILD) random_kills

test-ssh: all ## the launcher over real ssh: installs openssh, starts daemons of its own on ports of their own
	@$(call ninja, tests/cluster/cluster_member tests/cluster/cluster_rank)
	@tools/deps.sh --quiet ssh
	@tests/cluster/run.sh $(BUILD) ssh

test-gpu: all ## what must hold on an NVIDIA GPU: kernels, operators, random graphs, examples and strategies beside the CPU; ARGS='unit examples'
	@$(call ninja, tutti_tests tests/random/random_graphs src/device/cuda/lab/cuda_lab src/device/cuda/lab/cuda_operators)
	@tests/gpu/run.sh $(BUILD) $(ARGS)

test-gpu-sanitizer: all ## kernels and short trainings under NVIDIA's compute-sanitizer; ARGS='memcheck racecheck initcheck'
	@$(call ninja, src/device/cuda/lab/cuda_lab src/device/cuda/lab/cuda_operators)
	@tests/gpu/sanitizer.sh $(BUILD) $(ARGS)

test-mpi: ## the engine mpi under the real OpenMPI and MPICH: installs both, builds their modules
	@tools/deps.sh --quiet mpi
	@[ ! -f $(BUILD)/build.ninja ] || [ -f $(BUILD)/src/comm/mpi/tutti_mpi_mpich.so ] || $(call quietly, meson setup --reconfigure $(BUILD))
	@$(MAKE) --no-print-directory all
	@$(call ninja, tutti_tests)
	@$(BUILD)/tutti_tests comm_mpi

test-cross: ## unit tests of numbers on the other kind of CPU, under qemu: installs compilers and libraries for it (Debian, root)
	@tools/cross/test.sh build-cross $(FILTER)

unit: configure ## unit tests only; FILTER=text takes those whose file or name contains it
	@$(call ninja, tutti_tests)
	@$(BUILD)/tutti_tests $(FILTER)

bench: all ## benchmarks with the limits they promise; ARGS=--json, ARGS='--rounds 5'
	@bench/run.sh $(BUILD) $(ARGS)

bench-overlap: all ## how much of the wire time is hidden behind the backward pass (root; two namespaces, tbf)
	@bench/overlap.sh $(BUILD) $(ARGS)

bench-peers: all ## the same work by PyTorch, TensorFlow and KANN, one table; PEERS_PYTHON=... KANN_DIR=... ARGS=step
	@bench/peers/run.sh $(BUILD) $(ARGS)

peers-check: all ## our files, losses and ONNX models beside those of NumPy, TensorFlow, PyTorch and onnxruntime
	@tests/peers/run.sh $(BUILD)
	@tests/peers/onnx.sh $(BUILD)
	@tests/peers/onnx_backend.sh $(BUILD)
	@$${PEERS_PYTHON:-$(BUILD)/peers/bin/python} tests/peers/onnx_models.py $(BUILD)/tutti
	@$${PEERS_PYTHON:-$(BUILD)/peers/bin/python} tests/peers/graphdef_models.py $(BUILD)/tutti

deps: ## installs what building, testing and running need
	@tools/deps.sh test

deps-dev: ## installs the tools of `make check`, `make format` and `make fuzz` as well
	@tools/deps.sh develop

install: configure-install ## installs under PREFIX (/usr/local), below DESTDIR if given
	@targets=$$(tools/installed.py $(BUILD)) && { $(call ninja,$$targets) || $(MAKE) --no-print-directory all; }
	@meson configure $(BUILD) -Dprefix="$$(realpath -ms -- '$(PREFIX)')"
	@$(call quietly, ninja -C $(BUILD) $(jobs) build.ninja)
	@DESTDIR='$(DESTDIR)' meson install -C $(BUILD) --quiet --no-rebuild
	@cp $(BUILD)/meson-logs/install-log.txt $(BUILD)/installed.txt

uninstall: ## removes what the last `make install` of this build installed
	@tools/uninstall.sh $(BUILD)/installed.txt

dist: ## release tarball in build/: builds without git, the same sources give the same bytes
	@tools/dist.sh $(BUILD)

deb: ## Debian packages in build/deb/: library, development files, documentation, command; judged by lintian
	@tools/deb.sh $(BUILD)/deb

reference: configure ## reference of the C API, from the headers: build/packaging/reference/index.html
	@$(call ninja, packaging/reference)
	@python3 tools/reference.py include/tutti --check

format: ## formats the sources
	@tools/check.sh format-fix

check: ## layers, clang-format, cppcheck, a build with clang, clang-tidy
	@tools/check.sh all

asan: SANITIZER = address
ubsan: SANITIZER = undefined
tsan: SANITIZER = thread
asan ubsan tsan: ## unit tests under a sanitizer, in build-asan/ and so on
	@tools/sanitize.sh $(SANITIZER) build-$@ $(FILTER)

fuzz: ## every fuzz target for FUZZ_SECONDS (60)
	@tools/fuzz.sh build-fuzz

clean: ## removes everything that was built
	@rm -rf $(BUILD) build-asan build-ubsan build-tsan build-fuzz build-clang build-cross

help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	    awk -F'|' '{ printf "  make %-18s %s\n", $$1, $$2 }'
