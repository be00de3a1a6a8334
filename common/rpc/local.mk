noinst_LIBRARIES += librpc.a
librpc_a_SOURCES = \
	common/rpc/json.c common/rpc/json.h \
	common/rpc/rpc.c common/rpc/rpc.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/rpc/unit
endif
tests_unit_rpc_unit_SOURCES = \
	tests/unit/rpc/test_json.c \
	tests/unit/rpc/test_rpc.c

FUZZ_TARGETS += tests/fuzz/fuzz_json
tests_fuzz_fuzz_json_LDFLAGS = $(FUZZ_LINK)
