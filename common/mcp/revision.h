/*
 * The revisions of MCP that this server speaks, and what each of them allows. One row each; the
 * rest of the layer asks for features and never compares revisions.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* In rising order. */
enum mcp_revision {
    MCP_2024_11_05,
    MCP_2025_03_26,
    MCP_2025_06_18,
    MCP_2025_11_25,
    MCP_2026_07_28,
    MCP_REVISIONS, /* how many */
};

#define MCP_LATEST_LEGACY MCP_2025_11_25
/* Of a legacy client that names no revision (2025-06-18 and later, "Protocol Version Header"). */
#define MCP_ASSUMED MCP_2025_03_26

#define MCP_REVISION_BIT(r) (1u << (r))
#define MCP_ANY_LEGACY      (MCP_REVISION_BIT(MCP_2026_07_28) - 1)
#define MCP_ANY_MODERN      MCP_REVISION_BIT(MCP_2026_07_28)
#define MCP_ANY_REVISION    (MCP_ANY_LEGACY | MCP_ANY_MODERN)

enum mcp_feature {
    MCP_CAN_ANNOTATE = 1 << 0,     /* tool annotations */
    MCP_CAN_TITLE = 1 << 1,        /* title of tools and of the server */
    MCP_CAN_STRUCTURE = 1 << 2,    /* outputSchema, structuredContent */
    MCP_CAN_LINK = 1 << 3,         /* resource_link content */
    MCP_CAN_BATCH = 1 << 4,        /* JSON-RPC batches */
    MCP_IS_MODERN = 1 << 5,        /* per-request metadata, resultType, caching hints */
    MCP_CAN_AUDIO = 1 << 6,        /* audio content */
    MCP_CAN_EXPLAIN = 1 << 7,      /* messages in progress notifications */
    MCP_CAN_RESUME = 1 << 8,       /* streams that are primed and can be taken up again */
    MCP_CAN_ELICIT_URL = 1 << 9,   /* modes of elicitation */
    MCP_IN_TEXT = 1 << 10,         /* results are one text and pictures, as models read them; of a
                                      place, not of a revision; as the next */
    MCP_WITHOUT_NETWORK = 1 << 11, /* its programs get no network, whatever they ask for */
};

/* "2025-06-18" */
const char *mcp_revision_name(enum mcp_revision r);

/* enum mcp_feature bits of a revision. */
unsigned mcp_revision_features(enum mcp_revision r);

/* Exact match of len bytes against the names: 0, or -1 when we do not serve it. */
int mcp_revision_parse(const char *text, size_t len, enum mcp_revision *out);

/* Does the text claim to be a revision of the stateless kind? Future dates and nonsense that sorts
 * behind count, too. */
bool mcp_version_is_modern(const char *text, size_t len);

/* The names of the revisions in mask, oldest first; new reference. */
json_t *mcp_revision_list(unsigned mask);
