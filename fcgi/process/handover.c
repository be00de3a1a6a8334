#include "config.h"

#include "fcgi/process/handover.h"

#include "common/base/auto.h"
#include "common/base/metrics.h"
#include "common/base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HANDOVER     "SANDCGI_HANDOVER"
#define HANDOVER_MAX 4096

void handover_add_old(struct handover *h, pid_t pid)
{
    if (h->n_old < OLD_MAX)
        h->old[h->n_old++] = pid;
}

static void take_fd(struct handover *h, const char *name, int fd)
{
    const struct {
        const char *name;
        int *to;
    } single[] = {{"counts", &h->metrics_fd}, {"lock", &h->lock_fd}, {"order", &h->order_fd}};

    for (size_t i = 0; i < ARRAY_LEN(single); i++)
        if (strcmp(name, single[i].name) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
            *single[i].to = fd;
    for (size_t i = 0; i < N_SOCKETS; i++) {
        if (strcmp(name, "handed") == 0 && fd == h->sockets.fds[i])
            h->sockets.handed[i] = true;
        if (strcmp(name, server_socket_names[i]) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
            h->sockets.fds[i] = fd;
    }
}

void handover_take(struct handover *h)
{
    char *save, *words = getenv(HANDOVER);
    uint64_t value;

    if (!words)
        return;
    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        if (!equals)
            continue;
        *equals = '\0';
        if (parse_u64(equals + 1, 0, UINT32_MAX, &value) < 0)
            continue;
        if (strcmp(word, "master") == 0)
            h->master = (pid_t)value;
        else if (strcmp(word, "old") == 0)
            handover_add_old(h, (pid_t)value);
        else if (strcmp(word, "asked_pid") == 0)
            h->asked_pid = (pid_t)value;
        else if (strcmp(word, "asked_uid") == 0)
            h->asked_uid = (uid_t)value;
        else if (strcmp(word, "draining") == 0)
            h->draining = value;
        else
            take_fd(h, word, (int)value);
    }
    unsetenv(HANDOVER);
}

static void give_fd(struct buf *words, const char *name, int fd, int flags)
{
    if (fd >= 0 && fcntl(fd, F_SETFD, flags) == 0)
        buf_addf(words, " %s=%d", name, fd);
}

/* flags: 0: they outlive an exec; FD_CLOEXEC: they do not. */
static void give_all(const struct handover *h, struct buf *words, int flags)
{
    buf_addf(words, "master=%d asked_pid=%d asked_uid=%u draining=%d", (int)h->master,
             (int)h->asked_pid, (unsigned)h->asked_uid, h->draining);
    for (size_t i = 0; i < h->n_old; i++)
        buf_addf(words, " old=%d", (int)h->old[i]);
    for (size_t i = 0; i < N_SOCKETS; i++) {
        give_fd(words, server_socket_names[i], h->sockets.fds[i], flags);
        if (h->sockets.handed[i])
            give_fd(words, "handed", h->sockets.fds[i], flags);
    }
    give_fd(words, "counts", metrics_fd(), flags);
    give_fd(words, "lock", h->lock_fd, flags);
    give_fd(words, "order", h->order_fd, flags);
}

int handover_exec(const struct handover *h, const char *program, const char *config_path,
                  struct err *e)
{
    AUTO_BUF struct buf words = BUF_INIT(HANDOVER_MAX), undone = BUF_INIT(HANDOVER_MAX);

    give_all(h, &words, 0);
    setenv(HANDOVER, buf_str(&words), 1);
    execl(program, program, "serve", config_path ? "--config" : (char *)NULL, config_path,
          (char *)NULL);
    const int cause = errno;
    give_all(h, &undone, FD_CLOEXEC);
    unsetenv(HANDOVER);
    return err_set(e, ERR_IO, "cannot execute %s: %s", program, strerror(cause));
}
