noinst_LIBRARIES += librpc.a
librpc_a_SOURCES = \
	common/rpc/json.c common/rpc/json.h \
	common/rpc/rpc.c common/rpc/rpc.h

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/rpc/test_json tests/unit/rpc/test_rpc
endif

FUZZ_TARGETS += tests/fuzz/fuzz_json
tests_fuzz_fuzz_json_LDFLAGS = $(FUZZ_LINK)
