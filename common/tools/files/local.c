#include "config.h"

#include "common/tools/files/local.h"

#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define SCHEME    "file://"
#define LOCALHOST "localhost"
#define CHUNK     65536
#define TEMP_HEX  8

/* ---- the directories ---- */

static int add_one(struct local_dirs *dirs, const char *path, size_t len, struct err *e)
{
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len < 2 || path[0] != '/')
        return err_set(e, ERR_INVALID, "'%.*s' is not an absolute path of a directory", (int)len,
                       path);
    if (dirs->n == LOCAL_DIRS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d directories", LOCAL_DIRS_MAX);
    dirs->paths[dirs->n++] = mem_strndup(path, len);
    return 0;
}

int local_dirs_add(struct local_dirs *dirs, const char *list, struct err *e)
{
    while (*list) {
        size_t len = strcspn(list, ",");
        if (add_one(dirs, list, len, e) < 0)
            return -1;
        list += len + (list[len] == ',');
    }
    return 0;
}

void local_dirs_add_uri(struct local_dirs *dirs, const char *uri)
{
    AUTO_BUF struct buf path = BUF_INIT(LOCAL_PATH_MAX);
    struct err ignored = ERR_INIT;

    if (strncmp(uri, SCHEME, strlen(SCHEME)) != 0)
        return;
    uri += strlen(SCHEME);
    if (strncmp(uri, LOCALHOST "/", strlen(LOCALHOST "/")) == 0)
        uri += strlen(LOCALHOST);
    for (; *uri; uri++) {
        int byte = parse_percent(uri, strnlen(uri, 3));
        buf_add_char(&path, byte < 0 ? *uri : (char)byte);
        if (byte >= 0)
            uri += 2;
    }
    if (buf_ok(&path) && strlen(buf_str(&path)) == path.len)
        (void)add_one(dirs, buf_str(&path), path.len, &ignored);
}

void local_dirs_clear(struct local_dirs *dirs)
{
    while (dirs->n > 0)
        free(dirs->paths[--dirs->n]);
}

/* ---- paths beneath them ---- */

static int refuse(const char *path, int error, const char *what, struct err *e)
{
    switch (error) {
    case ELOOP:
    case EXDEV:
        return err_set(e, ERR_DENIED, "'%.300s' leads over a link", path);
    case EINVAL:
        return err_set(e, ERR_INVALID, "'%.300s' must not hold \".\", \"..\" or empty parts", path);
    case EACCES:
    case EPERM:
        return err_set(e, ERR_DENIED, "'%.300s' is not allowed to this server's account", path);
    default:
        break;
    }
    errno = error;
    if (beneath_system_failed(error))
        return err_errno(e, "'%.300s' cannot be opened", path);
    return err_set(e, ERR_NOT_FOUND, "'%.300s' is no %s on this machine", path, what);
}

/* Opens the allowed directory that path lies in, or is; *out_rest is the rest, "" for itself. */
static int open_dir_of(const struct local_dirs *dirs, const char *path, const char **out_rest,
                       struct err *e)
{
    for (size_t i = 0; i < dirs->n; i++) {
        size_t len = strlen(dirs->paths[i]);
        if (strncmp(path, dirs->paths[i], len) != 0 || (path[len] != '/' && path[len] != '\0'))
            continue;
        int fd = open(dirs->paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return refuse(dirs->paths[i], errno, "directory", e);
        *out_rest = path[len] ? path + len + 1 : path + len;
        return fd;
    }
    if (path[0] != '/')
        return err_set(e, ERR_INVALID, "'%.300s' is not an absolute path", path);
    return err_set(e, ERR_DENIED,
                   "'%.300s' is not beneath a directory that this server may use "
                   "(SANDCGI_LOCAL_DIRS, or the client's roots)",
                   path);
}

static int open_path(const struct local_dirs *dirs, const char *path, int flags, const char *what,
                     struct err *e)
{
    const char *rest = "";
    AUTO_FD int dir = open_dir_of(dirs, path, &rest, e);

    if (dir < 0)
        return -1;
    int fd = *rest ? beneath_open(dir, rest, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags)
                   : openat(dir, ".", O_RDONLY | O_CLOEXEC | flags);
    return fd < 0 ? refuse(path, errno, what, e) : fd;
}

int local_open_folder(const struct local_dirs *dirs, const char *path, struct err *e)
{
    AUTO_FREE char *plain = mem_strdup(path);

    for (size_t len = strlen(plain); len > 1 && plain[len - 1] == '/'; len--)
        plain[len - 1] = '\0';
    return open_path(dirs, plain, O_DIRECTORY, "folder", e);
}

int local_open_file(const struct local_dirs *dirs, const char *path, struct stat *out,
                    struct err *e)
{
    AUTO_FD int fd = open_path(dirs, path, 0, "file", e);

    if (fd < 0)
        return -1;
    if (fstat(fd, out) < 0 || !S_ISREG(out->st_mode))
        return err_set(e, ERR_NOT_FOUND, "'%.300s' is no file on this machine", path);
    return TAKE_FD(fd);
}

/* ---- writing ---- */

static int copy_bytes(int from_fd, int to_fd, uint64_t size, struct err *e)
{
    char chunk[CHUNK];

    while (size > 0) {
        ssize_t n = read(from_fd, chunk, size < CHUNK ? (size_t)size : CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "the file's content cannot be read");
        if (n == 0) /* a program made it shorter meanwhile */
            return 0;
        if (fdio_write_all(to_fd, chunk, (size_t)n, e) < 0)
            return -1;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Writes to a name of our own in the folder, then gives it the right one. */
static int put_in(int folder, const char *name, int from_fd, uint64_t size, bool replace,
                  struct err *e)
{
    char hex[2 * TEMP_HEX + 1], temp[sizeof(hex) + 9];

    crypto_random_hex(TEMP_HEX, hex);
    snprintf(temp, sizeof(temp), ".sandcgi-%s", hex);
    AUTO_FD int fd = openat(folder, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            0644);
    if (fd < 0)
        return err_errno(e, "'%.200s' cannot be written on this machine", name);
    int rc = copy_bytes(from_fd, fd, size, e);
    if (rc == 0 && renameat2(folder, temp, folder, name, replace ? 0 : RENAME_NOREPLACE) < 0)
        rc = errno == EEXIST ? err_set(e, ERR_EXISTS, "'%.200s' is there already", name)
                             : err_errno(e, "'%.200s' cannot be written on this machine", name);
    if (rc < 0)
        unlinkat(folder, temp, 0);
    return rc;
}

int local_put_file(const struct local_dirs *dirs, const char *path, int from_fd, uint64_t size,
                   bool replace, struct err *e)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : "";

    if (!slash || slash == path || !*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(e, ERR_INVALID, "'%.300s' is not the absolute path of a file", path);
    AUTO_FREE char *parent = mem_strndup(path, (size_t)(slash - path));
    AUTO_FD int folder = local_open_folder(dirs, parent, e);
    return folder < 0 ? -1 : put_in(folder, name, from_fd, size, replace, e);
}
