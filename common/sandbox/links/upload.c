#include "config.h"

#include "common/sandbox/links/upload.h"

#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SWEEP_AGE_S     3600
#define TICKET_GRACE_S  (6 * 3600) /* after its expiry no upload with a ticket takes longer */
#define TICKET_TEXT_MAX 16384
#define TICKET_DEPTH    4

/* ---- tickets ---- */

static int tickets_open(const struct sandbox_root *root, struct err *e)
{
    int fd = openat(root->fd, TICKET_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_errno(e, "the upload tickets cannot be opened") : fd;
}

static int ticket_used(struct err *e)
{
    return err_set(e, ERR_EXISTS, "this upload link has been used; ask for a new one");
}

static bool ticket_id_ok(const char *id)
{
    return strlen(id) == TICKET_ID_LEN && strspn(id, "0123456789abcdef") == TICKET_ID_LEN;
}

static int ticket_write(int dir, const char *id, const struct ticket *t, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(TICKET_TEXT_MAX);
    json_auto_t *record = json_pack("{s:s, s:s, s:s, s:I, s:I}", "tenant", t->tenant,
                                    "conversationId", t->conversation, "name", t->name, "size",
                                    (json_int_t)t->size, "expires", (json_int_t)t->expires);
    const struct timespec times[2] = {{.tv_sec = t->expires}, {.tv_sec = t->expires}};

    if (!record || json_write(record, &text) < 0)
        return err_set(e, ERR_INVALID, "an upload ticket cannot hold these names");
    AUTO_FD int fd = openat(dir, id, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "the upload ticket cannot be made");
    /* Its modification time is its expiry: a sweep need not read it. */
    if (fdio_write_all(fd, text.data, text.len, e) < 0 || futimens(fd, times) < 0) {
        unlinkat(dir, id, 0);
        return err_set(e, ERR_IO, "the upload ticket cannot be written");
    }
    return 0;
}

int ticket_make(const struct sandbox_root *root, const struct ticket *ticket,
                char out_id[TICKET_ID_LEN + 1], struct err *e)
{
    AUTO_FD int dir = tickets_open(root, e);

    if (dir < 0)
        return -1;
    crypto_random_hex(TICKET_ID_LEN / 2, out_id);
    return ticket_write(dir, out_id, ticket, e);
}

static int ticket_decode(const json_t *record, struct ticket *out, struct err *e)
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
    AUTO_BUF struct buf text = BUF_INIT(TICKET_TEXT_MAX);
    AUTO_FD int dir = tickets_open(root, e);

    if (dir < 0)
        return -1;
    AUTO_FD int fd = ticket_id_ok(id) ? openat(dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return ticket_used(e);
    if (fdio_read_to_end(fd, &text, e) < 0)
        return -1;
    json_auto_t *record = json_parse(buf_str(&text), text.len, TICKET_DEPTH, e);
    return record ? ticket_decode(record, out, e) : -1;
}

void ticket_clear(struct ticket *t)
{
    free(t->tenant);
    free(t->conversation);
    free(t->name);
    *t = (struct ticket){0};
}

int ticket_use(const struct sandbox_root *root, const char *id, struct err *e)
{
    AUTO_FD int dir = tickets_open(root, e);

    if (dir < 0)
        return -1;
    if (ticket_id_ok(id) && unlinkat(dir, id, 0) == 0)
        return 0;
    return ticket_id_ok(id) && errno != ENOENT ? err_errno(e, "the upload ticket cannot be used")
                                               : ticket_used(e);
}

/* ---- contents ---- */

int upload_stage(const struct sandbox_root *root, struct err *e)
{
    int fd = openat(root->fd, STAGING_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* The file system has no O_TMPFILE: a file that loses its name does as well. */
    AUTO_STAGED struct staged file = STAGED_INIT;
    fd = staging_create_file(root, &file);
    return fd < 0 ? err_errno(e, "the upload cannot be stored") : fd;
}

static bool is_nginx_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= STAGING_NAME_LEN && strspn(name, "0123456789") == len;
}

int upload_of_nginx(const struct sandbox_root *root, const char *name, struct upload_body *out,
                    struct err *e)
{
    struct stat st;

    if (!is_nginx_name(name))
        return err_set(e, ERR_INVALID, "the web server named no file of an upload");
    AUTO_FD int dir = openat(root->fd, UPLOAD_NGINX_DIR,
                             O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FD int fd = dir < 0 ? -1
                             : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return err_set(e, ERR_UNAVAILABLE,
                       "this server's account may not read what the web server's writes");
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
        return err_set(e, ERR_INVALID, "the web server's file of the upload is not there");
    *out = (struct upload_body){
        .staged = {.dir_fd = TAKE_FD(dir)}, .fd = TAKE_FD(fd), .size = (uint64_t)st.st_size};
    snprintf(out->staged.name, sizeof(out->staged.name), "%s", name);
    return 0;
}

int upload_of_stage(const struct sandbox_root *root, int fd, struct upload_body *out, struct err *e)
{
    struct stat st, place;

    /* A file without a name on this file system came from upload_stage: a program has none of the
     * server's descriptors. */
    if (fd < 0 || fstat(fd, &st) < 0 || fstat(root->fd, &place) < 0 || !S_ISREG(st.st_mode) ||
        st.st_nlink != 0 || st.st_dev != place.st_dev)
        return err_set(e, ERR_INVALID, "the content is not where uploads are written");
    *out = UPLOAD_BODY_INIT;
    out->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (out->fd < 0)
        return err_errno(e, "the upload cannot be stored");
    out->size = (uint64_t)st.st_size;
    return 0;
}

int upload_move(const struct sandbox *sb, const char *name, struct upload_body *body, struct err *e)
{
    if (!body->staged.name[0] && staging_name_file(sb->root, body->fd, &body->staged) < 0) {
        if (lseek(body->fd, 0, SEEK_SET) < 0)
            return err_errno(e, "the upload cannot be read");
        return files_put(sb, name, body->fd, body->size, true, e);
    }
    return files_put_staged(sb, name, &body->staged, body->fd, e);
}

void upload_body_clear(struct upload_body *body)
{
    staged_clear(&body->staged);
    auto_close_fd(&body->fd);
}

void uploads_sweep(const struct sandbox_root *root)
{
    staging_sweep_files(root, UPLOAD_NGINX_DIR, is_nginx_name, SWEEP_AGE_S);
    staging_sweep_files(root, TICKET_DIR, ticket_id_ok, TICKET_GRACE_S);
}
