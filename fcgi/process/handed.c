#include "config.h"

#include "fcgi/process/handed.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/base/sock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEMD_FIRST_FD 3
#define SYSTEMD_FDS_MAX  16

/* sd_listen_fds(3): LISTEN_PID must be ours. */
static int count_of_systemd(void)
{
    const char *pid = getenv("LISTEN_PID");
    const char *count = getenv("LISTEN_FDS");
    uint64_t n;

    if (!pid || !count || parse_u64(pid, 1, INT32_MAX, &n) < 0 || (pid_t)n != getpid() ||
        parse_u64(count, 1, SYSTEMD_FDS_MAX, &n) < 0)
        return 0;
    return (int)n;
}

/* The position of name in LISTEN_FDNAMES, "fastcgi:hub"; -1: it is not there. */
static int position_of(const char *name)
{
    const char *rest = getenv("LISTEN_FDNAMES");
    size_t len = strlen(name);

    for (int i = 0; rest && i < SYSTEMD_FDS_MAX; i++) {
        size_t n = strcspn(rest, ":");
        if (n == len && memcmp(rest, name, len) == 0)
            return i;
        rest = rest[n] ? rest + n + 1 : NULL;
    }
    return -1;
}

static int from_systemd(const char *name, struct err *e)
{
    int n = count_of_systemd(), i = position_of(name);
    bool front = strcmp(name, HANDED_FASTCGI) == 0;

    if (n == 0)
        return -1;
    if (i < 0 && front && n == 1 && position_of(HANDED_HUB) < 0)
        i = 0; /* a name is not needed */
    if (i < 0 && front && n > 1)
        return err_set(e, ERR_INVALID,
                       "none of the %d sockets that were handed over is named " HANDED_FASTCGI
                       " (FileDescriptorName= of systemd)",
                       n);
    if (i < 0)
        return -1;
    if (i >= n || !sock_is_listening(SYSTEMD_FIRST_FD + i))
        return err_set(e, ERR_INVALID,
                       "descriptor %d, handed over as the socket %s, is no listening socket",
                       SYSTEMD_FIRST_FD + i, name);
    return SYSTEMD_FIRST_FD + i;
}

/* spawn-fcgi's convention. The socket moves away from 0, where /dev/null belongs. */
static int from_standard_input(struct err *e)
{
    if (!sock_is_listening(STDIN_FILENO))
        return -1;
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, SYSTEMD_FIRST_FD);
    if (fd < 0)
        return err_errno(e, "descriptor 0");
    close(STDIN_FILENO);
    fdio_fill_standard();
    return fd;
}

int handed_socket(const char *name, struct err *e)
{
    AUTO_FD int fd = from_systemd(name, e);

    if (fd < 0 && e->kind == ERR_NONE && strcmp(name, HANDED_FASTCGI) == 0)
        fd = from_standard_input(e);
    if (fd < 0)
        return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (fdio_set_nonblocking(fd, e) < 0)
        return -1;
    log_info("using the socket %s that was handed over", name);
    return TAKE_FD(fd);
}
