# Files of other servers, by https. It uses base only.
noinst_LIBRARIES += libfetch.a
libfetch_a_SOURCES = \
	common/fetch/fetch.c common/fetch/fetch.h \
	common/fetch/guard.c common/fetch/guard.h \
	common/fetch/process.c \
	common/fetch/url.c

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test_fetch \
	tests/unit/test_fetch_guard \
	tests/unit/test_fetch_rebinding \
	tests/unit/test_fetch_url
endif

EXTRA_DIST += tests/unit/fetch_server.h

FUZZ_TARGETS += tests/fuzz/fuzz_fetch_url
tests_fuzz_fuzz_fetch_url_LDFLAGS = $(FUZZ_LINK)
