#include "config.h"

#include "fcgi/process/listen.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/base/sock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SYSTEMD_FIRST_FD 3

/* sd_listen_fds(3): LISTEN_PID must be ours, and we take exactly one socket. -1: none was handed
 * over. */
static int from_systemd(void)
{
    const char *pid = getenv("LISTEN_PID");
    const char *count = getenv("LISTEN_FDS");
    uint64_t n;
    if (!pid || !count || parse_u64(pid, 1, INT32_MAX, &n) < 0 || (pid_t)n != getpid())
        return -1;
    if (parse_u64(count, 1, 1, &n) < 0 || !sock_is_listening(SYSTEMD_FIRST_FD))
        return -1;
    return SYSTEMD_FIRST_FD;
}

/* spawn-fcgi's convention. The socket moves away from 0, where /dev/null belongs. */
static int from_standard_input(struct err *e)
{
    if (!sock_is_listening(STDIN_FILENO))
        return -1;
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return err_errno(e, "descriptor 0");
    close(STDIN_FILENO);
    fdio_fill_standard();
    return fd;
}

/* A socket that the web server connects to. */
static int listen_front(const struct settings *s, const char *address, const char *setting,
                        struct err *e)
{
    struct sock_owner owner = {.uid = (uid_t)-1, .mode = (mode_t)s->listen_mode};
    if (account_group(s->listen_group, &owner.gid, e) < 0)
        return -1;
    int fd = sock_listen(address, &owner, e);
    return fd < 0 ? err_wrap(e, "%s", setting) : fd;
}

int listen_fastcgi(const struct settings *s, struct err *e)
{
    AUTO_FD int fd = from_systemd();
    if (fd < 0)
        fd = from_standard_input(e);
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        if (fdio_set_nonblocking(fd, e) < 0)
            return -1;
        log_info("using the FastCGI socket that was handed over");
        return TAKE_FD(fd);
    }
    return listen_front(s, s->listen, "SANDCGI_LISTEN", e);
}

int listen_hub(const struct settings *s, struct err *e)
{
    return listen_front(s, s->hub, "SANDCGI_HUB", e);
}

int listen_broker(const struct settings *s, const struct account *workers, struct err *e)
{
    const struct sock_owner owner = {.uid = workers->uid, .gid = (gid_t)-1, .mode = 0600};
    int fd = sock_listen(s->broker, &owner, e);
    return fd < 0 ? err_wrap(e, "SANDCGI_BROKER") : fd;
}
