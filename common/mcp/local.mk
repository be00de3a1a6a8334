noinst_LIBRARIES += libmcp.a
libmcp_a_SOURCES = \
	common/mcp/content.c common/mcp/content.h \
	common/mcp/era.c common/mcp/era.h \
	common/mcp/failure.c common/mcp/failure.h \
	common/mcp/lifecycle.c \
	common/mcp/lists.c common/mcp/lists.h \
	common/mcp/methods.c common/mcp/methods.h \
	common/mcp/result.c common/mcp/result.h \
	common/mcp/revision.c common/mcp/revision.h \
	common/mcp/server.c common/mcp/server.h \
	common/mcp/tool.h \
	common/mcp/tool_methods.c
