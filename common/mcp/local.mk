noinst_LIBRARIES += libmcp.a
libmcp_a_SOURCES = \
	common/mcp/call.c common/mcp/call.h \
	common/mcp/client/client_channel.c common/mcp/client/client_channel.h \
	common/mcp/client/elicitation.c common/mcp/client/elicitation.h \
	common/mcp/client/notify.h \
	common/mcp/client/seal.c common/mcp/client/seal.h \
	common/mcp/era.c common/mcp/era.h \
	common/mcp/events/event.c common/mcp/events/event.h \
	common/mcp/events/listen.c common/mcp/events/listen.h \
	common/mcp/features/content.c common/mcp/features/content.h \
	common/mcp/features/offer.h common/mcp/features/offer_methods.c \
	common/mcp/features/result.c common/mcp/features/result.h \
	common/mcp/features/task.c common/mcp/features/task.h \
	common/mcp/features/tool.h common/mcp/features/tool_methods.c \
	common/mcp/handle.c common/mcp/server.h \
	common/mcp/revision.c common/mcp/revision.h \
	common/mcp/session/mailbox.c common/mcp/session/mailbox.h \
	common/mcp/route.c common/mcp/route.h \
	common/mcp/session/sent_on.c common/mcp/session/sent_on.h \
	common/mcp/session/session.c common/mcp/session/session.h \
	common/mcp/session/session_seal.c common/mcp/session/session_seal.h \
	common/mcp/session/session_methods.c \
	common/mcp/session/stream.c common/mcp/session/stream.h

# A server with the real tools over a broker in the test's own process.
ASK_FAKES = tests/fakes/fake_client.c tests/fakes/fake_client.h
TOOLS_FAKES = \
	tests/fakes/fake_broker.c tests/fakes/fake_broker.h \
	tests/fakes/schema.c tests/fakes/schema.h \
	tests/fakes/tools_world.c tests/fakes/tools_world.h

# A server with sessions, and tools, prompts and resources for whatever this layer offers.
MCP_FAKES = \
	tests/fakes/mcp_extra.c tests/fakes/mcp_extra.h \
	tests/fakes/mcp_offer.c tests/fakes/mcp_offer.h \
	tests/fakes/mcp_world.c tests/fakes/mcp_world.h $(ASK_FAKES)

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/mcp/unit
endif
tests_unit_mcp_unit_SOURCES = \
	$(MCP_FAKES) \
	tests/unit/mcp/mcp_fixture.h \
	tests/unit/mcp/test_client_channel.c \
	tests/unit/mcp/test_elicitation.c \
	tests/unit/mcp/test_era.c \
	tests/unit/mcp/test_listen.c \
	tests/unit/mcp/test_methods.c \
	tests/unit/mcp/test_seal.c \
	tests/unit/mcp/test_server.c \
	tests/unit/mcp/test_session.c \
	tests/unit/mcp/test_stream.c \
	tests/unit/mcp/test_task.c
tests_unit_mcp_unit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fstatat

FUZZ_TARGETS += \
	tests/fuzz/fuzz_mcp \
	tests/fuzz/fuzz_mcp_call \
	tests/fuzz/fuzz_mcp_header \
	tests/fuzz/fuzz_mcp_replay \
	tests/fuzz/fuzz_mcp_route \
	tests/fuzz/fuzz_mcp_session \
	tests/fuzz/fuzz_mcp_state
tests_fuzz_fuzz_mcp_call_SOURCES = tests/fuzz/fuzz_mcp_call.c $(MCP_FAKES)
tests_fuzz_fuzz_mcp_call_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_header_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_replay_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_route_SOURCES = tests/fuzz/fuzz_mcp_route.c $(TOOLS_FAKES)
tests_fuzz_fuzz_mcp_route_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_session_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_state_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_mcp_SOURCES = tests/fuzz/fuzz_mcp.c $(TOOLS_FAKES)
tests_fuzz_fuzz_mcp_LDFLAGS = $(FUZZ_LINK)
