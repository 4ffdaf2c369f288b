# The front door. CMake does the work (CMakePresets.json); `make` alone lists what there is to do.
#
#   PREFIX  where `make install` puts the library (/usr/local)
#   JOBS    how many processes to build with (one a processor); twice as many tests run at once
#   FULL=1  every suite of the benchmarks in full, not the quick set; every test, not a
#           representative part
#   FUZZ_SECONDS  how long `make fuzz` looks for faults (60)
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FULL ?= 0
FUZZ_SECONDS ?= 60
# Debian's own, which is where the packages put matplotlib, rich and pytest.
PYTHON ?= /usr/bin/python3
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# The time limit is for tests that set none themselves. Many tests wait more than they compute, so
# two run on each processor.
# The label `full` marks the entries that only FULL=1 runs (tests/CMakeLists.txt).
full = $(filter-out 0,$(FULL))
CTEST = ctest --output-on-failure --no-tests=error --parallel $$((2 * $(JOBS))) --timeout 120 \
  $(if $(full),,--label-exclude full)
TARGETS = all $(if $(full),all_tests)
PYTESTS := bench/runner/tests
COVERED := src/base src/op src/backend src/loop

# Configures preset $(1) into $(2) where that has not been done since the presets changed. Whatever
# else changes, the build itself sees.
define configure
	@test -f $(2)/build.ninja -a $(2)/configure.log -nt CMakePresets.json || { \
	  echo "configuring $(2)" && mkdir -p $(2) && \
	  cmake --preset $(1) >$(2)/configure.log 2>&1 || { \
	    cat $(2)/configure.log; rm -f $(2)/configure.log; exit 1; }; }
endef
define compile
	@cmake --build $(1) --parallel $(JOBS) $(if $(2),--target $(2))
endef

# Enough for the findings of clang-tidy, which needs the compile commands and nothing compiled.
.PHONY: configured
configured:
	@tools/bootstrap --quiet build library tests peers benchmarks
	$(call configure,release,build)

# The benchmarks are configured in the same build, without the peers that are not installed, and are
# built by `make bench`.
.PHONY: build
build: configured ## build the library, the drop-ins, the examples and the tests into build/
	$(call compile,build,$(TARGETS))

.PHONY: bench
bench: configured ## the benchmarks against the peers, quick set (FULL=1: everything)
	$(call compile,build,benchmarks)
	@bench/run $(if $(full),full,quick)

.PHONY: test
test: build ## build and run the tests
	@$(CTEST) --test-dir build
	@$(PYTHON) -m pytest -q -p no:cacheprovider $(PYTESTS)

# What must hold before a release; takes more than an hour.
.PHONY: test-all
test-all: ## every test in every variant, in release, debug and sanitized builds; every check
	@$(MAKE) test asan tsan check FULL=1
	@$(MAKE) test-debug FULL=1
	$(call compile,build,benchmarks)

# SINCE names a commit: clang-tidy then reads only the sources that have changed since, and those
# that include what has changed.
.PHONY: check
check: configured ## format, style, layers, headers, shell scripts, clang-tidy (SINCE=COMMIT)
	@tools/bootstrap --quiet checks
	@$(PYTHON) tools/check $(if $(SINCE),--since $(SINCE))

.PHONY: format
format: ## format the C++
	@tools/bootstrap --quiet checks
	@git ls-files -z -co --exclude-standard '*.h' '*.hpp' '*.c' '*.cpp' '*.cc' '*.ipp' \
	  | xargs -0 --no-run-if-empty clang-format-19 -i

.PHONY: debug
debug: ## build into build/debug, with assertions and without optimization
	@tools/bootstrap --quiet build library tests peers benchmarks
	$(call configure,debug,build/debug)
	$(call compile,build/debug,$(TARGETS))

.PHONY: test-debug
test-debug: debug ## the tests in the debug build
	@$(CTEST) --test-dir build/debug

.PHONY: asan
asan: ## the tests under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer
	@tools/bootstrap --quiet build library tests
	$(call configure,asan,build/asan)
	$(call compile,build/asan,$(TARGETS))
	@UBSAN_OPTIONS=print_stacktrace=1 $(CTEST) --test-dir build/asan

# GCC 12's ThreadSanitizer cannot place its shadow where the kernel randomizes addresses by more
# than 28 bits (vm.mmap_rnd_bits), so that is turned off where the machine lets us.
.PHONY: tsan
tsan: ## the tests that use threads, under ThreadSanitizer
	@tools/bootstrap --quiet build library tests
	$(call configure,tsan,build/tsan)
	$(call compile,build/tsan,$(TARGETS))
	@$$(setarch -R true 2>/dev/null && echo setarch -R) $(CTEST) --test-dir build/tsan

# The counters of each process lie in a file that it maps (%c), so that children that end by
# _exit(2), a signal or a breach of contract count too.
.PHONY: coverage
coverage: FULL = 1
coverage: ## lines and branches that the tests reach, and pages in build/coverage/html
	@tools/bootstrap --quiet build library tests checks
	$(call configure,coverage,build/coverage)
	$(call compile,build/coverage,all all_tests)
	@rm -rf build/coverage/profiles
	@LLVM_PROFILE_FILE='$(CURDIR)/build/coverage/profiles/%p%c.profraw' \
	  $(CTEST) --test-dir build/coverage
	@$(PYTHON) tools/coverage build/coverage $(COVERED)

# The inputs that a fuzzer finds worth keeping join a copy of its corpus; what it finds wrong lies
# beside that. Half of the time is for the loop, in both worlds; the others share the rest.
FUZZ := -max_len=512 -timeout=20 -print_funcs=0 -verbosity=0 -print_final_stats=1
FUZZED := buffer endpoint codec proxy
.PHONY: fuzz
fuzz: ## fuzz for FUZZ_SECONDS: calls on a loop, on all backends and simulated; bytes of strangers
	@tools/bootstrap --quiet build library checks
	$(call configure,fuzz,build/fuzz)
	@cmake --build build/fuzz --parallel $(JOBS) --target fuzzers
	@cd build/fuzz && export UBSAN_OPTIONS=print_stacktrace=1 && run() { \
	  mkdir -p corpus/$$1 && tests/fuzz/fuzz_$$1 corpus/$$1 $(CURDIR)/tests/fuzz/corpus/$$1 $(FUZZ) \
	    -max_total_time=$$2; } && \
	for world in all simulated; do \
	  echo "fuzzing loop, world: $$world" && \
	  TAMBOUR_FUZZ_WORLD=$$world run loop $$((($(FUZZ_SECONDS) + 3) / 4)) || exit 1; done && \
	for name in $(FUZZED); do \
	  echo "fuzzing $$name" && run $$name $$((($(FUZZ_SECONDS) + 7) / 8)) || exit 1; done

.PHONY: install
install: build ## install the library under PREFIX
	@cmake --install build --prefix $(abspath $(PREFIX))

.PHONY: clean
clean: ## remove build/
	@rm -rf build

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
