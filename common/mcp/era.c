#include "config.h"

#include "common/mcp/era.h"

#include "common/base/b64.h"
#include "common/base/buf.h"
#include "common/base/utf8.h"

#include <string.h>

#define SENTINEL_HEAD "=?base64?"
#define SENTINEL_TAIL "?="

struct view {
    const char *text; /* NULL: absent */
    size_t len;
};

/* Everything that the decision looks at. */
struct facts {
    const struct rpc_message *message;
    const struct mcp_origin *origin;
    const char *name_param;
    const json_t *meta;
    const json_t *claim; /* NULL: the message makes none */
    struct view version; /* the headers, blanks removed */
    struct view method;
    struct view name;
};

/* An empty header is an absent one: web servers hand over both as an empty parameter. */
static struct view trim(const char *s)
{
    struct view v = {.text = s};

    if (!s)
        return v;
    v.text += strspn(v.text, " \t");
    v.len = strlen(v.text);
    while (v.len > 0 && (v.text[v.len - 1] == ' ' || v.text[v.len - 1] == '\t'))
        v.len--;
    if (v.len == 0)
        v.text = NULL;
    return v;
}

static bool view_is(struct view v, const char *text, size_t len)
{
    return v.text && v.len == len && memcmp(v.text, text, len) == 0;
}

static bool view_is_modern(struct view v)
{
    return v.text && mcp_version_is_modern(v.text, v.len);
}

static struct facts facts_of(const struct rpc_message *message, const struct mcp_origin *origin,
                             const char *name_param)
{
    struct facts f = {.message = message, .origin = origin, .name_param = name_param};

    f.meta = json_object_get(message->params, "_meta");
    f.claim = json_object_get(f.meta, MCP_META_VERSION);
    if (origin->http) {
        f.version = trim(origin->protocol_version);
        f.method = trim(origin->method);
        f.name = trim(origin->name);
    }
    return f;
}

static bool stdio_is_modern(const struct mcp_origin *origin)
{
    return origin->stdio_client && origin->stdio_client->modern;
}

static bool claim_is_well_formed(const struct facts *x)
{
    return json_is_string(x->claim) &&
           json_is_object(json_object_get(x->meta, MCP_META_CAPABILITIES));
}

bool era_header_equals(const char *value, size_t value_len, const char *text, size_t text_len)
{
    size_t head = strlen(SENTINEL_HEAD), tail = strlen(SENTINEL_TAIL);

    if (value_len < head + tail || memcmp(value, SENTINEL_HEAD, head) != 0 ||
        memcmp(value + value_len - tail, SENTINEL_TAIL, tail) != 0)
        return value_len == text_len && memcmp(value, text, text_len) == 0;

    AUTO_BUF struct buf decoded = BUF_INIT(text_len + 3);
    if (b64_decode(value + head, value_len - head - tail, &decoded) < 0 || !buf_ok(&decoded))
        return false;
    return decoded.len == text_len && memcmp(buf_str(&decoded), text, text_len) == 0 &&
           utf8_valid(buf_str(&decoded), decoded.len);
}

static bool name_header_agrees(const struct facts *x)
{
    const json_t *value = x->name_param ? json_object_get(x->message->params, x->name_param) : NULL;

    if (!json_is_string(value))
        return true;
    return x->name.text && era_header_equals(x->name.text, x->name.len, json_string_value(value),
                                             json_string_length(value));
}

static int fail_header(struct mcp_failure *f, const char *what)
{
    return mcp_fail(f, 400, MCP_HEADER_MISMATCH, NULL, "%s", what);
}

static int fail_meta(struct mcp_failure *f)
{
    return mcp_fail(f, 400, RPC_INVALID_PARAMS, NULL,
                    "params._meta needs \"" MCP_META_VERSION "\" (a string) and "
                    "\"" MCP_META_CAPABILITIES "\" (an object)");
}

static int fail_version(const json_t *requested, struct mcp_failure *f)
{
    return mcp_fail(f, 400, MCP_UNSUPPORTED_VERSION,
                    json_pack("{s:o, s:o*}", "supported", mcp_revision_list(MCP_ANY_MODERN),
                              "requested", json_deep_copy(requested)),
                    "unsupported protocol version");
}

static int serve(enum mcp_revision revision, struct mcp_era *out)
{
    *out = (struct mcp_era){revision, mcp_revision_features(revision)};
    return 0;
}

/* Only headers that contradict; absent ones are dealt with after the version. */
static int check_contradictions(const struct facts *x, struct mcp_failure *f)
{
    if (x->version.text && x->claim &&
        !view_is(x->version, json_string_value(x->claim), json_string_length(x->claim)))
        return fail_header(f, "the header MCP-Protocol-Version differs from params._meta");
    if (x->method.text && !view_is(x->method, x->message->method, strlen(x->message->method)))
        return fail_header(f, "the header Mcp-Method differs from method");
    return 0;
}

static int check_presence(const struct facts *x, struct mcp_failure *f)
{
    if (!x->origin->http)
        return 0;
    if (!x->version.text)
        return fail_header(f, "the header MCP-Protocol-Version is missing");
    if (!x->method.text)
        return fail_header(f, "the header Mcp-Method is missing");
    if (!name_header_agrees(x))
        return fail_header(f, "the header Mcp-Name is missing, malformed or differs from params");
    return 0;
}

static int decide_modern(const struct facts *x, struct mcp_era *out, struct mcp_failure *f)
{
    enum mcp_revision revision;

    if (!claim_is_well_formed(x))
        return fail_meta(f);
    if (check_contradictions(x, f) < 0)
        return -1;
    if (mcp_revision_parse(json_string_value(x->claim), json_string_length(x->claim), &revision) <
            0 ||
        !(MCP_REVISION_BIT(revision) & MCP_ANY_MODERN))
        return fail_version(x->claim, f);
    if (check_presence(x, f) < 0)
        return -1;
    return serve(revision, out);
}

static int decide_initialize(const struct facts *x, struct mcp_era *out, struct mcp_failure *f)
{
    const json_t *asked = json_object_get(x->message->params, "protocolVersion");
    enum mcp_revision revision;

    if (view_is_modern(x->version))
        return fail_header(f, "initialize does not exist in the revision that the header "
                              "MCP-Protocol-Version names");
    if (stdio_is_modern(x->origin))
        return fail_version(asked, f);
    if (!json_is_string(asked) ||
        mcp_revision_parse(json_string_value(asked), json_string_length(asked), &revision) < 0 ||
        !(MCP_REVISION_BIT(revision) & MCP_ANY_LEGACY))
        revision = MCP_LATEST_LEGACY;
    return serve(revision, out);
}

/* By the header on HTTP; on stdio by what initialize agreed on. */
static int decide_legacy(struct view version, const struct mcp_origin *origin, struct mcp_era *out,
                         struct mcp_failure *f)
{
    enum mcp_revision revision;

    if (!version.text && origin->stdio_client)
        version = trim(origin->stdio_client->negotiated);
    if (!version.text) {
        /* New members of objects are harmless to every client; new kinds of content are not. */
        *out = (struct mcp_era){MCP_ASSUMED, mcp_revision_features(MCP_ASSUMED) | MCP_CAN_TITLE |
                                                 MCP_CAN_STRUCTURE};
        return 0;
    }
    if (mcp_revision_parse(version.text, version.len, &revision) < 0 ||
        !(MCP_REVISION_BIT(revision) & MCP_ANY_LEGACY))
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL,
                        "unsupported MCP-Protocol-Version; supported are %s, %s, %s, %s and %s",
                        mcp_revision_name(MCP_2024_11_05), mcp_revision_name(MCP_2025_03_26),
                        mcp_revision_name(MCP_2025_06_18), mcp_revision_name(MCP_2025_11_25),
                        mcp_revision_name(MCP_2026_07_28));
    return serve(revision, out);
}

static int decide_request(const struct facts *x, struct mcp_era *out, struct mcp_failure *f)
{
    if (strcmp(x->message->method, "initialize") == 0 &&
        !(claim_is_well_formed(x) &&
          mcp_version_is_modern(json_string_value(x->claim), json_string_length(x->claim))))
        return decide_initialize(x, out, f);
    if (x->claim)
        return decide_modern(x, out, f);
    if (view_is_modern(x->version) || stdio_is_modern(x->origin))
        return fail_meta(f);
    return decide_legacy(x->version, x->origin, out, f);
}

static int decide_notification(const struct facts *x, struct mcp_era *out, struct mcp_failure *f)
{
    if (!x->claim && !view_is_modern(x->version))
        return decide_legacy(x->version, x->origin, out, f);
    if (x->claim && !claim_is_well_formed(x))
        return fail_meta(f);
    return check_contradictions(x, f) < 0 ? -1 : serve(MCP_2026_07_28, out);
}

int era_decide(const struct rpc_message *message, const struct mcp_origin *origin,
               const char *name_param, struct mcp_era *out, struct mcp_failure *f)
{
    struct facts x = facts_of(message, origin, name_param);

    if (message->kind == RPC_REQUEST)
        return decide_request(&x, out, f);
    if (message->kind == RPC_NOTIFICATION)
        return decide_notification(&x, out, f);
    return decide_legacy(x.version, origin, out, f);
}

int era_decide_batch(const struct mcp_origin *origin, struct mcp_era *out, struct mcp_failure *f)
{
    struct view version = origin->http ? trim(origin->protocol_version) : (struct view){0};

    if (view_is_modern(version) || stdio_is_modern(origin) ||
        decide_legacy(version, origin, out, f) < 0 || !(out->features & MCP_CAN_BATCH))
        return mcp_fail(f, 400, RPC_INVALID_REQUEST, NULL,
                        "batches exist in revision %s only: send one message at a time",
                        mcp_revision_name(MCP_2025_03_26));
    return 0;
}
