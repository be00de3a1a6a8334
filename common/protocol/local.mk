# The messages on the broker's socket, and its clients.
noinst_LIBRARIES += libprotocol.a
libprotocol_a_SOURCES = \
	common/protocol/client_call.c common/protocol/client_call.h \
	common/protocol/client_files.c common/protocol/client_files.h \
	common/protocol/client_psandboxes.c \
	common/protocol/client_runs.c common/protocol/client_runs.h \
	common/protocol/limits.h \
	common/protocol/ops.c common/protocol/ops.h \
	common/protocol/run.h \
	common/protocol/run_id.c common/protocol/run_id.h \
	common/protocol/wire.c common/protocol/wire.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/protocol/test_client \
	tests/unit/protocol/test_wire
endif

FUZZ_TARGETS += tests/fuzz/fuzz_broker_head
tests_fuzz_fuzz_broker_head_LDFLAGS = $(FUZZ_LINK)
