noinst_LIBRARIES += libmcp.a
libmcp_a_SOURCES = \
	common/mcp/ask.c common/mcp/ask.h \
	common/mcp/asking.c common/mcp/asking.h \
	common/mcp/complete.c \
	common/mcp/content.c common/mcp/content.h \
	common/mcp/era.c common/mcp/era.h \
	common/mcp/event.c common/mcp/event.h \
	common/mcp/failure.c common/mcp/failure.h \
	common/mcp/header_params.c common/mcp/header_params.h \
	common/mcp/lifecycle.c \
	common/mcp/listen.c common/mcp/listen.h \
	common/mcp/lists.c common/mcp/lists.h \
	common/mcp/mailbox.c common/mcp/mailbox.h \
	common/mcp/methods.c common/mcp/methods.h \
	common/mcp/notify.h \
	common/mcp/pin.c common/mcp/pin.h \
	common/mcp/prompt.h common/mcp/prompt_methods.c \
	common/mcp/resource.h common/mcp/resource_methods.c \
	common/mcp/seal.c common/mcp/seal.h \
	common/mcp/session.c common/mcp/session.h \
	common/mcp/session_methods.c common/mcp/session_sweep.c \
	common/mcp/result.c common/mcp/result.h \
	common/mcp/revision.c common/mcp/revision.h \
	common/mcp/server.c common/mcp/server.h \
	common/mcp/sse.c common/mcp/sse.h \
	common/mcp/stream.c common/mcp/stream.h \
	common/mcp/task.c common/mcp/task.h common/mcp/task_methods.c \
	common/mcp/tool.h \
	common/mcp/tool_methods.c \
	common/mcp/way.c common/mcp/way.h

# A server with the real tools over a broker in the test's own process.
ASK_FAKES = tests/fakes/ask.c tests/fakes/ask.h
TOOLS_FAKES = \
	tests/fakes/fake_broker.c tests/fakes/fake_broker.h \
	tests/fakes/schema.c tests/fakes/schema.h \
	tests/fakes/tools_world.c tests/fakes/tools_world.h

# A server with sessions, and tools, prompts and resources for whatever this layer offers.
MCP_FAKES = \
	tests/fakes/mcp_offer.c tests/fakes/mcp_offer.h \
	tests/fakes/mcp_world.c tests/fakes/mcp_world.h $(ASK_FAKES)

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test_mcp_ask \
	tests/unit/test_mcp_era \
	tests/unit/test_mcp_listen \
	tests/unit/test_mcp_methods \
	tests/unit/test_mcp_seal \
	tests/unit/test_mcp_server \
	tests/unit/test_mcp_session \
	tests/unit/test_mcp_stream \
	tests/unit/test_mcp_task \
	tests/unit/test_mcp_way
tests_unit_test_mcp_ask_SOURCES = tests/unit/test_mcp_ask.c $(MCP_FAKES)
tests_unit_test_mcp_listen_SOURCES = tests/unit/test_mcp_listen.c $(MCP_FAKES)
tests_unit_test_mcp_methods_SOURCES = tests/unit/test_mcp_methods.c $(MCP_FAKES)
tests_unit_test_mcp_session_SOURCES = tests/unit/test_mcp_session.c $(MCP_FAKES)
tests_unit_test_mcp_task_SOURCES = tests/unit/test_mcp_task.c $(MCP_FAKES)
tests_unit_test_mcp_way_SOURCES = tests/unit/test_mcp_way.c $(MCP_FAKES)
tests_unit_test_mcp_server_SOURCES = tests/unit/test_mcp_server.c $(ASK_FAKES)
endif

FUZZ_TARGETS += \
	tests/fuzz/fuzz_mcp \
	tests/fuzz/fuzz_mcp_call \
	tests/fuzz/fuzz_mcp_header \
	tests/fuzz/fuzz_mcp_replay \
	tests/fuzz/fuzz_mcp_session \
	tests/fuzz/fuzz_mcp_state
tests_fuzz_fuzz_mcp_call_SOURCES = tests/fuzz/fuzz_mcp_call.c $(MCP_FAKES)
tests_fuzz_fuzz_mcp_call_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_header_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_replay_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_session_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_state_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_SOURCES = tests/fuzz/fuzz_mcp.c $(TOOLS_FAKES)
tests_fuzz_fuzz_mcp_LDFLAGS = $(FUZZ_LINK)
