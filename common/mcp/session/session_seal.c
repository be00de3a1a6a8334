#include "config.h"

#include "common/mcp/session/session_seal.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/node.h"
#include "common/base/parse.h"

#include <stdio.h>
#include <string.h>

#define LABEL "sandcgi session 1"

/* Digits of an id: the tenant's tag, revision, capabilities, time, random ones, HMAC. */
#define TAG_HEX      16
#define REVISION_AT  TAG_HEX
#define CAN_AT       (REVISION_AT + 2)
#define TIME_AT      (CAN_AT + 2)
#define RANDOM_AT    (TIME_AT + 8)
#define RANDOM_BYTES 6
#define MAC_AT       (RANDOM_AT + 2 * RANDOM_BYTES)
#define MAC_BYTES    12

_Static_assert(MAC_AT + 2 * MAC_BYTES == MCP_SESSION_ID_LEN, "an id has one length");

/* What a client can be asked: a bit each. */
static const struct {
    const char *capability, *mode; /* mode NULL: the capability itself */
} abilities[] = {{"elicitation", NULL},
                 {"elicitation", "form"},
                 {"elicitation", "url"},
                 {"sampling", NULL},
                 {"roots", NULL}};

static unsigned can_of(const json_t *capabilities)
{
    unsigned can = 0;

    for (size_t i = 0; i < ARRAY_LEN(abilities); i++) {
        const json_t *has = json_object_get(capabilities, abilities[i].capability);
        if (json_is_object(abilities[i].mode ? json_object_get(has, abilities[i].mode) : has))
            can |= 1u << i;
    }
    return can;
}

static json_t *capabilities_of(unsigned can)
{
    json_t *capabilities = json_object();

    for (size_t i = 0; i < ARRAY_LEN(abilities); i++) {
        const char *name = abilities[i].capability;
        if (!(can & 1u << i))
            continue;
        if (!json_object_get(capabilities, name))
            json_object_set_new(capabilities, name, json_object());
        if (abilities[i].mode)
            json_object_set_new(json_object_get(capabilities, name), abilities[i].mode,
                                json_object());
    }
    return capabilities;
}

static int mac_of(const struct mcp_server *server, const char *node, const char *tenant,
                  const char *id, char out[2 * MAC_BYTES + 1], struct err *e)
{
    const char *offer = server->offer ? server->offer : "";
    const struct crypto_part parts[] = {{LABEL, strlen(LABEL)},
                                        {node, strlen(node)},
                                        {tenant, strlen(tenant)},
                                        {offer, strlen(offer)},
                                        {id, MAC_AT}};
    uint8_t mac[CRYPTO_SHA256_LEN];

    if (crypto_hmac(server->seal_key, server->seal_key_len, parts, ARRAY_LEN(parts), mac, e) < 0)
        return -1;
    crypto_hex(mac, MAC_BYTES, out);
    return 0;
}

int session_seal(const struct mcp_server *server, const char *tenant, enum mcp_revision revision,
                 const json_t *capabilities, char out_id[MCP_SESSION_ID_LEN + 1], struct err *e)
{
    crypto_tag(tenant, TAG_HEX / 2, out_id);
    snprintf(out_id + REVISION_AT, RANDOM_AT - REVISION_AT + 1, "%02x%02x%08x", (unsigned)revision,
             can_of(capabilities), (unsigned)clock_unix_s());
    crypto_random_hex(RANDOM_BYTES, out_id + RANDOM_AT);
    return mac_of(server, node_name(), tenant, out_id, out_id + MAC_AT, e);
}

/* n digits of an id whose form has been checked. */
static unsigned number_at(const char *id, size_t at, size_t n)
{
    unsigned value = 0;

    for (size_t i = at; i < at + n; i++)
        value = value << 4 | (unsigned)(id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
    return value;
}

json_t *session_unseal(const struct mcp_server *server, const char *node, const char *id,
                       const char *tenant, enum mcp_revision *out_revision)
{
    char tag[TAG_HEX + 1], mac[2 * MAC_BYTES + 1];
    struct err e = ERR_INIT;

    crypto_tag(tenant, TAG_HEX / 2, tag);
    if (mac_of(server, node, tenant, id, mac, &e) < 0 || memcmp(id, tag, TAG_HEX) != 0 ||
        !crypto_equal(mac, strlen(mac), id + MAC_AT, strlen(mac)) ||
        clock_unix_s() - (int64_t)number_at(id, TIME_AT, 8) > SESSION_AWAY_S)
        return NULL;
    unsigned revision = number_at(id, REVISION_AT, 2);
    if (revision >= MCP_REVISIONS || !(MCP_REVISION_BIT(revision) & MCP_ANY_LEGACY))
        return NULL;
    *out_revision = (enum mcp_revision)revision;
    return json_pack("{s:s, s:o}", "tenant", tenant, "capabilities",
                     capabilities_of(number_at(id, CAN_AT, 2)));
}
