#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/fetch/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY      65534
#define FILE_FD     3 /* what it writes to */
#define TALK_MAX    (FETCH_URL_MAX + 64)
#define GRACE_MS    10000 /* on top of the fetch's own limit */
#define MEMORY_MAX  (512u << 20)
#define OPEN_MAX_FD 64

/* ---- inside: standard input brings "MAX_BYTES TIMEOUT_MS URL", standard output takes "KIND TEXT"
 * ---- */

static int drop_rights(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* last: another account forgets it */
}

static int bound_resources(uint64_t max_bytes)
{
    const struct {
        __rlimit_resource_t resource;
        rlim_t max;
    } limits[] = {
#ifndef WITH_SANITIZER /* which reserves terabytes of addresses */
        {RLIMIT_AS, MEMORY_MAX},
#endif
        {RLIMIT_FSIZE, max_bytes},
        {RLIMIT_NOFILE, OPEN_MAX_FD},
        {RLIMIT_CORE, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        const struct rlimit limit = {.rlim_cur = limits[i].max, .rlim_max = limits[i].max};
        if (setrlimit(limits[i].resource, &limit) < 0)
            return -1;
    }
    return 0;
}

/* The URL, in text; NULL: there was no task. */
static const char *read_task(struct buf *text, struct fetch_limits *limits, struct err *e)
{
    char *rest = NULL;
    uint64_t timeout;

    if (fdio_read_to_end(STDIN_FILENO, text, e) < 0)
        return NULL;
    char *max = text->len ? strtok_r(text->data, " ", &rest) : NULL;
    char *ms = max ? strtok_r(NULL, " ", &rest) : NULL;
    if (!ms || parse_u64(max, 0, INT64_MAX, &limits->max_bytes) < 0 ||
        parse_u64(ms, 1, INT32_MAX, &timeout) < 0) {
        err_set(e, ERR_INTERNAL, "fetch: nobody said what");
        return NULL;
    }
    limits->timeout_ms = (int64_t)timeout;
    return rest;
}

static int fetch_here(struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(TALK_MAX);
    struct fetch_limits limits = {0};

    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    const char *url = read_task(&text, &limits, e);
    if (!url)
        return -1;
    if (drop_rights() < 0 || bound_resources(limits.max_bytes) < 0)
        return err_set(e, ERR_INTERNAL, "fetch: rights cannot be given up");
    return fetch_url(url, FILE_FD, &limits, e);
}

int fetch_process_main(void)
{
    struct err e = ERR_INIT, nobody = ERR_INIT;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    int result = fetch_here(&e);
    AUTO_FREE char *line = result < 0 ? mem_printf("%s %s", err_kind_name(e.kind), e.text)
                                      : mem_strdup("ok");
    curl_global_cleanup();
    return fdio_write_all(STDOUT_FILENO, line, strlen(line), &nobody) < 0 || result < 0;
}

/* ---- outside ---- */

/* High copies first: what dup2 replaces may be one of ours. */
static void become_fetch(int talk, int file)
{
    char *argv[] = {(char *)(uintptr_t) "sandcgi", (char *)(uintptr_t) "fetch", NULL};
    char *envp[] = {NULL};
    int high_talk = fcntl(talk, F_DUPFD_CLOEXEC, FILE_FD + 1);
    int high_file = fcntl(file, F_DUPFD_CLOEXEC, FILE_FD + 1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (high_talk >= 0 && high_file >= 0 && null >= 0 && dup2(high_talk, STDIN_FILENO) >= 0 &&
        dup2(high_talk, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0 &&
        dup2(high_file, FILE_FD) >= 0 && close_range(FILE_FD + 1, ~0u, 0) == 0)
        execve("/proc/self/exe", argv, envp);
    _exit(127);
}

static pid_t start(int file, int *out_talk, struct err *e)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "socketpair");
    AUTO_FD int theirs = pair[1];
    AUTO_FD int ours = pair[0];
    pid_t pid = fork();
    if (pid == 0)
        become_fetch(theirs, file);
    if (pid < 0)
        return err_errno(e, "fork");
    *out_talk = TAKE_FD(ours);
    return pid;
}

/* Until it says something, the time is over, or whoever asked has gone. */
static int await(int fd, int asker_fd, struct deadline end, struct err *e)
{
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = asker_fd, .events = POLLRDHUP}};

    while (poll(p, ARRAY_LEN(p), deadline_poll_ms(end)) < 0)
        if (errno != EINTR)
            return err_errno(e, "waiting for the fetching process");
    if (p[0].revents)
        return 0;
    return p[1].revents ? err_set(e, ERR_CANCELLED, "whoever asked has gone")
                        : err_set(e, ERR_LIMIT, "the server of url is too slow");
}

/* Says what is to be fetched, and hears what came of it. */
static int talk(int fd, int asker_fd, const char *url, const struct fetch_limits *limits,
                struct buf *out, struct err *e)
{
    AUTO_FREE char *task = mem_printf("%" PRIu64 " %" PRId64 " %s", limits->max_bytes,
                                      limits->timeout_ms, url);

    if (fdio_write_all(fd, task, strlen(task), e) < 0)
        return -1;
    shutdown(fd, SHUT_WR);
    if (await(fd, asker_fd, deadline_in_ms(limits->timeout_ms + GRACE_MS), e) < 0)
        return -1;
    return fdio_read_to_end(fd, out, e);
}

static int understand(char *line, struct err *e)
{
    char *text = strchr(line, ' ');

    if (strcmp(line, "ok") == 0)
        return 0;
    if (!text)
        return err_set(e, ERR_INTERNAL, "the fetching process ended without a word");
    *text = '\0';
    return err_set(e, err_kind_parse(line), "%s", text + 1);
}

int fetch_in_process(const char *url, int fd, int asker_fd, const struct fetch_limits *limits,
                     struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT(1024);
    AUTO_FD int link = -1;
    pid_t pid = start(fd, &link, e);

    if (pid < 0)
        return -1;
    int result = talk(link, asker_fd, url, limits, &line, e);
    kill(pid, SIGKILL); /* it has said its word, or has none */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (result < 0)
        return -1;
    AUTO_FREE char *word = buf_take(&line);
    return understand(word, e);
}
