#include "config.h"

#include "common/mcp/session/mailbox.h"

#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/sock.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define RESPONSE_MAX (32u * 1024 * 1024)
#define DIGITS       "0123456789abcdef"

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

/* Through /proc/self/fd the path fits into a socket address. */
static int set_address(struct sockaddr_un *a, int dir, const char *name)
{
    int n;

    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    n = snprintf(a->sun_path, sizeof a->sun_path, "/proc/self/fd/%d/%s", dir, name);
    return n > 0 && (size_t)n < sizeof a->sun_path ? 0 : -1;
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int mcp_mailbox_bind(struct mcp_mailbox *m, const char *session, struct err *e)
{
    struct sockaddr_un a;
    AUTO_FD int fd = new_socket();

    if (m->response_fd >= 0)
        return 0;
    crypto_random_hex(MCP_MAILBOX_HEX / 2, m->hex);
    snprintf(m->response, sizeof m->response, "%s.r%s", session, m->hex);
    if (fd < 0 || set_address(&a, m->dir, m->response) < 0 ||
        bind(fd, (const struct sockaddr *)&a, sizeof a) < 0)
        return err_errno(e, "cannot create a socket for the client's responses");
    m->response_fd = TAKE_FD(fd);
    return 0;
}

json_t *mcp_mailbox_take(const struct mcp_mailbox *m)
{
    AUTO_BUF struct buf text = BUF_INIT(RESPONSE_MAX);
    AUTO_FDS struct fds file = FDS_INIT(1);
    struct err e = ERR_INIT;
    size_t n;
    char byte;

    if (sock_recv_some(m->response_fd, &byte, 1, &file, &n, &e) <= 0)
        return NULL;
    AUTO_FD int fd = fds_take(&file);
    if (fd < 0 || fdio_read_to_end(fd, &text, &e) < 0)
        return NULL;
    return json_parse(buf_str(&text), text.len, JSON_MAX_DEPTH, &e);
}

static int new_memory_file(const json_t *value)
{
    AUTO_BUF struct buf text = BUF_INIT(RESPONSE_MAX);
    struct err e = ERR_INIT;
    AUTO_FD int fd = memfd_create("response", MFD_CLOEXEC);

    json_write(value, &text);
    if (fd < 0 || !buf_ok(&text) || fdio_write_all(fd, text.data, text.len, &e) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    return TAKE_FD(fd);
}

/* Of an id "<hex>-<n>"; -1: not an id of ours. */
static int response_name(const char *session, const json_t *id, char out[MCP_MAILBOX_NAME_MAX])
{
    const char *s = json_string_value(id);

    if (!s || strspn(s, DIGITS) != MCP_MAILBOX_HEX || s[MCP_MAILBOX_HEX] != '-')
        return -1;
    snprintf(out, MCP_MAILBOX_NAME_MAX, "%s.r%.*s", session, MCP_MAILBOX_HEX, s);
    return 0;
}

bool mcp_mailbox_deliver(int sessions_fd, const char *session, const json_t *id,
                         const json_t *response)
{
    char name[MCP_MAILBOX_NAME_MAX];
    struct sockaddr_un to;

    if (response_name(session, id, name) < 0 || set_address(&to, sessions_fd, name) < 0)
        return false;
    AUTO_FD int fd = new_socket();
    AUTO_FDS struct fds file = FDS_INIT(1);
    int memory = new_memory_file(response);
    return memory >= 0 && fds_add(&file, memory) && fd >= 0 &&
           connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
           sock_send_some(fd, "r", 1, &file) == 1;
}

bool mcp_mailbox_is_dead(int sessions_fd, const char *name)
{
    struct sockaddr_un to;
    AUTO_FD int fd = new_socket();

    return fd >= 0 && set_address(&to, sessions_fd, name) == 0 &&
           connect(fd, (const struct sockaddr *)&to, sizeof to) < 0 && errno == ECONNREFUSED;
}

void mcp_mailbox_clear(struct mcp_mailbox *m)
{
    if (m->cancel_fd >= 0)
        unlinkat(m->dir, m->cancel, 0);
    if (m->response_fd >= 0)
        unlinkat(m->dir, m->response, 0);
    auto_close_fd(&m->cancel_fd);
    auto_close_fd(&m->response_fd);
}
