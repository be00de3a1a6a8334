#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/privsep.h"
#include "common/fetch/fetch.h"
#include "common/fetch/guard.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_FD     3 /* where it writes the file */
#define TALK_MAX    (FETCH_URL_MAX + 64)
#define GRACE_MS    10000 /* on top of the fetch's own limit */
#define LOOK_MS     1000  /* between calls of go_on */
#define MEMORY_MAX  (512u << 20)
#define OPEN_MAX_FD 64

/* ---- the process: reads "MAX_BYTES TIMEOUT_MS NO_REDIRECTS URL"; writes "KIND ERRNO TEXT" or "ok"
 * ---- */

int fetch_process_enter(uint64_t max_bytes, struct err *e)
{
    const struct privsep_limit limits[] = {
        {RLIMIT_AS, MEMORY_MAX},
        {RLIMIT_FSIZE, max_bytes},
        {RLIMIT_NOFILE, OPEN_MAX_FD},
    };
    const struct privsep_needs needs = {.files = privsep_network_files,
                                        .folder_fd = -1,
                                        .families = privsep_network_families,
                                        .ports = guard_ports()};

    if (privsep_drop_rights() < 0 || privsep_bound(limits, ARRAY_LEN(limits)) < 0)
        return err_set(e, ERR_INTERNAL, "rights cannot be given up");
    return privsep_confine(&needs, e);
}

/* The URL, in text; NULL: there was no task. */
static const char *read_task(struct buf *text, struct fetch_limits *limits, struct err *e)
{
    char *rest = NULL;
    uint64_t timeout, no_redirects;

    if (fdio_read_to_end(STDIN_FILENO, text, e) < 0)
        return NULL;
    char *max = text->len ? strtok_r(text->data, " ", &rest) : NULL;
    char *ms = max ? strtok_r(NULL, " ", &rest) : NULL;
    char *stay = ms ? strtok_r(NULL, " ", &rest) : NULL;
    if (!stay || parse_u64(max, 0, INT64_MAX, &limits->max_bytes) < 0 ||
        parse_u64(ms, 1, INT32_MAX, &timeout) < 0 || parse_u64(stay, 0, 1, &no_redirects) < 0) {
        err_set(e, ERR_INTERNAL, "fetch: no task given");
        return NULL;
    }
    limits->timeout_ms = (int64_t)timeout;
    limits->no_redirects = no_redirects;
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
    if (fetch_process_enter(limits.max_bytes, e) < 0)
        return err_wrap(e, "fetch");
    return fetch_url(url, FILE_FD, &limits, e);
}

int fetch_process_main(void)
{
    struct err e = ERR_INIT, unused = ERR_INIT;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    int result = fetch_here(&e);
    AUTO_FREE char *line = result < 0 ? mem_printf("%s %d %s", err_kind_name(e.kind), e.sys, e.text)
                                      : mem_strdup("ok");
    curl_global_cleanup();
    return fdio_write_all(STDOUT_FILENO, line, strlen(line), &unused) < 0 || result < 0;
}

/* ---- its parent ---- */

static pid_t process_start(int file, int *out_talk, struct err *e)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "socketpair");
    AUTO_FD int theirs = pair[1];
    AUTO_FD int ours = pair[0];
    const int fds[] = {theirs, theirs, -1, file};
    pid_t pid = privsep_start("fetch", fds, ARRAY_LEN(fds), e);
    if (pid >= 0)
        *out_talk = TAKE_FD(ours);
    return pid;
}

/* Waits for the result, the deadline, the caller's leaving, or go_on to end it. */
static int process_await(int fd, int caller_fd, const struct fetch_limits *limits, struct err *e)
{
    struct deadline end = deadline_in_ms(limits->timeout_ms + GRACE_MS);
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = caller_fd, .events = POLLRDHUP}};

    for (;;) {
        int n = poll(p, ARRAY_LEN(p), deadline_poll_ms(deadline_min(end, deadline_in_ms(LOOK_MS))));
        if (n < 0 && errno != EINTR)
            return err_errno(e, "waiting for the fetching process");
        if (n > 0)
            return p[0].revents ? 0 : err_set(e, ERR_CANCELLED, "the caller has left");
        if (deadline_passed(end))
            return err_set(e, ERR_LIMIT, "the server of url is too slow");
        if (limits->go_on && limits->go_on(limits->ctx, e) < 0)
            return -1;
    }
}

/* Sends the task and reads the result. */
static int process_talk(int fd, int caller_fd, const char *url, const struct fetch_limits *limits,
                        struct buf *out, struct err *e)
{
    AUTO_FREE char *task = mem_printf("%" PRIu64 " %" PRId64 " %d %s", limits->max_bytes,
                                      limits->timeout_ms, limits->no_redirects, url);

    if (fdio_write_all(fd, task, strlen(task), e) < 0)
        return -1;
    shutdown(fd, SHUT_WR);
    if (process_await(fd, caller_fd, limits, e) < 0)
        return -1;
    return fdio_read_to_end(fd, out, e);
}

static int result_parse(char *line, struct err *e)
{
    char *text = NULL;
    uint64_t sys;

    if (strcmp(line, "ok") == 0)
        return 0;
    const char *kind = strtok_r(line, " ", &text);
    const char *number = kind ? strtok_r(NULL, " ", &text) : NULL;
    if (!number || parse_u64(number, 0, INT_MAX, &sys) < 0)
        return err_set(e, ERR_INTERNAL, "the fetch process ended without a result");
    err_set(e, err_kind_parse(kind), "%s", text);
    e->sys = (int)sys;
    return -1;
}

int fetch_in_process(const char *url, int fd, int caller_fd, const struct fetch_limits *limits,
                     struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT(1024);
    AUTO_FD int link = -1;
    pid_t pid = process_start(fd, &link, e);

    if (pid < 0)
        return -1;
    int result = process_talk(link, caller_fd, url, limits, &line, e);
    privsep_end(pid); /* its result is here, or will not come */
    if (result < 0)
        return -1;
    AUTO_FREE char *word = buf_take(&line);
    return result_parse(word, e);
}
