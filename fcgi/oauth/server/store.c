#include "config.h"

#include "fcgi/oauth/server/store.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_MAX  (4u * 1024 * 1024)
#define LOCK       "lock"
#define LOCK_FETCH "lock.fetch"
#define NEW_SUFFIX ".new"
#define MODE       0600
#define SECRET_HEX (2 * STORE_SECRET_LEN)

int store_folder_open(const struct settings *s, const struct account *workers, struct err *e)
{
    AUTO_FD int fd = root_folder_open(s, STORE_FOLDER, workers, e);
    AUTO_FD int public = fd < 0 ? -1
                                : root_folder_open(s, STORE_FOLDER "/" STORE_PUBLIC, workers, e);

    return public < 0 ? -1 : TAKE_FD(fd);
}

int store_read(int folder_fd, const char *name, struct buf *out, struct err *e)
{
    AUTO_FD int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "there is no " STORE_FOLDER "/%s", name);
    if (fd < 0)
        return err_errno(e, STORE_FOLDER "/%s", name);
    return fdio_read_to_end(fd, out, e) < 0 ? err_wrap(e, STORE_FOLDER "/%s", name) : 0;
}

/* An administrator's command, which is root's, writes for the server. */
static int write_new(int folder_fd, int fd, const char *text, size_t len, struct err *e)
{
    struct stat st;

    if (fchmod(fd, MODE) < 0 || fstat(folder_fd, &st) < 0 ||
        (geteuid() == 0 && fchown(fd, st.st_uid, st.st_gid) < 0))
        return err_errno(e, "its owner and mode");
    if (fdio_write_all(fd, text, len, e) < 0)
        return -1;
    return fsync(fd) < 0 ? err_errno(e, "fsync") : 0;
}

/* The folder that the file is in keeps its new name. */
static int sync_folder(int folder_fd, const char *name)
{
    AUTO_FD int below = strchr(name, '/') ? openat(folder_fd, STORE_PUBLIC,
                                                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                                          : -1;

    return fsync(below < 0 ? folder_fd : below);
}

int store_write(int folder_fd, const char *name, const char *text, size_t len, struct err *e)
{
    char new[64];

    snprintf(new, sizeof new, "%s" NEW_SUFFIX, name);
    AUTO_FD int fd = openat(folder_fd, new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                            MODE);
    if (fd < 0)
        return err_errno(e, STORE_FOLDER "/%s", new);
    if (write_new(folder_fd, fd, text, len, e) < 0)
        return err_wrap(e, STORE_FOLDER "/%s", new);
    if (renameat(folder_fd, new, folder_fd, name) < 0 || sync_folder(folder_fd, name) < 0)
        return err_errno(e, STORE_FOLDER "/%s cannot be replaced", name);
    return 0;
}

static int lock_file(int folder_fd, const char *name, int how, struct err *e)
{
    struct stat st;
    AUTO_FD int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, MODE);

    if (fd < 0)
        return err_errno(e, STORE_FOLDER "/%s", name);
    if (geteuid() == 0 && (fstat(folder_fd, &st) < 0 || fchown(fd, st.st_uid, st.st_gid) < 0))
        return err_errno(e, STORE_FOLDER "/%s", name);
    while (flock(fd, how) < 0) {
        if (errno == EWOULDBLOCK)
            return err_set(e, ERR_BUSY, STORE_FOLDER "/%s is held", name);
        if (errno != EINTR)
            return err_errno(e, STORE_FOLDER "/%s", name);
    }
    return TAKE_FD(fd);
}

int store_lock(int folder_fd, struct err *e)
{
    return lock_file(folder_fd, LOCK, LOCK_EX, e);
}

int store_lock_fetch(int folder_fd, struct err *e)
{
    return lock_file(folder_fd, LOCK_FETCH, LOCK_EX | LOCK_NB, e);
}

/* As hex, so that a text editor shows it. */
static int secret_parse(const char *hex, uint8_t out[STORE_SECRET_LEN], struct err *e)
{
    if (strlen(hex) < SECRET_HEX || strspn(hex, "0123456789abcdef") < SECRET_HEX)
        return err_set(e, ERR_INVALID,
                       STORE_FOLDER "/" STORE_SECRET " is damaged; remove it: clients then log in "
                                    "again");
    for (size_t i = 0; i < STORE_SECRET_LEN; i++) {
        unsigned byte = 0;
        for (size_t k = 2 * i; k < 2 * i + 2; k++)
            byte = byte << 4 | (unsigned)(hex[k] <= '9' ? hex[k] - '0' : hex[k] - 'a' + 10);
        out[i] = (uint8_t)byte;
    }
    return 0;
}

int store_secret(int folder_fd, uint8_t out[STORE_SECRET_LEN], struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(4 * SECRET_HEX);
    AUTO_FD int lock = store_lock(folder_fd, e);
    char hex[SECRET_HEX + 1];
    struct err cause = ERR_INIT;

    if (lock < 0)
        return -1;
    if (store_read(folder_fd, STORE_SECRET, &text, &cause) == 0)
        return secret_parse(buf_str(&text), out, e);
    if (cause.kind != ERR_NOT_FOUND) {
        *e = cause;
        return -1;
    }
    crypto_random_hex(STORE_SECRET_LEN, hex);
    return store_write(folder_fd, STORE_SECRET, hex, SECRET_HEX, e) < 0 ? -1
                                                                        : secret_parse(hex, out, e);
}

/* ---- the state ---- */

static int state_read(int folder_fd, json_t **out, struct err *e)
{
    static const char *const parts[] = {"clients", "documents", "codes",
                                        "grants",  "attempts",  "once"};
    AUTO_BUF struct buf text = BUF_INIT(STATE_MAX);
    struct err cause = ERR_INIT;
    json_auto_t *state = NULL;

    if (store_read(folder_fd, STORE_STATE, &text, &cause) == 0)
        state = json_parse(buf_str(&text), text.len, JSON_MAX_DEPTH, &cause);
    else if (cause.kind == ERR_NOT_FOUND)
        state = json_object();
    if (!json_is_object(state))
        return err_set(e, ERR_IO, STORE_FOLDER "/" STORE_STATE ": %s",
                       cause.kind != ERR_NONE ? cause.text : "no JSON object");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!json_is_object(json_object_get(state, parts[i])))
            json_object_set_new(state, parts[i], json_object());
    *out = TAKE_PTR(state);
    return 0;
}

int store_begin(int folder_fd, struct store *out, struct err *e)
{
    AUTO_FD int lock = store_lock(folder_fd, e);

    *out = STORE_INIT;
    if (lock < 0 || state_read(folder_fd, &out->state, e) < 0)
        return -1;
    out->folder_fd = folder_fd;
    out->lock_fd = TAKE_FD(lock);
    return 0;
}

int store_save(const struct store *s, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(STATE_MAX);

    if (json_write(s->state, &text) < 0)
        return err_set(e, ERR_LIMIT, STORE_FOLDER "/" STORE_STATE " would be over %u bytes",
                       STATE_MAX);
    return store_write(s->folder_fd, STORE_STATE, buf_str(&text), text.len, e);
}

void store_end(struct store *s)
{
    json_decref(s->state);
    auto_close_fd(&s->lock_fd);
    *s = STORE_INIT;
}
