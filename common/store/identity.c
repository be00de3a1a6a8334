#include "config.h"

#include "common/store/identity.h"

#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/state/unsaved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define ID_LEN    32
#define FILE_MAX  8192
#define HERE_FILE STATE_DIR "/store"
#define HEX       "0123456789abcdef"

/* The file: the id, a line's end, the place. false: there is none. */
static bool read_here(const struct sandbox_root *root, const struct store_settings *s,
                      char id[ID_LEN + 1], bool *out_moved)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct err why = ERR_INIT;
    AUTO_FD int fd = openat(root->fd, HERE_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fdio_read_to_end(fd, &text, &why) < 0 || text.len < ID_LEN + 1)
        return false;
    snprintf(id, ID_LEN + 1, "%s", buf_str(&text));
    *out_moved = strcmp(text.data + ID_LEN + 1, s->place) != 0;
    return true;
}

static int write_here(const struct sandbox_root *root, const struct store_settings *s,
                      const char *id, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    AUTO_STAGED struct staged file = STAGED_INIT;
    AUTO_FD int fd = staging_create_file(root, &file);

    buf_addf(&text, "%s\n%s", id, s->place);
    if (fd < 0)
        return err_errno(e, "SANDBOX_ROOT/" HERE_FILE " cannot be made");
    if (fdio_write_all(fd, text.data, text.len, e) < 0)
        return -1;
    if (staged_move(&file, root->fd, HERE_FILE, STAGED_MOVE_REPLACE) < 0)
        return err_errno(e, "SANDBOX_ROOT/" HERE_FILE " cannot be made");
    return 0;
}

/* *id is "" when it has none. */
static int read_there(struct store *store, char id[ID_LEN + 1], struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(ID_LEN);

    id[0] = '\0';
    if (store_get_text(store, STORE_MARK, &text, e) < 0)
        return e->kind == ERR_NOT_FOUND ? 0 : -1;
    if (text.len != ID_LEN || strspn(buf_str(&text), HEX) != ID_LEN)
        return err_set(e, ERR_UNAVAILABLE, "the object " STORE_MARK " in SANDBOX_STORE is damaged");
    memcpy(id, text.data, ID_LEN + 1);
    return 0;
}

static int write_there(struct store *store, char id[ID_LEN + 1], struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(ID_LEN);

    crypto_random_hex(ID_LEN / 2, id);
    buf_add_str(&text, id);
    return store_put_text(store, STORE_MARK, &text, e);
}

/* Of several processes that meet a store for the first time one makes it known, the others wait. */
static int lock_here(const struct sandbox_root *root, struct err *e)
{
    AUTO_FD int fd = openat(root->fd, STATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    while (fd >= 0 && flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            auto_close_fd(&fd);
    return fd < 0 ? err_errno(e, "SANDBOX_ROOT/" STATE_DIR " cannot be locked") : TAKE_FD(fd);
}

int store_identify(struct store *store, const struct store_settings *s,
                   const struct sandbox_root *root, struct err *e)
{
    char here[ID_LEN + 1], there[ID_LEN + 1];
    bool moved = false, known = read_here(root, s, here, &moved);
    AUTO_FD int lock = -1;

    if (!known || moved) {
        lock = lock_here(root, e);
        if (lock < 0)
            return -1;
        known = read_here(root, s, here, &moved);
    }
    if (read_there(store, there, e) < 0)
        return -1;
    if (known && !moved)
        return strcmp(here, there) == 0
                   ? 0
                   : err_set(e, ERR_UNAVAILABLE,
                             "SANDBOX_STORE is not the store that was used before: mount it, or, "
                             "to begin another one, remove SANDBOX_ROOT/" HERE_FILE);
    if (!there[0] && write_there(store, there, e) < 0)
        return -1;
    if (known && strcmp(here, there) != 0) {
        log_info("SANDBOX_STORE is another store: all conversations are saved there");
        unsaved_end(root);
        if (unsaved_begin(root, e) < 0)
            return -1;
    }
    return write_here(root, s, there, e);
}
