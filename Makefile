# The entry point for developers. CMake does the work (CMakePresets.json). `make` without a target
# lists the targets.
#
#   PREFIX        prefix of `make install` and `make install-drop-ins` (default: /usr/local)
#   JOBS          number of build processes (default: one per processor); three times as many tests
#                 run in parallel
#   FULL=1        `make bench` runs every suite in full instead of the quick set; the tests run in
#                 every variant
#   FUZZ_SECONDS  duration of `make fuzz` in seconds (default: 60)
#   SITES         `make docs` writes the site to the folder of its version in SITES, with a menu of
#                 the versions there, instead of to build/site
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FULL ?= 0
FUZZ_SECONDS ?= 60
SITES ?=
# The system's interpreter: Debian's packages of matplotlib, rich and pytest install into it.
PYTHON ?= /usr/bin/python3
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# The label `full` marks the tests that only FULL=1 runs (tests/CMakeLists.txt). --timeout applies
# to tests that set no time limit of their own. Many tests mostly wait, so three tests per processor
# finish sooner than one or two.
full = $(filter-out 0,$(FULL))
CTEST = ctest --output-on-failure --no-tests=error --parallel $$((3 * $(JOBS))) --timeout 300 \
  $(if $(full),,--label-exclude full)
TARGETS = all $(if $(full),all_tests)
PYTESTS := bench/runner/tests
COVERED := src/base src/backend src/loop src/events src/task src/threads src/sim

# Configures preset $(1) into $(2) unless that was done since CMakePresets.json changed. The build
# system detects all other changes itself.
define configure
	@test -f $(2)/build.ninja -a $(2)/configure.log -nt CMakePresets.json || { \
	  echo "configuring $(2)" && mkdir -p $(2) && \
	  cmake --preset $(1) >$(2)/configure.log 2>&1 || { \
	    cat $(2)/configure.log; rm -f $(2)/configure.log; exit 1; }; }
endef
define compile
	@cmake --build $(1) --parallel $(JOBS) $(if $(2),--target $(2))
endef

# Installs the packages of PyPI in tools/$(1)/requirements.txt, for the program $(2), into
# build/$(1)-tools.
define install_tools
	@test -x build/$(1)-tools/bin/$(2) || { $(PYTHON) -m venv build/$(1)-tools && \
	  build/$(1)-tools/bin/pip install --quiet --requirement tools/$(1)/requirements.txt; }
endef

# clang-tidy needs compile_commands.json but no compiled object.
.PHONY: configured
configured:
	@tools/bootstrap --quiet build library tests peers benchmarks
	$(call configure,release,build)

# The same build directory has the benchmarks of the peers that are installed; `make bench` builds
# them.
.PHONY: build
build: configured ## build the library, the drop-ins, the examples and the tests into build/
	$(call compile,build,$(TARGETS))

.PHONY: benchmarks
benchmarks: configured ## build the benchmarks
	$(call compile,build,benchmarks)

.PHONY: bench
bench: benchmarks ## run the benchmarks against the peers, quick set (FULL=1: all)
	@bench/run $(if $(full),full,quick)

.PHONY: test
test: build ## build and run the tests
	@$(CTEST) --test-dir build
	@$(PYTHON) -m pytest -q -n $(JOBS) -p no:cacheprovider $(PYTESTS)

# Run this before a release; it takes more than an hour.
.PHONY: test-all
test-all: ## run every test in every variant: release, debug, sanitizers; all checks
	@tools/bootstrap packages conformance report
	@$(MAKE) test asan tsan check FULL=1
	@$(MAKE) test-debug abi FULL=1
	@$(MAKE) benchmarks

.PHONY: check
check: configured ## check format, style, layers, links, headers, comments, scripts, clang-tidy
	@tools/bootstrap --quiet checks
	$(call install_tools,check,clang-tidy) || \
	  echo "checking with clang-tidy-19, which takes three times as long"
	@$(PYTHON) tools/check

# The site needs no network, but MkDocs is downloaded once.
.PHONY: docs
docs: ## build the documentation, with the reference of the headers, into build/site
	@tools/bootstrap --quiet docs
	$(call install_tools,docs,mkdocs)
	@PATH="$(CURDIR)/build/docs-tools/bin:$$PATH" $(PYTHON) -B tools/docs \
	  $(if $(SITES),--versions "$(SITES)")

.PHONY: dist
dist: ## write the source archive of the last commit, and the list of its dependencies
	@$(PYTHON) -B tools/dist

.PHONY: format
format: ## format the C++ code
	@tools/bootstrap --quiet checks
	@git ls-files -z -co --exclude-standard '*.h' '*.hpp' '*.c' '*.cpp' '*.cc' '*.ipp' \
	  | xargs -0 --no-run-if-empty clang-format-19 -i

.PHONY: debug
debug: ## build into build/debug with assertions, without optimization
	@tools/bootstrap --quiet build library tests peers benchmarks
	$(call configure,debug,build/debug)
	$(call compile,build/debug,$(TARGETS))

.PHONY: test-debug
test-debug: debug ## run the tests in the debug build
	@$(CTEST) --test-dir build/debug

.PHONY: asan
asan: ## run the tests under AddressSanitizer, LeakSanitizer, UndefinedBehaviorSanitizer
	@tools/bootstrap --quiet build library tests
	$(call configure,asan,build/asan)
	$(call compile,build/asan,$(TARGETS))
	@UBSAN_OPTIONS=print_stacktrace=1 $(CTEST) --test-dir build/asan

# The fewer translation units, the less debug information abidw(1) reads.
.PHONY: abi
abi: ## compare the ABI of the shared libraries with that of the last release
	@tools/bootstrap --quiet build library packages
	$(call configure,abi,build/abi)
	$(call compile,build/abi,tambour)
	@$(PYTHON) -B tools/abi compare build/abi

# GCC 12's ThreadSanitizer cannot map its shadow memory if the kernel randomizes addresses by more
# than 28 bits (vm.mmap_rnd_bits). Randomization is disabled where setarch(8) is permitted.
.PHONY: tsan
tsan: ## run the tests that use threads under ThreadSanitizer
	@tools/bootstrap --quiet build library tests
	$(call configure,tsan,build/tsan)
	$(call compile,build/tsan,$(TARGETS))
	@$$(setarch -R true 2>/dev/null && echo setarch -R) $(CTEST) --test-dir build/tsan

# Each process maps its counters from a file (%c). Children that end by _exit(2), by a signal or by
# a contract violation are therefore counted too.
.PHONY: coverage
coverage: FULL = 1
coverage: ## report lines and branches the tests reach; pages in build/coverage/html
	@tools/bootstrap --quiet build library tests checks
	$(call configure,coverage,build/coverage)
	$(call compile,build/coverage,all all_tests)
	@rm -rf build/coverage/profiles
	@LLVM_PROFILE_FILE='$(CURDIR)/build/coverage/profiles/%p%c.profraw' \
	  $(CTEST) --test-dir build/coverage
	@$(PYTHON) tools/coverage build/coverage $(COVERED)

# New inputs that increase coverage are added to a copy of the corpus in build/fuzz/corpus; inputs
# that fail are written to build/fuzz. The loop gets half of the time, split between the real kernel
# and the simulator. The parsers share the other half.
FUZZ := -max_len=512 -timeout=20 -print_funcs=0 -verbosity=0 -print_final_stats=1
FUZZED := $(sort $(patsubst tests/fuzz/checks/check_%.cpp,%,$(wildcard tests/fuzz/checks/*.cpp)))
.PHONY: fuzz
fuzz: ## fuzz for FUZZ_SECONDS: loop calls (all backends, simulator), untrusted input
	@tools/bootstrap --quiet build library checks
	$(call configure,fuzz,build/fuzz)
	@cmake --build build/fuzz --parallel $(JOBS) --target fuzzers
	@cd build/fuzz && export UBSAN_OPTIONS=print_stacktrace=1 && run() { \
	  mkdir -p corpus/$$1 && tests/fuzz/fuzz_$$1 corpus/$$1 $(CURDIR)/tests/fuzz/corpus/$$1 $(FUZZ) \
	    -max_total_time=$$2; } && \
	for backends in all simulated; do \
	  echo "fuzzing loop, backends: $$backends" && \
	  TAMBOUR_FUZZ_BACKENDS=$$backends run loop $$((($(FUZZ_SECONDS) + 3) / 4)) || exit 1; done && \
	for name in $(FUZZED); do \
	  echo "fuzzing $$name" && run $$name $$((($(FUZZ_SECONDS) + 9) / 10)) || exit 1; done

# The build directory has neither tests nor benchmarks: an installation needs only the packages of
# the library, and builds only what it installs.
.PHONY: install
install: ## build and install the library under PREFIX
	@tools/bootstrap --quiet build library
	$(call configure,library,build/library)
	$(call compile,build/library,tambour)
	@cmake --install build/library --component library --prefix $(abspath $(PREFIX))

# CMake looks again for the headers, which may have been missing when it configured the library.
.PHONY: install-drop-ins
install-drop-ins: ## build and install the drop-ins for libev and libevent under PREFIX
	@tools/bootstrap --quiet build library drop-ins
	$(call configure,library,build/library)
	@cmake build/library >build/library/configure.log
	$(call compile,build/library)
	@cmake --install build/library --component drop_ins --prefix $(abspath $(PREFIX))

# The packages are those of the last commit.
.PHONY: package
package: ## build Debian packages of the last commit into build/package
	@tools/bootstrap --quiet build library drop-ins packages
	@packaging/build-debian build/package >build/package.log 2>&1 || { \
	  tail -n 40 build/package.log; exit 1; }
	@ls build/package/*.deb

.PHONY: clean
clean: ## remove build/
	@rm -rf build

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)
