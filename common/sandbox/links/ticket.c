#include "config.h"

#include "common/sandbox/links/ticket.h"

#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define UPLOAD_LASTS_S (6 * 3600)

#define TEXT_MAX   16384
#define TEXT_DEPTH 4

static int open_tickets(const struct sandbox_root *root, struct err *e)
{
    int fd = openat(root->fd, TICKET_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_errno(e, "the upload tickets cannot be opened") : fd;
}

static int was_used(struct err *e)
{
    return err_set(e, ERR_EXISTS, "this upload link has been used; ask for a new one");
}

static bool is_id(const char *id)
{
    return strlen(id) == TICKET_ID_LEN && strspn(id, "0123456789abcdef") == TICKET_ID_LEN;
}

static int write_ticket(int dir, const char *id, const struct ticket *t, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    json_auto_t *record = json_pack("{s:s, s:s, s:s, s:I, s:I}", "tenant", t->tenant,
                                    "conversationId", t->conversation, "name", t->name, "size",
                                    (json_int_t)t->size, "expires", (json_int_t)t->expires);
    const struct timespec times[2] = {{.tv_sec = t->expires}, {.tv_sec = t->expires}};

    if (!record || json_write(record, &text) < 0)
        return err_set(e, ERR_INVALID, "an upload ticket cannot hold these names");
    AUTO_FD int fd = openat(dir, id, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "the upload ticket cannot be made");
    /* Its time of change says until when it is good: a sweep need not read it. */
    if (fdio_write_all(fd, text.data, text.len, e) < 0 || futimens(fd, times) < 0) {
        unlinkat(dir, id, 0);
        return err_set(e, ERR_IO, "the upload ticket cannot be written");
    }
    return 0;
}

int ticket_make(const struct sandbox_root *root, const struct ticket *ticket,
                char out_id[TICKET_ID_LEN + 1], struct err *e)
{
    AUTO_FD int dir = open_tickets(root, e);

    if (dir < 0)
        return -1;
    crypto_random_hex(TICKET_ID_LEN / 2, out_id);
    return write_ticket(dir, out_id, ticket, e);
}

static int decode(const json_t *record, struct ticket *out, struct err *e)
{
    const char *tenant = json_get_string(record, "tenant");
    const char *conversation = json_get_string(record, "conversationId");
    const char *name = json_get_string(record, "name");

    if (!tenant || !conversation || !name)
        return err_set(e, ERR_IO, "the upload ticket is damaged; ask for a new one");
    *out = (struct ticket){.tenant = mem_strdup(tenant),
                           .conversation = mem_strdup(conversation),
                           .name = mem_strdup(name),
                           .size = (uint64_t)json_get_integer(record, "size", 0),
                           .expires = json_get_integer(record, "expires", 0)};
    return 0;
}

int ticket_read(const struct sandbox_root *root, const char *id, struct ticket *out, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    AUTO_FD int dir = open_tickets(root, e);

    if (dir < 0)
        return -1;
    AUTO_FD int fd = is_id(id) ? openat(dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return was_used(e);
    if (fdio_read_to_end(fd, &text, e) < 0)
        return -1;
    json_auto_t *record = json_parse(buf_str(&text), text.len, TEXT_DEPTH, e);
    return record ? decode(record, out, e) : -1;
}

void ticket_clear(struct ticket *t)
{
    free(t->tenant);
    free(t->conversation);
    free(t->name);
    *t = (struct ticket)TICKET_INIT;
}

int ticket_use(const struct sandbox_root *root, const char *id, struct err *e)
{
    AUTO_FD int dir = open_tickets(root, e);

    if (dir < 0)
        return -1;
    if (is_id(id) && unlinkat(dir, id, 0) == 0)
        return 0;
    return is_id(id) && errno != ENOENT ? err_errno(e, "the upload ticket cannot be used")
                                        : was_used(e);
}

void tickets_sweep(const struct sandbox_root *root)
{
    staging_sweep_files(root, TICKET_DIR, is_id, UPLOAD_LASTS_S);
}
