#include "config.h"

#include "common/mcp/session/mailbox.h"

#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/node.h"
#include "common/base/share.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESPONSE_MAX  (32u * 1024 * 1024)
#define WAITING_MAX   RESPONSE_MAX /* bytes of all responses that no call has taken yet */
#define SMALL_MAX     (64u * 1024) /* their number bounds those that are no larger */
#define DIGITS        "0123456789abcdef"
#define RESPONSE_MARK ".r" /* in names: of the FIFO, */
#define FILE_MARK     ".a" /* of a response's file */
#define LEFT_S        60   /* for a reader to open or take what is new */
#define PIPE_LEN      16384
#define NOTE_LEN      512 /* at most PIPE_BUF, so that notes do not mix */

/* ---- cancelling ---- */

static int cancel_name(const char *session, const json_t *request_id,
                       char out[MCP_MAILBOX_NAME_MAX])
{
    AUTO_FREE char *text = json_dumps(request_id, JSON_ENCODE_ANY | JSON_COMPACT);
    uint8_t digest[CRYPTO_SHA256_LEN];
    char hex[CRYPTO_HEX_LEN(MCP_MAILBOX_HEX / 2)];

    if (!text || crypto_sha256(text, strlen(text), digest, NULL) < 0)
        return -1;
    crypto_hex(digest, MCP_MAILBOX_HEX / 2, hex);
    snprintf(out, MCP_MAILBOX_NAME_MAX, "%s.c%s", session, hex);
    return 0;
}

/* An existing FIFO was left behind, or belongs to a call with the same id, which the protocol
 * forbids. */
void mcp_mailbox_open(struct mcp_mailbox *m, int sessions_fd, const char *session,
                      const json_t *request_id)
{
    m->dir = sessions_fd;
    if (cancel_name(session, request_id, m->cancel) < 0)
        return;
    unlinkat(m->dir, m->cancel, 0);
    if (mkfifoat(m->dir, m->cancel, 0600) < 0)
        return;
    m->cancel_fd = openat(m->dir, m->cancel, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

bool mcp_mailbox_cancel(int sessions_fd, const char *session, const json_t *request_id)
{
    char name[MCP_MAILBOX_NAME_MAX];

    if (cancel_name(session, request_id, name) < 0)
        return false;
    AUTO_FD int fd = openat(sessions_fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0;
}

/* ---- responses ---- */

/* What the FIFO carries: the random part of a file's name. Few of them fill it, so small responses
 * that are not taken do not fill the disk; large ones need has_room. */
struct note {
    char hex[MCP_MAILBOX_HEX + 1];
    char room[NOTE_LEN - MCP_MAILBOX_HEX - 1];
};

static void file_name(const char *session, const struct note *note, char out[MCP_MAILBOX_NAME_MAX])
{
    snprintf(out, MCP_MAILBOX_NAME_MAX, "%.*s" FILE_MARK "%.*s", (int)strcspn(session, "."),
             session, MCP_MAILBOX_HEX, note->hex);
}

/* Opened for writing as well, it does not end with a writer. */
int mcp_mailbox_bind(struct mcp_mailbox *m, const char *session, struct err *e)
{
    if (m->response_fd >= 0)
        return 0;
    crypto_random_hex(MCP_MAILBOX_HEX / 2, m->hex);
    snprintf(m->response, sizeof m->response, "%s" RESPONSE_MARK "%s", session, m->hex);
    if (mkfifoat(m->dir, m->response, 0600) < 0)
        return err_errno(e, "cannot create a FIFO for the client's responses");
    m->response_fd = openat(m->dir, m->response, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (m->response_fd < 0 || fcntl(m->response_fd, F_SETPIPE_SZ, PIPE_LEN) < 0)
        return err_errno(e, "cannot open a FIFO for the client's responses");
    return 0;
}

json_t *mcp_mailbox_take(const struct mcp_mailbox *m)
{
    AUTO_BUF struct buf text = BUF_INIT(RESPONSE_MAX);
    char name[MCP_MAILBOX_NAME_MAX];
    struct err e = ERR_INIT;
    struct note note;

    if (read(m->response_fd, &note, sizeof note) != sizeof note)
        return NULL;
    file_name(m->response, &note, name);
    AUTO_FD int fd = openat(m->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    unlinkat(m->dir, name, 0);
    if (fd < 0 || fdio_read_to_end(fd, &text, &e) < 0)
        return NULL;
    return json_parse(buf_str(&text), text.len, JSON_MAX_DEPTH, &e);
}

static size_t session_len(const char *name)
{
    return strcspn(name, ".");
}

/* Is there room for the response in that file, which is there with its length? Each is seen before
 * it looks at the others, so that those that come at once do not take more than there is. */
static bool has_room(int dir_fd, const char *name, size_t len)
{
    AUTO_DIR DIR *dir = beneath_open_dir(dir_fd, ".");
    size_t own = 0, taken = 0;

    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *mark = strstr(entry->d_name, FILE_MARK);
        struct stat st;

        if (!mark || strcmp(entry->d_name, name) == 0 ||
            fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        taken += (size_t)st.st_size;
        if (session_len(entry->d_name) == session_len(name) &&
            memcmp(entry->d_name, name, session_len(name)) == 0)
            own += (size_t)st.st_size;
    }
    return dir && taken + len <= WAITING_MAX && share_allows(own, taken, WAITING_MAX);
}

static int write_response(int dir, const char *name, const json_t *response)
{
    AUTO_BUF struct buf text = BUF_INIT(RESPONSE_MAX);
    struct err e = ERR_INIT;

    json_write(response, &text);
    if (!buf_ok(&text))
        return -1;
    AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (text.len > SMALL_MAX &&
        (ftruncate(fd, (off_t)text.len) < 0 || !has_room(dir, name, text.len))) {
        log_info("a client's response of %zu bytes is dropped: too much waits to be taken",
                 text.len);
        return -1;
    }
    return fdio_write_all(fd, text.data, text.len, &e);
}

/* Of an id "<hex>-<n>"; -1: not an id of ours. */
static int response_name(const char *session, const json_t *id, char out[MCP_MAILBOX_NAME_MAX])
{
    const char *s = json_is_string(id) ? node_strip(json_string_value(id)) : NULL;

    if (!s || strspn(s, DIGITS) != MCP_MAILBOX_HEX || s[MCP_MAILBOX_HEX] != '-')
        return -1;
    snprintf(out, MCP_MAILBOX_NAME_MAX, "%s" RESPONSE_MARK "%.*s", session, MCP_MAILBOX_HEX, s);
    return 0;
}

static int open_for_notes(int dir, const char *name)
{
    return openat(dir, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

bool mcp_mailbox_deliver(int sessions_fd, const char *session, const json_t *id,
                         const json_t *response)
{
    char name[MCP_MAILBOX_NAME_MAX];
    struct note note = {0};

    if (response_name(session, id, name) < 0)
        return false;
    AUTO_FD int fd = open_for_notes(sessions_fd, name);
    if (fd < 0)
        return false;
    crypto_random_hex(MCP_MAILBOX_HEX / 2, note.hex);
    file_name(session, &note, name);
    if (write_response(sessions_fd, name, response) == 0 &&
        write(fd, &note, sizeof note) == sizeof note)
        return true;
    unlinkat(sessions_fd, name, 0);
    return false;
}

bool mcp_mailbox_is_dead(int sessions_fd, const char *name, int64_t age_s)
{
    if (age_s <= LEFT_S)
        return false;
    if (strstr(name, FILE_MARK))
        return true;
    if (!strstr(name, RESPONSE_MARK))
        return false;
    AUTO_FD int fd = open_for_notes(sessions_fd, name);
    return fd < 0 && errno == ENXIO;
}

void mcp_mailbox_clear(struct mcp_mailbox *m)
{
    if (m->cancel_fd >= 0)
        unlinkat(m->dir, m->cancel, 0);
    if (m->response_fd >= 0)
        unlinkat(m->dir, m->response, 0);
    for (size_t i = 0; m->response_fd >= 0 && i < PIPE_LEN / NOTE_LEN; i++)
        json_decref(mcp_mailbox_take(m));
    auto_close_fd(&m->cancel_fd);
    auto_close_fd(&m->response_fd);
}
