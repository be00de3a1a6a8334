#include "config.h"

#include "common/tools/profiles/container_id.h"

#include "common/base/crypto.h"

#include <stdio.h>
#include <string.h>

/* The psandbox's digits come first; the rest says that they are meant so, and by whom. It is no
 * key: who owns a sandbox is the broker's to check. */
int container_id_of(const char *tenant, const char *psandbox_id, char out[CONTAINER_ID_LEN + 1],
                    struct err *e)
{
    static const char label[] = "container id 1";
    const char *digits = psandbox_id + strlen(PSANDBOX_ID_PREFIX);
    const struct crypto_part parts[] = {{tenant, strlen(tenant)}, {digits, strlen(digits)}};
    uint8_t digest[CRYPTO_SHA256_LEN];
    char hex[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];

    if (strncmp(psandbox_id, PSANDBOX_ID_PREFIX, strlen(PSANDBOX_ID_PREFIX)) != 0 ||
        strlen(digits) != RUN_ID_LEN)
        return err_set(e, ERR_PROTOCOL, "a sandbox's id has an unknown form");
    if (crypto_hmac(label, sizeof(label) - 1, parts, 2, digest, e) < 0)
        return -1;
    crypto_hex(digest, sizeof(digest), hex);
    snprintf(out, CONTAINER_ID_LEN + 1, "%s%.*s", digits, CONTAINER_ID_LEN - RUN_ID_LEN, hex);
    return 0;
}

int container_psandbox_of(const char *tenant, const char *id, char out[CONTAINER_PSANDBOX_LEN + 1],
                          struct err *e)
{
    char same[CONTAINER_ID_LEN + 1];
    struct err why = ERR_INIT;

    snprintf(out, CONTAINER_PSANDBOX_LEN + 1, PSANDBOX_ID_PREFIX "%.*s", RUN_ID_LEN, id);
    if (strlen(id) == CONTAINER_ID_LEN && strspn(id, "0123456789abcdef") == CONTAINER_ID_LEN &&
        container_id_of(tenant, out, same, &why) == 0 && strcmp(same, id) == 0)
        return 0;
    return err_set(e, ERR_NOT_FOUND, "No such container: there is none of yours with this id");
}
