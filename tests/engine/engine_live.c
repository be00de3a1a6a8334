/*
 * The engine layer against a real engine (DOCKER_HOST, or the usual socket). Skipped (77) when none
 * answers or when there is no image sandcgi-runner-workbench, from which a plain "code on stdin"
 * image is made here too. Arguments: words; only cases whose name contains one of them are run.
 */
#include "config.h"

#include "tests/engine/live.h"
#include "tests/fakes/engine_run.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/engine/docker_http.h"
#include "common/sandbox/helpers.h"
#include "common/sandbox/sandbox.h"

#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

struct engine_address address;
char instance[32];
char data_path[64];
int failures;
bool podman;

static struct buf notes = BUF_INIT(65536);
static int n_passed, n_failed;

void note(const char *format, ...)
{
    AUTO_BUF struct buf text = BUF_INIT(65536);
    va_list args;

    va_start(args, format);
    buf_vaddf(&text, format, args);
    va_end(args);
    for (char *rest = text.data, *line; (line = strsep(&rest, "\n"));)
        buf_addf(&notes, "    %s\n", line);
}

bool live_take(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct live_run *l = ctx;
    size_t room = KEEP - l->text[stream].len;

    buf_add(&l->text[stream], data, len < room ? len : room);
    l->total += len;
    return !l->stop_at || l->total < l->stop_at;
}

static void live_stream(struct live_run *l, char tag, const char *text)
{
    entry_record_add(tag, 0, text, strlen(text), &l->streams);
    l->program.streams = l->streams.data;
    l->program.streams_len = l->streams.len;
}

void live_input(struct live_run *l, const char *text)
{
    live_stream(l, 'I', text);
}

/* They are needed by every container. */
static const char *helpers_path(void)
{
    static char *path;
    struct sandbox_root root;
    struct err e = ERR_INIT;
    AUTO_FREE char *place = mem_printf("%s-root", data_path);

    if (path)
        return path;
    if (sandbox_root_open(&root, place, NULL, "0123456789abcdef0123456789abcdef", "http://x", 1000,
                          1000, 0, &e) < 0 ||
        !(path = helpers_install(&root, &e))) {
        note("%s", e.text);
        exit(1);
    }
    sandbox_root_close(&root);
    return path;
}

struct live_run live(const char *what, const char *code)
{
    bool plain = strcmp(what, PLAIN) == 0;
    struct live_run l = {
        .spec = {.image = plain ? PLAIN : IMAGE,
                 .protocol = plain ? 0 : 3,
                 .data_path = data_path,
                 .helpers_path = helpers_path(),
                 .user = "1000:1000",
                 .instance = instance,
                 .deadline_unix = clock_unix_s() + 60,
                 .limits = {.cpu_milli = 1000,
                            .memory_bytes = 128u << 20,
                            .pids = 64,
                            .tmp_bytes = 16u << 20,
                            .nofile = 256,
                            .fsize_bytes = 64u << 20}},
        .program = {.timeout_ms = 20000, .run = true, .language = plain ? NULL : what},
        .streams = BUF_INIT(4u << 20),
        .cancel_fd = -1,
        .text = {BUF_INIT(KEEP), BUF_INIT(KEEP)},
    };

    live_stream(&l, 'C', code);
    return l;
}

void live_clear(struct live_run *l)
{
    buf_clear(&l->streams);
    buf_clear(&l->text[0]);
    buf_clear(&l->text[1]);
}

struct engine *connect_engine(void)
{
    struct err e = ERR_INIT;
    struct engine *engine = docker_engine_new(&address, &e);

    if (!engine) {
        printf("%s\n", e.text);
        exit(1);
    }
    return engine;
}

bool everything(void *ctx, const char *run_id, int64_t deadline)
{
    (void)ctx;
    (void)run_id;
    (void)deadline;
    return true;
}

/* Counts them. */
bool nothing(void *ctx, const char *run_id, int64_t deadline)
{
    (void)run_id;
    (void)deadline;
    ++*(size_t *)ctx;
    return false;
}

size_t left_over(const char *of)
{
    struct engine *engine = connect_engine();
    struct err e = ERR_INIT;
    size_t seen = 0;

    CHECK(engine->ops->reap(engine, of, nothing, &seen, &e) == 0);
    engine->ops->free(engine);
    return seen;
}

bool all_gone(void)
{
    for (int i = 0; i < 20; i++) {
        if (left_over(instance) == 0)
            return true;
        usleep(100 * 1000);
    }
    return false;
}

void name_run(struct live_run *l)
{
    static int number;

    snprintf(l->run_id, sizeof l->run_id, "live%d-%d", (int)getpid(), ++number);
    l->spec.run_id = l->run_id;
}

static bool leave(void *ctx)
{
    (void)ctx;
    return false;
}

void go(struct live_run *l)
{
    struct engine *engine = connect_engine();
    struct engine_attend attend = {.fd = l->cancel_fd, .tick = leave};
    struct deadline d = deadline_in_ms(60000);
    const struct engine_run program = {&l->program, live_take, l, &attend, d};
    int64_t began = clock_mono_ms();

    name_run(l);
    l->spec.env = l->program.env;
    l->spec.n_env = l->program.n_env;
    l->returned = engine->ops->start(engine, &l->spec, &attend, d, &l->e);
    if (l->returned == 0)
        l->returned = engine_run_to_end(engine, &program, &l->out, &l->e);
    l->whole_ms = clock_mono_ms() - began;
    engine->ops->finish(engine);
    engine->ops->free(engine);
    if (l->returned < 0)
        note("%s", l->e.text);
    CHECK(all_gone());
}

/* Makes the plain image by committing a container with another entry point. 77 when that cannot be.
 */
static int make_plain(struct docker_http *h)
{
    /* One label a line: Podman reads no more. */
    static const char changes[] = "ENTRYPOINT [\"/bin/bash\"]\nLABEL sandbox.runner=true\n"
                                  "LABEL sandbox.language=live-plain\nLABEL sandbox.protocol=0";
    AUTO_BUF struct buf path = BUF_INIT(4096), reply = BUF_INIT(65536);
    struct err e = ERR_INIT;
    int status = docker_http_call(h, "POST", "/containers/create?name=engine-live-base",
                                  "{\"Image\":\"" IMAGE "\"}", 30000, &reply, &e);

    if (status != 201) {
        printf("skipped engine: no %s on this engine (%s)\n", IMAGE,
               status < 0 ? e.text : "build it first");
        return 77;
    }
    buf_add_str(&path,
                "/commit?container=engine-live-base&repo=engine-live-plain&tag=test&changes=");
    docker_http_escape(&path, changes);
    status = docker_http_call(h, "POST", buf_str(&path), "{}", 60000, &reply, &e);
    docker_http_call(h, "DELETE", "/containers/engine-live-base?force=1", NULL, 10000, &reply, &e);
    if (status == 201)
        return 0;
    printf("the plain image cannot be made (%d)\n", status);
    return 1;
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strstr(name, argv[i]))
            return true;
    }
    return argc < 2;
}

static void run_wanted(const struct live_case *cases, int argc, char **argv)
{
    for (; cases->name; cases++) {
        int64_t began = clock_mono_ms();

        if (!wanted(cases->name, argc, argv))
            continue;
        buf_reset(&notes);
        failures = 0;
        cases->run();
        *(failures ? &n_failed : &n_passed) += 1;
        printf("%s %s (%.1f s)\n%s", failures ? "FAILED" : "ok", cases->name,
               (double)(clock_mono_ms() - began) / 1000, buf_str(&notes));
    }
}

/* Files in the sandbox folder belong to the sandbox user; only what we know of is removed. */
static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void remove_data(void)
{
    AUTO_FREE char *root = mem_printf("%s-root", data_path);

    nftw(data_path, remove_one, 64, FTW_PHYS | FTW_DEPTH);
    nftw(root, remove_one, 64, FTW_PHYS | FTW_DEPTH);
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    AUTO_BUF struct buf reply = BUF_INIT(65536);
    struct docker_http *h;
    int result;

    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (getenv("ENGINE_LIVE_DEBUG"))
        log_setup(LOG_LEVEL_DEBUG, "test");
    address.host = getenv("DOCKER_HOST");
    address.tls_verify = getenv("DOCKER_TLS_VERIFY") != NULL;
    address.cert_path = getenv("DOCKER_CERT_PATH");
    snprintf(instance, sizeof instance, "live%d", (int)getpid());
    snprintf(data_path, sizeof data_path, "/tmp/engine-live-XXXXXX");
    h = docker_http_new(&address, &e);
    if (!h || docker_http_ready(h, &e) < 0) {
        printf("skipped engine: %s\n", e.text);
        docker_http_free(h);
        return 77;
    }
    podman = docker_http_call(h, "GET", "/version", NULL, 10000, &reply, &e) == 200 &&
             strstr(buf_str(&reply), "Podman");
    if (!mkdtemp(data_path) || chmod(data_path, 0777) < 0)
        return 1;
    result = make_plain(h);
    if (result == 0) {
        run_wanted(run_cases, argc, argv);
        run_wanted(waiting_cases, argc, argv);
        run_wanted(psandbox_cases, argc, argv);
        docker_http_call(h, "DELETE", "/images/" PLAIN, NULL, 10000, &reply, &e);
    }
    buf_clear(&notes);
    docker_http_free(h);
    remove_data();
    printf("%d passed, %d failed, 0 skipped\n", n_passed, n_failed);
    return result ? result : n_failed > 0;
}
