#include "config.h"

#include "common/supervisor/side_process.h"

#include "common/base/auto.h"
#include "common/base/privsep.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t side_process_fork(struct side_process *p, struct loop *loop, loop_handler *on_ready,
                        void *item, int *out_fd, struct err *e)
{
    pid_t parent = getpid();
    int pair[2];

    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_errno(e, "pipe2");
    AUTO_FD int ours = pair[0];
    AUTO_FD int theirs = pair[1];
    if (loop_add(loop, &p->watch, ours, EPOLLIN, on_ready, item, e) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        privsep_die_with(parent);
        *out_fd = TAKE_FD(theirs);
        return 0;
    }
    if (pid < 0) {
        err_errno(e, "fork");
        loop_remove(loop, &p->watch);
        return -1;
    }
    p->pid = pid;
    p->loop = loop;
    p->fd = TAKE_FD(ours);
    return pid;
}

void side_process_end(struct side_process *p)
{
    if (p->pid <= 0)
        return;
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    p->pid = 0;
    loop_remove(p->loop, &p->watch);
    auto_close_fd(&p->fd);
}
