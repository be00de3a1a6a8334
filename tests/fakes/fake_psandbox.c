#include "config.h"

#include "tests/fakes/fake_psandbox.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/engine/engine.h"
#include "common/rpc/json.h"
#include "common/sandbox/snapshot.h"
#include "tests/fakes/fake_container.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define COMMANDS_MAX 16
#define WORDS_MAX    64

struct fake_psandbox *fake_psandbox;
static int removed_fd = -1;

static struct engine *engine_new(void);

void fake_psandbox_reset(void)
{
    if (!fake_psandbox)
        fake_psandbox = mmap(NULL, sizeof *fake_psandbox, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *fake_psandbox = (struct fake_psandbox){0};
    auto_close_fd(&removed_fd);
    removed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fake_container_new = engine_new;
}

void fake_psandbox_remove(void)
{
    const uint64_t one = 1;

    if (write(removed_fd, &one, sizeof one) < 0)
        abort();
}

int __real_snapshot_take(const struct sandbox *sb, struct snapshot *out, struct err *e);
int __wrap_snapshot_take(const struct sandbox *sb, struct snapshot *out, struct err *e);

int __wrap_snapshot_take(const struct sandbox *sb, struct snapshot *out, struct err *e)
{
    if (fake_psandbox && fake_psandbox->listing_ms > 0)
        __atomic_add_fetch(&fake_psandbox->listings, 1, __ATOMIC_SEQ_CST);
    for (int ms = 0; fake_psandbox && ms < fake_psandbox->listing_ms;
         ms += 10) /* the test may shorten it */
        poll(NULL, 0, 10);
    return __real_snapshot_take(sb, out, e);
}

/* What the container has written and the test's process has not read. */
struct word {
    enum engine_event_kind kind;
    uint32_t id;
    struct buf data;
    struct engine_outcome outcome;
};

struct command {
    uint32_t id; /* 0: none */
    pid_t pid;   /* 0: the interpreter */
    int fds[2];  /* of its output; -1: has ended */
    int pid_fd;  /* readable when it has ended */
    struct deadline end;
};

struct fake {
    struct engine engine;
    bool started;
    int epoll_fd, word_fd; /* readable when there are words */
    char *data_path;
    uint32_t last_id;
    struct command commands[COMMANDS_MAX];
    struct word words[WORDS_MAX];
    size_t n_words;
    struct buf given; /* what the last event points to */
};

static void say(struct fake *b, enum engine_event_kind kind, uint32_t id, const char *data,
                size_t len, const struct engine_outcome *o)
{
    static const uint64_t one = 1;

    if (b->n_words == WORDS_MAX)
        abort();
    struct word *w = &b->words[b->n_words++];
    *w = (struct word){.kind = kind, .id = id, .data = BUF_INIT(1 << 20)};
    buf_add(&w->data, data, len);
    if (o)
        w->outcome = *o;
    if (write(b->word_fd, &one, sizeof one) < 0)
        abort();
}

/* ---- the container ---- */

static void end_command(struct command *c)
{
    if (c->pid > 0) {
        kill(-c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    auto_close_fd(&c->fds[0]);
    auto_close_fd(&c->fds[1]);
    auto_close_fd(&c->pid_fd);
    c->id = 0;
}

static uint64_t container_cpu_us(struct engine *engine)
{
    (void)engine;
    return 0;
}

static void container_finish(struct engine *engine)
{
    struct fake *b = (struct fake *)engine;

    if (!b->started)
        return;
    b->started = false;
    fake_psandbox->alive--;
    for (size_t i = 0; i < COMMANDS_MAX; i++)
        if (b->commands[i].id)
            end_command(&b->commands[i]);
}

static int container_start(struct engine *engine, const struct engine_spec *spec,
                           const struct engine_attend *attend, struct deadline d, struct err *e)
{
    struct fake *b = (struct fake *)engine;
    struct deadline up = deadline_in_ms(fake_psandbox->start_ms);
    struct epoll_event event = {.events = EPOLLIN};

    (void)d;
    fake_psandbox->starts++;
    while (!deadline_passed(up)) {
        struct pollfd p = {.fd = attend->fd, .events = POLLIN};
        poll(&p, 1, deadline_poll_ms(up));
        if (p.revents && !attend->tick(attend->ctx))
            return err_set(e, ERR_CANCELLED, "the caller went away");
    }
    if (fake_psandbox->failing)
        return err_set(e, ERR_NOT_FOUND, "the image %s is missing on the server", spec->image_name);
    b->started = true;
    b->data_path = mem_strdup(spec->data_path);
    epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, removed_fd, &event);
    fake_psandbox->alive++;
    fake_psandbox->network = spec->network != NETWORK_NONE;
    snprintf(fake_psandbox->image, sizeof fake_psandbox->image, "%s", spec->image);
    say(b, ENGINE_EVENT_TIER, 0, "", 0, NULL);
    return 0;
}

static int container_fd(struct engine *engine)
{
    return ((struct fake *)engine)->epoll_fd;
}

static short container_waits(struct engine *engine)
{
    (void)engine;
    return POLLIN;
}

static int container_pause(struct engine *engine, bool pause, struct err *e)
{
    (void)engine;
    if (fake_psandbox->no_pause)
        return err_set(e, ERR_REFUSED, "this engine cannot pause");
    fake_psandbox->paused = pause;
    fake_psandbox->pauses += pause;
    return 0;
}

/* ---- commands ---- */

static struct command *find(struct fake *b, uint32_t id)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++)
        if (b->commands[i].id == id)
            return &b->commands[i];
    return NULL;
}

static void be_command(const struct fake *b, const struct engine_command *command, int pipes[2][2])
{
    char *argv[8] = {NULL};

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(pipes[0][1], STDOUT_FILENO);
    dup2(pipes[1][1], STDERR_FILENO);
    close_range(3, ~0u, 0);
    for (size_t i = 0; i < command->n_argv && i < ARRAY_LEN(argv) - 1; i++)
        argv[i] = mem_strdup(command->argv[i]);
    for (size_t i = 0; i < command->n_env; i++)
        putenv(mem_strdup(command->env[i]));
    const char *cwd = command->cwd && strcmp(command->cwd, "/data") != 0 ? command->cwd
                                                                         : b->data_path;
    if (chdir(cwd) == 0)
        execvp(argv[0], argv);
    _exit(127);
}

static void watch(struct fake *b, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    fcntl(fd, F_SETFL, O_NONBLOCK);
    epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int container_exec(struct engine *engine, const struct engine_command *command,
                          uint32_t *out_id, struct err *e)
{
    struct fake *b = (struct fake *)engine;
    struct command *c = find(b, 0);
    int pipes[2][2];

    if (!b->started || !c)
        return err_set(e, ERR_LOST, "there is no container");
    fake_psandbox->commands++;
    *c = (struct command){.id = ++b->last_id, .fds = {-1, -1}, .pid_fd = -1, .end = DEADLINE_NEVER};
    *out_id = c->id;
    if (command->control)
        return 0;
    if (command->timeout_ms)
        c->end = deadline_in_ms((int64_t)command->timeout_ms);
    if (pipe2(pipes[0], O_CLOEXEC) < 0 || pipe2(pipes[1], O_CLOEXEC) < 0)
        return err_errno(e, "pipe");
    c->pid = fork();
    if (c->pid == 0)
        be_command(b, command, pipes);
    setpgid(c->pid, c->pid);
    for (int i = 0; i < 2; i++) {
        close(pipes[i][1]);
        c->fds[i] = pipes[i][0];
        watch(b, c->fds[i]);
    }
    c->pid_fd = pidfd_open(c->pid, 0);
    watch(b, c->pid_fd);
    return 0;
}

static int container_kill(struct engine *engine, uint32_t id, struct err *e)
{
    struct fake *b = (struct fake *)engine;
    const struct engine_outcome killed = {.exit_code = -1, .signal = SIGKILL};
    struct command *c = find(b, id);

    (void)e;
    if (!c)
        return 0;
    if (c->pid == 0) {
        c->id = 0;
        say(b, ENGINE_EVENT_ENDED, id, "", 0, &killed);
        return 0;
    }
    kill(-c->pid, SIGKILL);
    return 0;
}

/* Takes in what a command printed; true when its streams have ended. */
static bool read_streams(struct fake *b, struct command *c, bool over)
{
    static const enum engine_event_kind kinds[] = {ENGINE_EVENT_OUT, ENGINE_EVENT_ERR};
    char block[65536];

    for (int i = 0; i < 2; i++) {
        ssize_t n = c->fds[i] < 0 ? 0 : read(c->fds[i], block, sizeof block);
        if (n > 0)
            say(b, kinds[i], c->id, block, (size_t)n, NULL);
        else if (n == 0 || over)
            auto_close_fd(&c->fds[i]);
    }
    return c->fds[0] < 0 && c->fds[1] < 0;
}

static void look_at(struct fake *b, struct command *c)
{
    int status;
    bool timed_out = deadline_passed(c->end);
    if (timed_out)
        kill(-c->pid, SIGKILL);
    pid_t ended = waitpid(c->pid, &status, timed_out ? 0 : WNOHANG);
    while (!read_streams(b, c, ended > 0) && ended > 0)
        ;
    if (ended <= 0)
        return;
    const struct engine_outcome o = {
        .end = timed_out ? ENGINE_TIMED_OUT : ENGINE_EXITED,
        .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
    };
    say(b, ENGINE_EVENT_ENDED, c->id, "", 0, &o);
    auto_close_fd(&c->pid_fd);
    c->id = 0;
}

/* ---- the interpreter ---- */

static void answer_cell(struct fake *b, uint32_t id, int exit_code)
{
    AUTO_FREE char *text = mem_printf("{\"done\":true,\"exitCode\":%d}", exit_code);
    AUTO_BUF struct buf record = BUF_INIT(256);
    char head[4] = {0, 0, 0, (char)strlen(text)};

    buf_add(&record, head, sizeof head);
    buf_add_str(&record, text);
    /* In two pieces, as it may come. */
    say(b, ENGINE_EVENT_CONTROL, id, record.data, 3, NULL);
    say(b, ENGINE_EVENT_CONTROL, id, record.data + 3, record.len - 3, NULL);
}

static int container_control(struct engine *engine, uint32_t id, const char *data, size_t len,
                             struct err *e)
{
    struct fake *b = (struct fake *)engine;
    const struct engine_outcome died = {.exit_code = 1};
    json_auto_t *cell = json_parse(data + 4, len - 4, 4, e);
    const char *code = json_get_string(cell, "code");

    if (strncmp(code, "print ", 6) == 0) {
        AUTO_FREE char *line = mem_printf("%s\n", code + 6);
        say(b, ENGINE_EVENT_OUT, id, line, strlen(line), NULL);
        answer_cell(b, id, 0);
    } else if (strcmp(code, "input") == 0) {
        const char *input = json_get_string(cell, "input");
        say(b, ENGINE_EVENT_OUT, id, input, strlen(input), NULL);
        answer_cell(b, id, 0);
    } else if (strncmp(code, "exit ", 5) == 0) {
        answer_cell(b, id, code[5] - '0');
    } else if (strncmp(code, "babble", 6) == 0) {
        char nonsense[5000];
        if (code[6]) /* "babble on": when the cell has ended */
            answer_cell(b, id, 0);
        memset(nonsense, 0xff, sizeof nonsense);
        say(b, ENGINE_EVENT_CONTROL, id, nonsense, sizeof nonsense, NULL);
    } else if (strcmp(code, "fade") == 0) {
        answer_cell(b, id, 0);
        find(b, id)->id = 0;
        say(b, ENGINE_EVENT_ENDED, id, "", 0, &died);
    } else if (strcmp(code, "die") == 0) {
        find(b, id)->id = 0;
        say(b, ENGINE_EVENT_ENDED, id, "", 0, &died);
    }
    return 0;
}

/* ---- what is read ---- */

static int container_read(struct engine *engine, struct engine_event *out, struct err *e)
{
    struct fake *b = (struct fake *)engine;
    uint64_t n;

    *out = (struct engine_event){.kind = ENGINE_EVENT_NOTHING};
    if (read(removed_fd, &n, sizeof n) > 0)
        return err_set(e, ERR_LOST, "the container was ended from outside");
    for (size_t i = 0; b->n_words == 0 && i < COMMANDS_MAX; i++)
        if (b->commands[i].id && b->commands[i].pid > 0)
            look_at(b, &b->commands[i]);
    if (b->n_words == 0) {
        if (read(b->word_fd, &n, sizeof n) < 0 && errno != EAGAIN)
            abort();
        return 0;
    }
    buf_clear(&b->given);
    b->given = b->words[0].data;
    *out = (struct engine_event){.kind = b->words[0].kind,
                                 .id = b->words[0].id,
                                 .data = buf_str(&b->given),
                                 .len = b->given.len,
                                 .outcome = b->words[0].outcome};
    b->n_words--;
    memmove(b->words, b->words + 1, b->n_words * sizeof *b->words);
    return 0;
}

static void container_free(struct engine *engine)
{
    struct fake *b = (struct fake *)engine;

    container_finish(engine);
    for (size_t i = 0; i < b->n_words; i++)
        buf_clear(&b->words[i].data);
    buf_clear(&b->given);
    auto_close_fd(&b->epoll_fd);
    auto_close_fd(&b->word_fd);
    free(b->data_path);
    free(b);
}

static const struct engine_ops container_ops = {
    .start = container_start,
    .fd = container_fd,
    .cpu_us = container_cpu_us,
    .finish = container_finish,
    .exec = container_exec,
    .read = container_read,
    .control = container_control,
    .kill = container_kill,
    .waits = container_waits,
    .pause = container_pause,
    .free = container_free,
};

static struct engine *engine_new(void)
{
    struct fake *b = mem_alloc(sizeof *b);
    struct epoll_event event = {.events = EPOLLIN};

    *b = (struct fake){.engine.ops = &container_ops,
                       .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                       .word_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                       .given = BUF_INIT(1 << 20)};
    epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, b->word_fd, &event);
    return &b->engine;
}
