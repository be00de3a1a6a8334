#include "config.h"

#include "common/engine/docker_self.h"

#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/engine/docker_config.h"
#include "common/rpc/json.h"

#define BRIDGE_BYTES                                                                               \
    4 /* of randomness in a bridge's name: engines of one host have different ones */

/* Podman does not know the option, and refuses it. */
static int network_create(struct docker *d, enum network_tier tier, bool with_icc, struct err *e)
{
    AUTO_BUF struct buf body = BUF_INIT(DOCKER_SMALL_REPLY), reply = BUF_INIT(DOCKER_SMALL_REPLY);
    const struct container_network *network = &container_networks[tier];
    char random[CRYPTO_HEX_LEN(BRIDGE_BYTES)];

    crypto_random_hex(BRIDGE_BYTES, random);
    AUTO_FREE char *bridge = mem_printf("%s%s", network->bridge, random);
    json_auto_t *config = json_pack(
        "{s:s, s:s, s:b, s:{s:s, s:s*}}", "Name", network->name, "Driver", "bridge",
        "CheckDuplicate", 1, "Options", "com.docker.network.bridge.name", bridge,
        "com.docker.network.bridge.enable_icc", with_icc ? "false" : NULL);
    if (json_write(config, &body) < 0)
        return err_set(e, ERR_INTERNAL, "the network's description is too large");
    int status = docker_http_call(d->http, "POST", "/networks/create", buf_str(&body),
                                  DOCKER_QUESTION_MS, &reply, e);
    return docker_http_check(status, reply.data, reply.len, e);
}

int docker_network(struct docker *d, enum network_tier tier, struct err *e)
{
    AUTO_FREE char *path = mem_printf("/networks/%s", container_networks[tier].name);
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    int status = docker_http_call(d->http, "GET", path, NULL, DOCKER_QUESTION_MS, &reply, e);

    if (status != 404)
        return docker_http_check(status, reply.data, reply.len, e);
    if (network_create(d, tier, true, e) == 0 || network_create(d, tier, false, e) == 0)
        return 0;
    /* Another server has made it meanwhile. */
    struct err second = ERR_INIT;
    status = docker_http_call(d->http, "GET", path, NULL, DOCKER_QUESTION_MS, &reply, &second);
    if (status >= 0 && status < 400)
        return 0;
    return err_wrap(e, "the engine's network %s", container_networks[tier].name);
}
