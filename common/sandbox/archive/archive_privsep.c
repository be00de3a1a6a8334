#include "config.h"

#include "common/sandbox/archive/archive_privsep.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/base/privsep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#define CPU_MAX_S 120
#define MEMORY_MAX                                                                                 \
    (512u << 20) /* the strongest usual level of xz needs 65 MiB, of zstd 128 MiB                  \
                  */

int archive_privsep_start(const char *command, int in_fd, pid_t *out_pid, struct err *e)
{
    int pipe_fds[2];

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_errno(e, "a pipe for the archive's reader");
    AUTO_FD int from = pipe_fds[0];
    AUTO_FD int to = pipe_fds[1];
    const int fds[] = {in_fd, to, -1};
    *out_pid = privsep_start(command, fds, ARRAY_LEN(fds), e);
    return *out_pid < 0 ? -1 : TAKE_FD(from);
}

static const struct privsep_limit limits[] = {
    {RLIMIT_AS, MEMORY_MAX},
    {RLIMIT_FSIZE, 0},
    {RLIMIT_NOFILE, STDERR_FILENO + 2}, /* one for privsep_confine */
    {RLIMIT_CPU, CPU_MAX_S},
};

/* What reading one descriptor, writing another and libc's memory and signals need. */
static const char calls[] =
    "read write lseek _llseek pread64 fstat fstat64 newfstatat fstatat64 brk mmap mmap2 munmap "
    "mremap mprotect madvise futex futex_time64 getpid gettid getrandom clock_gettime "
    "clock_gettime64 rt_sigprocmask rt_sigreturn sigreturn sigaltstack sched_yield close exit "
    "exit_group";

/* Without root there are no rights to give up, and the filter has to do. */
int archive_privsep_enter(bool time_is_bounded)
{
    static const struct privsep_needs needs = {.folder_fd = -1, .calls = calls};
    struct err e = ERR_INIT;

    /* Where the kernel has no such namespaces the filter refuses sockets all the same. */
    if (geteuid() == 0)
        (void)unshare(CLONE_NEWNET | CLONE_NEWIPC);
    if (privsep_drop_rights() < 0 ||
        privsep_bound(limits, ARRAY_LEN(limits) - !time_is_bounded) < 0)
        return -1;
    return privsep_confine(&needs, &e);
}

/* ---- records ---- */

#define HEAD 5

int archive_record_write(int fd, enum archive_tag tag, const void *data, size_t len)
{
    unsigned char head[HEAD] = {(unsigned char)tag};
    struct err e = ERR_INIT;

    u32_put(head + 1, (uint32_t)len);
    if (fdio_write_all(fd, head, sizeof(head), &e) < 0)
        return -1;
    return len == 0 ? 0 : fdio_write_all(fd, data, len, &e);
}

static int read_full(int fd, struct deadline d, void *to, size_t len, struct err *e)
{
    for (size_t at = 0; at < len;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, deadline_poll_ms(d));
        if (ready == 0)
            return err_set(e, ERR_LIMIT, "the archive takes too long to unpack");
        ssize_t n = ready < 0 ? -1 : read(fd, (char *)to + at, len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, ERR_PROTOCOL, "the archive's reader ended early");
        at += (size_t)n;
    }
    return 0;
}

static bool len_ok(unsigned char tag, size_t len)
{
    switch (tag) {
    case ARCHIVE_FOLDER:
    case ARCHIVE_FILE:
    case ARCHIVE_ATTRIBUTES:
    case ARCHIVE_BYTES:
    case ARCHIVE_REFUSED:
    case ARCHIVE_LEFT_OUT:
        return len > 0 && len <= ARCHIVE_RECORD_MAX;
    case ARCHIVE_END:
    case ARCHIVE_REPAIRED:
        return len == 0;
    default:
        return false;
    }
}

int archive_record_read(int fd, struct deadline d, struct archive_record *out, struct err *e)
{
    unsigned char head[HEAD];

    if (read_full(fd, d, head, sizeof(head), e) < 0)
        return -1;
    size_t len = u32_get(head + 1);
    if (!len_ok(head[0], len))
        return err_set(e, ERR_PROTOCOL, "the archive's reader says something meaningless");
    if (read_full(fd, d, out->data, len, e) < 0)
        return -1;
    out->tag = (enum archive_tag)head[0];
    out->len = len;
    out->data[len] = '\0';
    return 0;
}
