#include "config.h"

#include "fcgi/hub/hub_stream.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/share.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/session/session.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNNING_MAX 8
#define JOBS_MAX    256
#define JOB_MS      10000        /* a look-up ends by itself after a second, a sweep is short */
#define STATE_MAX   (64u * 1024) /* of a task; a stream's queue takes no more either */
#define READ_CHUNK  16384

struct hub_job {
    struct hub_job *next;
    struct hub_jobs *jobs;
    const struct mcp_server *server;
    unsigned features;   /* of the streams that it is for */
    char *tenant, *task; /* NULL: a sweep */
    pid_t pid;           /* 0: queued */
    int fd;              /* the pipe; -1: queued */
    struct loop_watch watch;
    struct buf out;
    struct deadline give_up;
};

static void job_main(const struct hub_job *job, int fd, pid_t parent)
{
    AUTO_BUF struct buf text = BUF_INIT(STATE_MAX);
    struct err e = ERR_INIT;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    if (job->task) {
        json_auto_t *state = mcp_listen_task_state(job->server, job->features, job->tenant,
                                                   job->task);
        if (state && json_write(state, &text) == 0)
            (void)fdio_write_all(fd, text.data, text.len, &e);
    } else {
        mcp_sessions_sweep(job->server);
    }
    _exit(0);
}

/* Takes the job out of the list and ends its child. */
static void job_remove(struct hub_job *job)
{
    struct hub_jobs *j = job->jobs;
    struct hub_job **at = &j->first;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    j->n--;
    if (job->pid > 0) {
        loop_remove(j->loop, &job->watch);
        kill(job->pid, SIGKILL); /* it has closed its pipe, so it is over, or its time is */
        waitpid(job->pid, NULL, 0);
        j->n_running--;
    }
    auto_close_fd(&job->fd);
    buf_clear(&job->out);
    free(job->tenant);
    free(job->task);
    free(job);
}

static void jobs_start(struct hub_jobs *j);

static void on_output(void *owner, void *item, uint32_t events)
{
    struct hub_job *job = item;
    struct hub_jobs *j = job->jobs;
    struct err e = ERR_INIT;

    (void)events;
    char *room = buf_reserve(&job->out, READ_CHUNK);
    ssize_t n = room ? read(job->fd, room, READ_CHUNK) : 0;
    if (n > 0)
        buf_grew(&job->out, (size_t)n);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    json_auto_t *state = job->out.len > 0
                             ? json_parse(job->out.data, job->out.len, JSON_MAX_DEPTH, &e)
                             : NULL;
    if (state)
        j->on_task(owner, &(struct hub_task){job->server, job->features, job->tenant, job->task},
                   state);
    else if (job->task)
        log_debug("the state of a task is not known: no notification");
    job_remove(job);
    jobs_start(j);
}

static int job_start(struct hub_job *job, struct err *e)
{
    int ends[2];
    pid_t parent = getpid();

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_errno(e, "pipe");
    AUTO_FD int write_end = ends[1];
    job->fd = ends[0];
    fcntl(write_end, F_SETFL, 0); /* blocking for the child */
    if (loop_add(job->jobs->loop, &job->watch, job->fd, EPOLLIN, on_output, job, e) < 0)
        return -1;
    job->pid = fork();
    if (job->pid == 0)
        job_main(job, write_end, parent);
    if (job->pid < 0) {
        job->pid = 0;
        loop_remove(job->jobs->loop, &job->watch);
        return err_errno(e, "fork");
    }
    job->give_up = deadline_in_ms(JOB_MS);
    job->jobs->n_running++;
    return 0;
}

static void jobs_start(struct hub_jobs *j)
{
    for (struct hub_job *job = j->first, *next; job && j->n_running < RUNNING_MAX; job = next) {
        struct err e = ERR_INIT;
        next = job->next;
        if (job->pid > 0 || job_start(job, &e) == 0)
            continue;
        log_error("cannot start a child of the hub: %s", e.text);
        job_remove(job);
    }
}

static bool is_queued(const struct hub_job *job, const struct hub_task *what)
{
    return job->pid == 0 && job->task && job->features == what->features &&
           strcmp(job->tenant, what->tenant) == 0 && strcmp(job->task, what->task) == 0;
}

void hub_jobs_add(struct hub_jobs *j, const struct hub_task *what)
{
    struct hub_job **at = &j->first;
    size_t own = 0;

    for (; *at; at = &(*at)->next) { /* queued already, or a sweep that runs */
        if (what->task ? is_queued(*at, what) : !(*at)->task)
            return;
        own += what->task && (*at)->task && strcmp((*at)->tenant, what->tenant) == 0;
    }
    if (!share_allows(own, j->n, JOBS_MAX)) {
        log_warn(
            "%zu tasks are being looked up, %zu of them for one tenant: a notification is lost",
            j->n, own);
        return;
    }
    *at = mem_alloc(sizeof **at);
    **at = (struct hub_job){.jobs = j,
                            .server = what->server,
                            .features = what->features,
                            .tenant = what->tenant ? mem_strdup(what->tenant) : NULL,
                            .task = what->task ? mem_strdup(what->task) : NULL,
                            .fd = -1,
                            .watch = LOOP_WATCH_INIT,
                            .out = BUF_INIT(STATE_MAX + READ_CHUNK)};
    j->n++;
    jobs_start(j);
}

void hub_jobs_tick(struct hub_jobs *j)
{
    for (struct hub_job *job = j->first, *next; job; job = next) {
        next = job->next;
        if (job->pid == 0 || !deadline_passed(job->give_up))
            continue;
        log_warn("a child of the hub did not end within %d ms", JOB_MS);
        job_remove(job);
    }
    jobs_start(j);
}

void hub_jobs_clear(struct hub_jobs *j)
{
    while (j->first)
        job_remove(j->first);
}
