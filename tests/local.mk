# How tests are wired. Each layer lists its own in its local.mk:
#
#   tests_unit_base_unit_SOURCES = …                 tests/unit/base/unit, the tests of a folder; main.c tells its arguments
#   FUZZ_TARGETS += tests/fuzz/fuzz_json             made from tests/fuzz/fuzz_json.c, seeds in
#   tests_fuzz_fuzz_json_LDFLAGS = $(FUZZ_LINK)      tests/fuzz/corpus/json/
#
# "make check" runs all of them. tests/fuzz/replay replays the seeds of all targets, and small changes of them.
# Real fuzzing, with a program for each target:
# ./configure CC=clang --enable-fuzzers --enable-sanitizer=address,undefined && make fuzz-smoke
TEST_LIBS = libunit.a $(CMOCKA_LIBS)
check_LIBRARIES += libunit.a
libunit_a_SOURCES = tests/unit/main.c tests/unit/group.h
libunit_a_CPPFLAGS = $(AM_CPPFLAGS) -DSRCDIR='"$(abs_srcdir)"' -DBUILDDIR='"$(abs_builddir)"'

FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
if ENABLE_FUZZERS
AM_CPPFLAGS += -DWITH_FUZZER
AM_CFLAGS += -fsanitize=fuzzer-no-link
EXTRA_PROGRAMS += $(FUZZ_TARGETS)
else
TEST_TARGETS += tests/fuzz/replay
endif
tests_fuzz_replay_SOURCES = tests/fuzz/replay.c tests/fuzz/replay.h $(FUZZ_TARGETS:=.c) $(TOOLS_FAKES) $(MCP_FAKES)
tests_fuzz_replay_LDADD = libfront.a $(LDADD)

FUZZ_SECONDS = 30

# Each target for a while, starting from its seeds; finds stay in fuzz-work/<name>/.
fuzz-smoke: $(FUZZ_TARGETS)
	@set -e; for target in $(FUZZ_TARGETS); do \
		name=$${target##*fuzz_}; \
		mkdir -p fuzz-work/$$name; \
		echo "fuzz $$name, $(FUZZ_SECONDS) s"; \
		./$$target -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
			-artifact_prefix=fuzz-work/$$name/ -verbosity=0 -print_final_stats=1 \
			fuzz-work/$$name $(srcdir)/tests/fuzz/corpus/$$name; \
	done

dist_check_SCRIPTS += \
	tests/lint/addresses.py \
	tests/lint/banned.sh \
	tests/lint/docs.sh \
	tests/lint/format.sh \
	tests/lint/headers.sh \
	tests/lint/hostile.sh \
	tests/lint/layers.sh \
	tests/lint/manuals.sh \
	tests/lint/remedies.sh \
	tests/lint/settings.sh \
	tests/lint/shell.sh \
	tests/lint/sizes.sh \
	tests/lint/structure.py \
	tests/lint/types.sh \
	tests/lint/version.sh \
	tests/lint/ways.py \
	tests/lib/test_stages.py \
	tests/release/test_release.py \
	tests/mutate/test_faults.py

EXTRA_DIST += tests/run.sh tests/bench tests/debian.sh tests/lib tests/browser tests/machine tests/e2e tests/store tests/profiles tests/conformance tests/runners/compare tests/chaos tests/cluster tests/settings tests/hostile.md tests/ways.md .ci/run
EXTRA_DIST += tests/mutate.sh tests/mutate/candidates.py tests/mutate/faults.py tests/mutate/reach.py tests/mutate/reached.c \
	tests/mutate/run.py tests/mutate/scratch.py
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/fuzz.h tests/lint/common.sh tests/unit/escapes.h tests/unit/unit.h

# clang-format 14, the version that tests/lint/format.sh checks with.
format:
	cd $(srcdir) && find common fcgi runners tests -name '*.[ch]' -exec clang-format-14 -i {} +

# All that "make check" runs, without running it.
check-programs: $(check_LIBRARIES) $(check_PROGRAMS)

lint: $(dist_check_SCRIPTS)
	@set -e; for script in $(dist_check_SCRIPTS); do \
		case $$script in tests/lint/*) echo "$$script"; srcdir=$(abs_srcdir) $(srcdir)/$$script || \
			test $$? = 77;; esac; done

.PHONY: check-programs format lint fuzz-smoke

include tests/conformance/local.mk

# sandcgi as a program of another version of the messages: its ops.c takes the place of libprotocol.a's.
EXTRA_PROGRAMS += tests/e2e/sandcgi-other-version
tests_e2e_sandcgi_other_version_SOURCES = fcgi/main.c common/protocol/ops.c
tests_e2e_sandcgi_other_version_CPPFLAGS = $(sandcgi_CPPFLAGS) -DWIRE_VERSION=1000
tests_e2e_sandcgi_other_version_LDADD = $(sandcgi_LDADD)
CLEANFILES += tests/e2e/sandcgi-other-version

# Folders go into the tarball whole; what a build or python left in them stays out.
dist-hook: dist-page
	rm -f $(distdir)/service/release/version && $(srcdir)/service/release/version.sh >$(distdir)/service/release/version
	find $(distdir)/tests \( -name __pycache__ -o -name .deps -o -name "*.o" \) -prune -exec rm -rf {} +
