#include "config.h"

#include "common/records/run_lock.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define RUNS     ".runs"
#define INDEXES  ".index"
#define SOCKET   "proxy"
#define CA       "ca.pem"
#define CA_MAX   (1024 * 1024)
#define PATH_LEN 96
#define BACKLOG  64

/* ---- locks ---- */

/* A run id may come from the label of a container: it must not be a path. */
static bool id_ok(const char *run_id)
{
    size_t len = strspn(run_id, "0123456789abcdef");
    return len > 0 && len <= 64 && run_id[len] == '\0';
}

static void lock_path(char out[80], const char *run_id)
{
    snprintf(out, 80, RUNS "/%s", run_id);
}

/* false: the housekeeper had the new file's lock and has removed it as an orphan's. */
static bool lock_new(int fd)
{
    struct stat st;

    while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

int run_lock_take(int root_fd, const char *run_id, struct err *e)
{
    char path[80];
    lock_path(path, run_id);
    for (int tries = 0; tries < 10; tries++) {
        AUTO_FD int fd = openat(root_fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                                0600);
        if (fd < 0)
            return err_errno(e, "cannot create %s under SANDBOX_ROOT", path);
        if (lock_new(fd))
            return TAKE_FD(fd);
    }
    return err_set(e, ERR_IO, "cannot lock %s under SANDBOX_ROOT", path);
}

void run_lock_remove(int root_fd, const char *run_id)
{
    char path[80];
    lock_path(path, run_id);
    unlinkat(root_fd, path, 0);
}

bool run_lock_reap(int root_fd, const char *run_id)
{
    if (!id_ok(run_id))
        return false;
    char path[80];
    lock_path(path, run_id);
    AUTO_FD int fd = openat(root_fd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno != ENOENT; /* unreadable is not dead */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return true;
    run_lock_remove(root_fd, run_id);
    return false;
}

void run_lock_sweep(int root_fd)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root_fd, RUNS);

    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (id_ok(entry->d_name))
            run_lock_reap(root_fd, entry->d_name);
}

/* ---- index directories ---- */

static void index_path(char out[PATH_LEN], const char *run_id, const char *file)
{
    snprintf(out, PATH_LEN, INDEXES "/%.64s%s%s", run_id, *file ? "/" : "", file);
}

/* A rootless engine and the container's user must pass through both. */
static int make_folders(int root_fd, const char *run_id, struct err *e)
{
    char path[PATH_LEN];

    index_path(path, run_id, "");
    if (mkdirat(root_fd, INDEXES, 0711) < 0 && errno != EEXIST)
        return err_errno(e, "cannot create " INDEXES " under SANDBOX_ROOT");
    if (mkdirat(root_fd, path, 0711) < 0 || fchmodat(root_fd, INDEXES, 0711, 0) < 0 ||
        fchmodat(root_fd, path, 0711, 0) < 0)
        return err_errno(e, "cannot create %s under SANDBOX_ROOT", path);
    return 0;
}

/* By the root's descriptor: the whole path may be longer than sun_path. */
static int listen_in(int root_fd, const char *run_id, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[PATH_LEN];

    index_path(path, run_id, SOCKET);
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%.80s", root_fd, path);
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof a) < 0 ||
        fchmodat(root_fd, path, 0666, 0) < 0 || listen(fd, BACKLOG) < 0)
        return err_errno(e, "cannot listen on %s under SANDBOX_ROOT", path);
    return TAKE_FD(fd);
}

static int copy_ca(int root_fd, const char *run_id, const char *ca_path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(CA_MAX);
    char path[PATH_LEN];

    if (!*ca_path)
        return 0;
    if (fdio_read_file(ca_path, &text, e) < 0)
        return err_set(e, ERR_UNAVAILABLE, "SANDBOX_CA: the file cannot be read");
    index_path(path, run_id, CA);
    AUTO_FD int fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            0644);
    if (fd < 0 || fchmod(fd, 0644) < 0)
        return err_errno(e, "cannot create %s under SANDBOX_ROOT", path);
    return fdio_write_all(fd, text.data, text.len, e);
}

int index_dir_make(const struct sandbox_root *root, const char *run_id, const char *ca_path,
                   struct err *e)
{
    if (make_folders(root->fd, run_id, e) < 0)
        return -1;
    AUTO_FD int fd = listen_in(root->fd, run_id, e);
    if (fd < 0 || copy_ca(root->fd, run_id, ca_path, e) < 0) {
        index_dir_remove(root->fd, run_id);
        return -1;
    }
    return TAKE_FD(fd);
}

char *index_dir_host_path(const struct sandbox_root *root, const char *run_id)
{
    return mem_printf("%s/" INDEXES "/%s", root->host_path, run_id);
}

void index_dir_remove(int root_fd, const char *run_id)
{
    static const char *const files[] = {SOCKET, CA, ""};
    char path[PATH_LEN];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        index_path(path, run_id, files[i]);
        unlinkat(root_fd, path, *files[i] ? 0 : AT_REMOVEDIR);
    }
}

void index_dir_sweep(int root_fd)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root_fd, INDEXES);

    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && strlen(entry->d_name) <= 64 &&
            !run_lock_reap(root_fd, entry->d_name))
            index_dir_remove(root_fd, entry->d_name);
}
