#include "config.h"

#include "common/mcp/revision.h"

#include <string.h>

struct revision {
    const char *name;
    unsigned features;
};

#define FEATURES_2025_03 (MCP_CAN_ANNOTATE | MCP_CAN_AUDIO | MCP_CAN_EXPLAIN)
#define FEATURES_2025_06 (FEATURES_2025_03 | MCP_CAN_TITLE | MCP_CAN_STRUCTURE | MCP_CAN_LINK)
#define FEATURES_2025_11 (FEATURES_2025_06 | MCP_CAN_ELICIT_URL)

static const struct revision revisions[MCP_REVISIONS] = {
    [MCP_2024_11_05] = {"2024-11-05", 0},
    [MCP_2025_03_26] = {"2025-03-26", FEATURES_2025_03 | MCP_CAN_BATCH},
    [MCP_2025_06_18] = {"2025-06-18", FEATURES_2025_06},
    [MCP_2025_11_25] = {"2025-11-25", FEATURES_2025_11 | MCP_CAN_RESUME},
    [MCP_2026_07_28] = {"2026-07-28", FEATURES_2025_11 | MCP_IS_MODERN},
};

const char *mcp_revision_name(enum mcp_revision r)
{
    return revisions[r].name;
}

unsigned mcp_revision_features(enum mcp_revision r)
{
    return revisions[r].features;
}

int mcp_revision_parse(const char *text, size_t len, enum mcp_revision *out)
{
    for (unsigned r = 0; r < MCP_REVISIONS; r++) {
        if (strlen(revisions[r].name) == len && memcmp(revisions[r].name, text, len) == 0) {
            *out = (enum mcp_revision)r;
            return 0;
        }
    }
    return -1;
}

bool mcp_version_is_modern(const char *text, size_t len)
{
    const char *first = revisions[MCP_2026_07_28].name;
    size_t first_len = strlen(first);
    int order = memcmp(text, first, len < first_len ? len : first_len);

    return order > 0 || (order == 0 && len >= first_len);
}

json_t *mcp_revision_list(unsigned mask)
{
    json_t *list = json_array();

    for (unsigned r = 0; r < MCP_REVISIONS; r++) {
        if (mask & MCP_REVISION_BIT(r))
            json_array_append_new(list, json_string(revisions[r].name));
    }
    return list;
}
