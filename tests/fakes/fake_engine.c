#include "config.h"

#include "tests/fakes/fake_engine.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOG_MAX   16384
#define INPUT_MAX 65536
#define HEAD_MAX  16384
#define NAME      "sandcgi-"
#define NAME_LEN  (sizeof NAME - 1 + 16) /* and hex digits */
#define NAME_HERE NAME "r1"

/* Written by the serving processes, read by the test. */
struct shared {
    size_t log_len, input_len;
    int input_end;
    char name[NAME_LEN + 1]; /* of the first container */
    char log[LOG_MAX];
    char input[INPUT_MAX];
};

struct fake_engine {
    struct shared *shared;
    pid_t pid;
    char folder[64];
    char path[96];
    char host[128];
};

static void sleep_ms(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

static void write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

/* Content-Length of a request's head, 0 when there is none. */
static size_t body_len(const char *head, const char *end)
{
    const char *at = strcasestr(head, "content-length:");
    size_t len = 0;

    if (!at || at > end)
        return 0;
    for (at += 15; *at == ' '; at++)
        ;
    for (; *at >= '0' && *at <= '9'; at++)
        len = len * 10 + (size_t)(*at - '0');
    return len;
}

/* Reads one request with its body; 0 at the end of the connection. */
static size_t read_request(int fd, char *head, size_t cap)
{
    size_t len = 0, have, body;
    const char *end = NULL;

    while (!end) {
        ssize_t n = len < cap - 1 ? recv(fd, head + len, cap - 1 - len, 0) : 0;

        if (n <= 0)
            return 0;
        len += (size_t)n;
        head[len] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    body = body_len(head, end);
    have = len - (size_t)(end + 4 - head);
    while (have < body) {
        char waste[4096];
        ssize_t n = recv(fd, waste, sizeof waste, 0);

        if (n <= 0)
            return 0;
        have += (size_t)n;
    }
    return len;
}

static void log_request(struct shared *s, const char *head)
{
    const char *end = strstr(head, " HTTP/1.");
    size_t len = end ? (size_t)(end - head) : 0;

    if (s->log_len + len + 2 < LOG_MAX) {
        memcpy(s->log + s->log_len, head, len);
        s->log[s->log_len + len] = '\n';
        s->log_len += len + 1;
    }
}

static void send_chopped(int fd, const char *data, size_t len, size_t chop)
{
    size_t step = chop ? chop : len;

    for (size_t at = 0; at < len; at += step)
        write_all(fd, data + at, len - at < step ? len - at : step);
}

/* Takes input until it ends or hold_ms have passed without any. */
static void take_input(struct shared *s, int fd, const struct fake_reply *r)
{
    static const struct fake_later none[1];
    const struct fake_later *later = r->later ? r->later : none;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t got = 0;

    while (poll(&p, 1, r->hold_ms) > 0) {
        size_t room = INPUT_MAX - s->input_len;
        ssize_t n = recv(fd, s->input + s->input_len, room, 0);

        if (n <= 0) {
            s->input_end = 1;
            return;
        }
        s->input_len += (size_t)n;
        got += (size_t)n;
        for (; later->after && got >= later->after; later++)
            send_chopped(fd, later->bytes, later->len, r->chop);
    }
}

static void be_deaf(int fd, int ms)
{
    shutdown(fd, SHUT_RD);
    sleep_ms(ms);
}

/* How many requests so far a row would have answered. */
static int matched(const struct shared *s, const char *match)
{
    int n = 0;

    for (const char *at = s->log; *at; at = strchr(at, '\n') + 1)
        n += strncmp(at, match, strlen(match)) == 0;
    return n;
}

static const struct fake_reply *find(const struct shared *s, const struct fake_reply *table,
                                     const char *head)
{
    for (; table->match; table++) {
        if (strncmp(head, table->match, strlen(table->match)) == 0 &&
            (table->times == 0 || matched(s, table->match) < table->times))
            return table;
    }
    return NULL;
}

/* The first container's name is random: it becomes NAME_HERE, which tables and tests know. */
static void name_container(struct shared *s, char *head)
{
    char *at = strstr(head, NAME);

    if (!at || strspn(at + strlen(NAME), "0123456789abcdef") != NAME_LEN - strlen(NAME))
        return;
    if (!*s->name)
        snprintf(s->name, sizeof s->name, "%s", at);
    if (strncmp(at, s->name, NAME_LEN) != 0)
        return;
    memcpy(at, NAME_HERE, strlen(NAME_HERE));
    memmove(at + strlen(NAME_HERE), at + NAME_LEN, strlen(at + NAME_LEN) + 1);
}

static void serve(struct shared *s, int fd, const struct fake_reply *table)
{
    static const struct fake_reply nothing = {.status = 404,
                                              .body = "{\"message\":\"page not found\"}"};
    static char head[HEAD_MAX];

    while (read_request(fd, head, sizeof head) > 0) {
        AUTO_FREE char *answer = NULL;
        const struct fake_reply *r;
        const char *body;

        name_container(s, head);
        r = find(s, table, head);
        log_request(s, head);
        if (!r)
            r = &nothing;
        body = r->body ? r->body : "";
        sleep_ms(r->delay_ms);
        if (r->status == 101) {
            /* One portion, so that early output arrives together with the head. */
            answer = mem_printf("HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\n");
            write_all(fd, answer, strlen(answer));
            send_chopped(fd, r->stream, r->stream_len, r->chop);
            if (r->deaf)
                be_deaf(fd, r->hold_ms);
            else
                take_input(s, fd, r);
            return;
        }
        answer = mem_printf("HTTP/1.1 %d X\r\nApi-Version: %s\r\nServer: %s\r\n"
                            "Content-Length: %zu\r\n\r\n%s",
                            r->status, r->version ? r->version : "1.41",
                            r->server ? r->server : "Docker", r->status == 204 ? 0 : strlen(body),
                            r->status == 204 ? "" : body);
        write_all(fd, answer, strlen(answer));
    }
}

static void accept_for_ever(struct fake_engine *f, int listener, const struct fake_reply *table)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
            continue;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve(f->shared, fd, table);
            _exit(0);
        }
        close(fd);
    }
}

struct fake_engine *fake_engine_start(const struct fake_reply *table)
{
    struct fake_engine *f = mem_alloc(sizeof *f);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    f->shared = mmap(NULL, sizeof *f->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0);
    snprintf(f->folder, sizeof f->folder, "/tmp/fake-engine-XXXXXX");
    if (fd < 0 || f->shared == MAP_FAILED || !mkdtemp(f->folder))
        abort();
    snprintf(f->path, sizeof f->path, "%s/socket", f->folder);
    snprintf(f->host, sizeof f->host, "unix://%s", f->path);
    memcpy(a.sun_path, f->path, strlen(f->path) + 1);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 16) < 0)
        abort();
    fflush(NULL);
    f->pid = fork();
    if (f->pid == 0)
        accept_for_ever(f, fd, table);
    close(fd);
    return f;
}

void fake_engine_stop(struct fake_engine *f)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    unlink(f->path);
    rmdir(f->folder);
    munmap(f->shared, sizeof *f->shared);
    free(f);
}

struct engine *fake_engine_connect(const struct fake_engine *f)
{
    const struct engine_address address = {.host = fake_engine_host(f), .cert_path = ""};
    struct err e = ERR_INIT;

    return docker_engine_new(&address, &e);
}

const char *fake_engine_host(const struct fake_engine *f)
{
    return f->host;
}

const char *fake_engine_log(const struct fake_engine *f)
{
    return f->shared->log;
}

size_t fake_engine_input(const struct fake_engine *f, const char **out, int *out_end)
{
    *out = f->shared->input;
    *out_end = f->shared->input_end;
    return f->shared->input_len;
}
