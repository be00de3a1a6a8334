/* "sandcgi nodes": keeps the edge's list of nodes. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/protocol/audit.h"
#include "fcgi/commands.h"
#include "fcgi/nodes/render.h"
#include "fcgi/nodes/sources.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define EVERY_MS    2000
#define KEEP_MS     60000
#define TIME_MAX_MS (24u * 3600 * 1000)
#define FILE_MODE   0644

#define USAGE                                                                                      \
    "Usage: sandcgi nodes --from swarm|kubernetes|file --render FILE [--reload COMMAND]\n"         \
    "                     [--watch] [--every TIME] [--keep TIME] [--file F]\n"                     \
    "                     [--service NAME] [--namespace NAME] [--port PORT]\n"                     \
    "       sandcgi nodes --name MACHINE\n\n"                                                      \
    "Writes the file of nodes that the edge's nginx includes when the nodes have\n"                \
    "changed, and runs COMMAND; or prints a machine's name as a node. See sandcgi(1).\n"

struct words {
    const char *from, *render, *reload, *name, *every, *keep, *port;
    struct nodes_place place;
    bool watch, help;
};

static const struct option {
    const char *name;
    size_t text, flag; /* its place in struct words; one of them */
} options[] = {
    {"--from", offsetof(struct words, from), 0},
    {"--render", offsetof(struct words, render), 0},
    {"--reload", offsetof(struct words, reload), 0},
    {"--every", offsetof(struct words, every), 0},
    {"--keep", offsetof(struct words, keep), 0},
    {"--file", offsetof(struct words, place.file), 0},
    {"--service", offsetof(struct words, place.service), 0},
    {"--namespace", offsetof(struct words, place.name_space), 0},
    {"--port", offsetof(struct words, port), 0},
    {"--name", offsetof(struct words, name), 0},
    {"--watch", 0, offsetof(struct words, watch)},
    {"--help", 0, offsetof(struct words, help)},
};

struct keeper {
    const struct words *words;
    const struct nodes_source *source;
    uint64_t every_ms, keep_ms;
    struct nodes list; /* what the file has */
    struct err last;   /* the latest failure that was said */
    bool owes_reload;
};

/* ---- the words ---- */

static const struct option *find_option(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

static int take_words(char *const *text, struct words *out, struct err *e)
{
    for (; *text; text++) {
        const struct option *o = find_option(*text);
        if (!o)
            return err_set(e, ERR_INVALID, "unknown option '%s'; see sandcgi nodes --help", *text);
        if (o->flag)
            *(bool *)((char *)out + o->flag) = true;
        else if (!text[1])
            return err_set(e, ERR_INVALID, "%s needs a value", o->name);
        else
            *(const char **)((char *)out + o->text) = *++text;
    }
    return 0;
}

static int take_time(const char *option, const char *text, uint64_t *out, struct err *e)
{
    uint64_t value = 0;

    if (!text)
        return 0;
    if (parse_duration_ms(text, &value) < 0 || value < 1 || value > TIME_MAX_MS)
        return err_set(e, ERR_INVALID, "%s must be a time like 500ms, 2s or 5m, up to 24h", option);
    *out = value;
    return 0;
}

static int check_words(struct words *w, struct keeper *k, struct err *e)
{
    uint64_t port = 0;

    if (!w->from || !(k->source = nodes_source_find(w->from)))
        return err_set(e, ERR_INVALID, "--from must be swarm, kubernetes or file");
    if (!w->render)
        return err_set(e, ERR_INVALID, "--render is missing: the file that the edge includes");
    if (w->port && parse_u64(w->port, 1, 65535, &port) < 0)
        return err_set(e, ERR_INVALID, "--port must be 1 to 65535");
    w->place.port = (unsigned)port;
    if (take_time("--every", w->every, &k->every_ms, e) < 0 ||
        take_time("--keep", w->keep, &k->keep_ms, e) < 0)
        return -1;
    return k->source->check(&w->place, e);
}

/* ---- one look ---- */

static bool run_reload(const char *command)
{
    sigset_t none;
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The file, "" without one. */
static int read_rendered(const char *path, struct buf *out, struct err *e)
{
    struct err cause = ERR_INIT;

    if (fdio_read_file(path, out, &cause) == 0 || cause.kind == ERR_NOT_FOUND)
        return 0;
    *e = cause;
    return -1;
}

/* Of a run before this one; a file that is not ours is written anew. */
static void read_before(struct keeper *k)
{
    AUTO_BUF struct buf old = BUF_INIT(NODES_RENDER_MAX);
    struct err e = ERR_INIT;

    if (read_rendered(k->words->render, &old, &e) == 0) {
        AUTO_FREE char *text = buf_take(&old);
        if (nodes_rendered(text, clock_mono_ms(), &k->list, &e) == 0)
            return;
    }
    log_warn("%s is written anew: %s", k->words->render, e.text);
    nodes_clear(&k->list);
}

/* With --watch it is the service of an edge, which has a log. Else it is an administrator's
 * command, whose line goes to syslog. */
static void tell_change(const struct keeper *k, size_t n)
{
    const struct audit_place none = {0};
    const struct log_field fields[] = {{.name = "file", .text = k->words->render},
                                       {.name = "nodes", .number = (int64_t)n}};
    AUTO_FREE char *text = mem_printf("%s has %zu nodes now, %zu before", k->words->render, n,
                                      k->list.n);

    if (k->words->watch)
        audit_log(AUDIT_NODES, fields, ARRAY_LEN(fields), 0, 0, "%s", text);
    else
        audit_tell(&none, AUDIT_NODES, fields, ARRAY_LEN(fields), "%s", text);
}

static int write_changed(struct keeper *k, const struct nodes *list, struct err *e)
{
    AUTO_BUF struct buf old = BUF_INIT(NODES_RENDER_MAX), new = BUF_INIT(NODES_RENDER_MAX);

    nodes_render(list, &new);
    if (!buf_ok(&new))
        return err_set(e, ERR_LIMIT, "the list would be larger than %u bytes", NODES_RENDER_MAX);
    if (read_rendered(k->words->render, &old, e) < 0)
        return -1;
    if (strcmp(buf_str(&old), buf_str(&new)) == 0)
        return 0;
    if (fdio_replace_file(k->words->render, &new, FILE_MODE, e) < 0)
        return -1;
    tell_change(k, list->n);
    k->owes_reload = k->words->reload != NULL;
    return 0;
}

/* An empty list would stop nginx, and more likely the answer is wrong than that every node has
 * gone: the last one stays. */
static int look(struct keeper *k, struct err *e)
{
    AUTO_NODES struct nodes found = {0};
    AUTO_NODES struct nodes next = {0};

    if (k->source->look(&k->words->place, &found, e) < 0 ||
        (!k->source->exact &&
         nodes_follow(&k->list, &found, clock_mono_ms(), (int64_t)k->keep_ms, &next, e) < 0))
        return -1;
    struct nodes *list = k->source->exact ? &found : &next;
    if (nodes_count_homes(list) == 0)
        return err_set(e, ERR_NOT_FOUND, "there is no node that is ready");
    if (write_changed(k, list, e) < 0)
        return -1;
    nodes_clear(&k->list);
    k->list = *list;
    *list = (struct nodes){0};
    if (k->owes_reload && !run_reload(k->words->reload))
        return err_set(e, ERR_REFUSED, "\"%s\" failed; the edge has the nodes of before",
                       k->words->reload);
    k->owes_reload = false;
    return 0;
}

/* ---- watching ---- */

/* Each failure is said once, and its end. */
static void say(struct keeper *k, int rc, const struct err *e)
{
    if (rc < 0 && strcmp(e->text, k->last.text) != 0)
        log_warn("the nodes stay as they are: %s", e->text);
    else if (rc == 0 && k->last.kind != ERR_NONE)
        log_info("the nodes are known again: %zu", k->list.n);
    k->last = rc < 0 ? *e : ERR_INIT;
}

/* Until SIGTERM or SIGINT; SIGHUP: looks at once. */
static void watch(struct keeper *k)
{
    const struct timespec every = {.tv_sec = (time_t)(k->every_ms / 1000),
                                   .tv_nsec = (long)(k->every_ms % 1000) * 1000000};
    sigset_t set;
    int sig;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    do {
        struct err e = ERR_INIT;
        int rc = look(k, &e);
        say(k, rc, &e);
        sig = sigtimedwait(&set, NULL, &every);
    } while (sig < 0 || sig == SIGHUP);
}

static int print_name(const char *machine)
{
    char name[NODE_NAME_MAX + 1];
    struct err e = ERR_INIT;

    if (node_name_make(machine, name, &e) < 0) {
        fprintf(stderr, "sandcgi: --name: %s\n", e.text);
        return 2;
    }
    puts(name);
    return 0;
}

int nodes_run(char *const *text)
{
    struct words words = {0};
    struct keeper k = {.words = &words, .every_ms = EVERY_MS, .keep_ms = KEEP_MS};
    struct err e = ERR_INIT;
    int rc = take_words(text, &words, &e);

    if (rc == 0 && words.help) {
        fputs(USAGE, stdout);
        return 0;
    }
    if (rc == 0 && words.name)
        return print_name(words.name);
    if (rc < 0 || check_words(&words, &k, &e) < 0) {
        fprintf(stderr, "sandcgi: %s\n", e.text);
        return 2;
    }
    log_setup(LOG_LEVEL_INFO, "nodes");
    read_before(&k);
    if (words.watch)
        watch(&k);
    else if ((rc = look(&k, &e)) < 0)
        fprintf(stderr, "sandcgi: %s\n", e.text);
    nodes_clear(&k.list);
    return rc < 0;
}
