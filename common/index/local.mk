noinst_LIBRARIES += libindex.a
libindex_a_SOURCES = \
	common/index/index.c common/index/index.h \
	common/index/proxy.c common/index/proxy.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/index/unit
endif
tests_unit_index_unit_SOURCES = \
	tests/unit/index/test_hosts.c \
	tests/unit/index/test_names.c \
	tests/unit/index/test_proxy.c \
	tests/unit/index/test_request.c

FUZZ_TARGETS += \
	tests/fuzz/fuzz_index_hosts \
	tests/fuzz/fuzz_index_names \
	tests/fuzz/fuzz_index_request
tests_fuzz_fuzz_index_hosts_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_index_names_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_index_request_LDFLAGS = $(FUZZ_LINK)
