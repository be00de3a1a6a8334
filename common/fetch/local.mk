# Files of other servers, by https. It uses base only.
noinst_LIBRARIES += libfetch.a
libfetch_a_SOURCES = \
	common/fetch/easy.c common/fetch/easy.h \
	common/fetch/fetch.c common/fetch/fetch.h \
	common/fetch/guard.c common/fetch/guard.h \
	common/fetch/process.c \
	common/fetch/site.c common/fetch/site.h \
	common/fetch/site_watch.c \
	common/fetch/talks.c common/fetch/talks.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/fetch/unit
endif
tests_unit_fetch_unit_SOURCES = \
	tests/unit/fetch/fetch_server.h \
	tests/unit/fetch/test_fetch.c \
	tests/unit/fetch/test_fetch_guard.c \
	tests/unit/fetch/test_fetch_rebinding.c \
	tests/unit/fetch/test_fetch_url.c
tests_unit_fetch_unit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=guard_check -Wl,--wrap=guard_ports

FUZZ_TARGETS += tests/fuzz/fuzz_fetch_url
tests_fuzz_fuzz_fetch_url_LDFLAGS = $(FUZZ_LINK)
