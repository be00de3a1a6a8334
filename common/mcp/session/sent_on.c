#include "config.h"

#include "common/mcp/session/sent_on.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/mcp/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SLOTS  64 /* a call takes the place of an earlier one whose id has the same slot */
#define DIGEST 16

struct slot {
    uint8_t digest[DIGEST]; /* of the request's id */
    struct mcp_elsewhere where;
};

static int digest_of(const json_t *request_id, uint8_t out[CRYPTO_SHA256_LEN])
{
    AUTO_FREE char *text = json_dumps(request_id, JSON_ENCODE_ANY | JSON_COMPACT);

    return text ? crypto_sha256(text, strlen(text), out, NULL) : -1;
}

static int open_file(int dir, const char *session, int flags)
{
    char name[MCP_SESSION_ID_LEN + sizeof SENT_ON_SUFFIX];

    snprintf(name, sizeof name, "%s" SENT_ON_SUFFIX, session);
    return openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static off_t slot_at(const uint8_t *digest)
{
    return (off_t)(digest[DIGEST] % SLOTS * sizeof(struct slot));
}

void sent_on_note(int sessions_fd, const char *session, const json_t *request_id,
                  const struct mcp_elsewhere *where)
{
    uint8_t digest[CRYPTO_SHA256_LEN];
    struct slot slot = {.where = *where};

    if (digest_of(request_id, digest) < 0)
        return;
    memcpy(slot.digest, digest, DIGEST);
    AUTO_FD int fd = open_file(sessions_fd, session, O_WRONLY | O_CREAT);
    if (fd < 0 || pwrite(fd, &slot, sizeof slot, slot_at(digest)) != sizeof slot)
        log_debug("a call that is sent on cannot be cancelled: %s", strerror(errno));
}

bool sent_on_find(int sessions_fd, const char *session, const json_t *request_id,
                  struct mcp_elsewhere *out)
{
    uint8_t digest[CRYPTO_SHA256_LEN];
    struct slot slot;

    if (digest_of(request_id, digest) < 0)
        return false;
    AUTO_FD int fd = open_file(sessions_fd, session, O_RDONLY);
    if (fd < 0 || pread(fd, &slot, sizeof slot, slot_at(digest)) != sizeof slot ||
        memcmp(slot.digest, digest, DIGEST) != 0)
        return false;
    *out = slot.where;
    return true;
}
