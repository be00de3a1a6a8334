#include "config.h"

#include "fcgi/process/resources.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/base/privsep.h"
#include "common/sandbox/stand_in.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LOCK_FILE     STATE_DIR "/server.lock"
#define WORKER_MEMORY (256u * 1024 * 1024)
#define WORKER_BODIES 8 /* a body's text, its tree, the broker's message, each while it grows */
#define HUB_MEMORY                                                                                 \
    (512u * 1024 * 1024) /* requests, and HUB_LARGE_MAX stored messages while they grow */
#define HUB_STREAM_MEMORY (128u * 1024) /* HUB_QUEUE_MAX, and the URIs that it listens to */

/* ---- accounts ---- */

int account_of_workers(const char *user, struct account *out, struct err *e)
{
    *out = (struct account){.uid = geteuid(), .gid = getegid()};
    if (geteuid() != 0)
        return 0;
    if (!*user)
        return err_set(e, ERR_INVALID,
                       "started as root: SANDCGI_USER must name the account of the workers");
    errno = 0;
    const struct passwd *pw = getpwnam(user);
    if (!pw)
        return err_set(e, ERR_INVALID, "SANDCGI_USER=%s: no such account", user);
    if (pw->pw_uid == 0)
        return err_set(e, ERR_INVALID, "SANDCGI_USER must not be root");
    *out = (struct account){.uid = pw->pw_uid, .gid = pw->pw_gid};
    return 0;
}

int account_become(const struct account *account, struct err *e)
{
    if (geteuid() == 0) {
        if (setgroups(0, NULL) < 0 || setgid(account->gid) < 0 || setuid(account->uid) < 0)
            return err_errno(e, "giving up root");
        if (setuid(0) == 0)
            return err_set(e, ERR_INTERNAL, "root could be taken back after giving it up");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_errno(e, "no_new_privs");
    /* setuid has cleared it; a worker must not outlive the master. */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return err_errno(e, "parent death signal");
    return 0;
}

/* Without it, what one request takes could be taken by all workers at once. */
int front_memory_bound(const struct settings *s, bool hub, struct err *e)
{
#ifndef WITH_SANITIZER /* AddressSanitizer keeps what was freed */
    const rlim_t bytes = hub ? HUB_MEMORY + HUB_STREAM_MEMORY * s->max_streams
                             : WORKER_MEMORY + WORKER_BODIES * s->max_body;
    struct rlimit limit;

    if (getrlimit(RLIMIT_DATA, &limit) < 0)
        return err_errno(e, "the limit of memory");
    limit.rlim_cur = limit.rlim_max = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    if (setrlimit(RLIMIT_DATA, &limit) < 0)
        return err_errno(e, "the limit of memory");
#endif
    (void)s;
    (void)hub;
    (void)e;
    return 0;
}

int account_confine(int sessions_fd, bool forks, struct err *e)
{
    const struct privsep_needs needs = {.folder_fd = sessions_fd, .children = forks};

    return privsep_confine(&needs, e) < 0 ? err_wrap(e, "giving up files and sockets") : 0;
}

void kernel_log_walls(void)
{
    int landlock = privsep_landlock_version();

    if (!privsep_has_seccomp())
        log_warn(
            "the kernel has no seccomp: workers can make every system call, and upload_archive "
            "is refused");
    if (landlock == 0)
        log_warn("the kernel has no Landlock (Linux 5.13): workers, fetch and index proxy can open "
                 "every file that their account can open");
    else if (landlock < PRIVSEP_LANDLOCK_TCP)
        log_warn("the kernel's Landlock has version %d, not %d (Linux 6.7): fetch and index proxy "
                 "can connect to every port",
                 landlock, PRIVSEP_LANDLOCK_TCP);
    else if (landlock < PRIVSEP_LANDLOCK_SIGNALS)
        log_info("the kernel's Landlock has version %d, not %d (Linux 6.12): the hub can signal "
                 "workers",
                 landlock, PRIVSEP_LANDLOCK_SIGNALS);
}

/* ---- the log ---- */

void log_follow(const struct settings *s)
{
    struct err e = ERR_INIT;

    log_setup((enum log_level)s->log_level, "guard");
    log_set_format((enum log_format)s->log_format);
    if (*s->log_file && log_open(s->log_file, &e) < 0)
        log_error("SANDCGI_LOG: %s", e.text);
}

struct audit_place audit_place_of(const struct settings *s)
{
    return (struct audit_place){
        .broker = s->broker, .log_file = s->log_file, .json = s->log_format == LOG_FORMAT_JSON};
}

/* ---- SANDBOX_ROOT ---- */

static int root_unusable(const struct settings *s, const char *what, struct err *e)
{
    const int cause = errno;

    return err_set(e, ERR_INVALID, "SANDBOX_ROOT %s %s: %s; %s", s->sandbox_root, what,
                   strerror(cause),
                   cause == EROFS    ? "mount it writable, or set another path"
                   : cause == EACCES ? "let this account write there, or set another path"
                                     : "set another path");
}

static int root_open(const struct settings *s, struct err *e)
{
    if (mkdir(s->sandbox_root, 0700) < 0 && errno != EEXIST)
        return root_unusable(s, "cannot be created", e);
    int root = open(s->sandbox_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? root_unusable(s, "cannot be opened as a directory", e) : root;
}

static bool is_lock_of(int fd, int root)
{
    struct stat ours, there;

    return fd >= 0 && fstat(fd, &ours) == 0 &&
           fstatat(root, LOCK_FILE, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* Of a line "1: FLOCK ADVISORY WRITE 812 fe:00:1234 0 EOF", whose sixth word is place; else 0. */
static int owner_in(char *line, const char *place)
{
    char *save, *words[6];
    size_t n = 0;
    uint64_t pid;

    for (char *w = strtok_r(line, " ", &save); w && n < ARRAY_LEN(words);
         w = strtok_r(NULL, " ", &save))
        words[n++] = w;
    return n == ARRAY_LEN(words) && strcmp(words[1], "FLOCK") == 0 &&
                   strcmp(words[5], place) == 0 && parse_u64(words[4], 1, INT32_MAX, &pid) == 0
               ? (int)pid
               : 0;
}

/* The process that made the lock; 0: it is not known, as one of another container. */
static int lock_owner(int lock_fd)
{
    char line[256], place[64];
    struct stat st;
    int owner = 0;
    FILE *list = fstat(lock_fd, &st) == 0 ? fopen("/proc/locks", "re") : NULL;

    if (!list)
        return 0;
    snprintf(place, sizeof place, "%02x:%02x:%ju", major(st.st_dev), minor(st.st_dev),
             (uintmax_t)st.st_ino);
    while (owner == 0 && fgets(line, sizeof line, list))
        owner = owner_in(line, place);
    fclose(list);
    return owner;
}

static int root_taken(const struct settings *s, int lock_fd, struct err *e)
{
    const int owner = lock_owner(lock_fd);
    char who[64] = "";

    if (owner > 0)
        snprintf(who, sizeof who, " (process %d)", owner);
    return err_set(e, ERR_BUSY,
                   "SANDBOX_ROOT %s: another server%s uses it; end that one, or set another path",
                   s->sandbox_root, who);
}

/* errno says why. Neither a full disk nor a file system without locks stops the start. */
static int not_locked(const struct settings *s, const char *what, struct err *e)
{
    if (errno != ENOSPC && errno != EDQUOT && errno != ENOLCK)
        return root_unusable(s, what, e);
    log_warn("SANDBOX_ROOT %s %s: %s; another server that uses it is not noticed", s->sandbox_root,
             what, strerror(errno));
    return 0;
}

static int lock_file(const struct settings *s, int fd, struct err *e)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? root_taken(s, fd, e) : not_locked(s, "cannot be locked", e);
}

int root_lock(const struct settings *s, int *lock_fd, struct err *e)
{
    AUTO_FD int root = root_open(s, e);
    if (root < 0)
        return -1;
    if (is_lock_of(*lock_fd, root))
        return lock_file(s, *lock_fd, e);
    if (mkdirat(root, STATE_DIR, 0700) < 0 && errno != EEXIST)
        return not_locked(s, "is not writable", e);
    /* Read-only: the file system may be made so while it is open. */
    AUTO_FD int fd = openat(root, LOCK_FILE, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return not_locked(s, "is not writable", e);
    if (lock_file(s, fd, e) < 0)
        return -1;
    auto_close_fd(lock_fd);
    *lock_fd = TAKE_FD(fd);
    return 0;
}

int root_folder_open(const struct settings *s, const char *name, const struct account *workers,
                     struct err *e)
{
    AUTO_FD int root = root_open(s, e);
    if (root < 0)
        return -1;
    if (mkdirat(root, name, 0700) < 0 && errno != EEXIST)
        return root_unusable(s, "is not writable", e);
    AUTO_FD int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "SANDBOX_ROOT %s: %s cannot be opened as a directory", s->sandbox_root,
                         name);
    if ((geteuid() == 0 && fchown(fd, workers->uid, workers->gid) < 0) || fchmod(fd, 0700) < 0)
        return err_errno(e, "SANDBOX_ROOT %s: %s cannot be handed to the workers' account",
                         s->sandbox_root, name);
    return TAKE_FD(fd);
}

int sessions_dir_open(const struct settings *s, const struct account *workers, struct err *e)
{
    AUTO_FD int fd = root_folder_open(s, SESSIONS_DIR, workers, e);

    if (fd >= 0 && s->edge_secret && *s->edge_secret) { /* workers cannot make it */
        AUTO_FD int notes = root_folder_open(s, SESSIONS_DIR "/" STAND_IN_DIR, workers, e);
        if (notes < 0)
            return -1;
    }
    return TAKE_FD(fd);
}

/* ---- the stop signal ---- */

static volatile sig_atomic_t requested;

static void on_stop(int sig)
{
    (void)sig;
    requested = 1;
}

/* While events keep coming epoll_pwait(2) lets no signal through. */
bool stop_requested(void)
{
    sigset_t pending;

    return requested || (sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1);
}

int stop_prepare(sigset_t *while_waiting, struct err *e)
{
    sigset_t blocked;
    struct sigaction stop = {.sa_handler = on_stop};
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    if (sigprocmask(SIG_BLOCK, &blocked, while_waiting) < 0)
        return err_errno(e, "sigprocmask");
    sigdelset(while_waiting, SIGTERM);
    sigaddset(while_waiting, SIGINT);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGUSR1, &ignore, NULL);
    return 0;
}
