# The messages on the broker's socket, and its clients.
noinst_LIBRARIES += libprotocol.a
libprotocol_a_SOURCES = \
	common/protocol/audit.c common/protocol/audit.h \
	common/protocol/client_call.c common/protocol/client_call.h \
	common/protocol/client_files.c common/protocol/client_files.h \
	common/protocol/client_psandboxes.c \
	common/protocol/client_runs.c common/protocol/client_runs.h \
	common/protocol/entry_record.c common/protocol/entry_record.h \
	common/protocol/limits.h \
	common/protocol/ops.c common/protocol/ops.h \
	common/protocol/run.h \
	common/protocol/run_body.c common/protocol/run_body.h \
	common/protocol/room.c common/protocol/room.h \
	common/protocol/run_id.c common/protocol/run_id.h \
	common/protocol/wire.c common/protocol/wire.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/protocol/unit
endif
tests_unit_protocol_unit_SOURCES = \
	tests/unit/protocol/test_client.c \
	tests/unit/protocol/test_run_body.c \
	tests/unit/protocol/test_wire.c

FUZZ_TARGETS += tests/fuzz/fuzz_broker_head tests/fuzz/fuzz_run_body
tests_fuzz_fuzz_broker_head_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_run_body_LDFLAGS = $(FUZZ_LINK)
