/* Last-Event-ID (first line) and the file of a stream (rest): hostile ids open nothing, and a file
 * that is damaged ends the stream. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/mcp/session/stream.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#define STREAM    "00000000000000000000000000000000"
#define FILE_NAME STREAM MCP_STREAM_SUFFIX

static char folder[64];
static int dir = -1;

static void remove_folder(void)
{
    unlinkat(dir, FILE_NAME, 0);
    close(dir);
    rmdir(folder);
}

static void make_folder(void)
{
    const char *base = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/fuzz.XXXXXX", base && strlen(base) < 40 ? base : "/tmp");
    PROMISE(mkdtemp(folder));
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PROMISE(dir >= 0);
    atexit(remove_folder);
}

static void write_stream(const void *data, size_t len)
{
    struct err e = ERR_INIT;
    AUTO_FD int fd = openat(dir, FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    PROMISE(fd >= 0 && fdio_write_all(fd, data, len, &e) == 0);
}

static void read_all(struct mcp_replay *r)
{
    char id[MCP_EVENT_ID_MAX];
    json_t *message;
    int rc;

    while ((rc = mcp_replay_next(r, &message, id)) == 1) {
        PROMISE(strncmp(id, STREAM "-", sizeof STREAM) == 0);
        json_decref(message);
    }
    PROMISE(rc == -1); /* nothing was written */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *end = len > 0 ? memchr(data, '\n', len) : NULL;
    char id[256] = "";
    struct err e = ERR_INIT;

    if (!end || (size_t)(end - data) >= sizeof id)
        return 0;
    if (dir < 0)
        make_folder();
    memcpy(id, data, (size_t)(end - data));
    write_stream(end + 1, len - (size_t)(end - data) - 1);
    struct mcp_replay *r = mcp_replay_open(dir, "s", id, &e);
    if (!r) {
        PROMISE(e.kind == ERR_INVALID || e.kind == ERR_NOT_FOUND);
        promise_error(&e);
        return 0;
    }
    PROMISE(strncmp(id, STREAM "-", sizeof STREAM) == 0);
    read_all(r);
    mcp_replay_free(r);
    return 0;
}
