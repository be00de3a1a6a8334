/*
 * The main of a folder's test program. Each group of tests (a source file) runs in a process of its
 * own, several at a time. Arguments: words; the tests whose line in --list has all of them are run.
 * With SANDCGI_TEST_UNSTEADY in the environment, a group that fails has a second attempt; if that
 * passes, what failed is unsteady: a defect to find, and no reason to stop.
 */
#include "config.h"

#include "tests/unit/group.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED       77 /* exit status */
#define GROUP_SECONDS 600
#define NAME_MAX_LEN  512

enum state { NOT_CHOSEN, CHOSEN, RUNNING, PASSED, FAILED };

/* Of one test, in memory that the group's process shares. */
struct unit_outcome {
    enum state state;
    double seconds;
    off_t from, to; /* what it printed, in its group's output */
};

static struct unit_group *groups;
static struct unit_command *commands;
static int n_passed, n_failed, n_skipped;

/* In the order of their names. */
void unit_add_group(struct unit_group *g)
{
    struct unit_group **at = &groups;

    while (*at && strcmp((*at)->name, g->name) < 0)
        at = &(*at)->next;
    g->next = *at;
    *at = g;
}

void unit_add_command(struct unit_command *c)
{
    c->next = commands;
    commands = c;
}

__attribute__((noreturn)) static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- names ---- */

/* "base/test_buf" of ../tests/unit/base/test_buf.c. */
static void group_name(const struct unit_group *g, char *out)
{
    size_t len = strcspn(strrchr(g->name, '/') + 1, "."), at = strlen(g->name);

    for (int slashes = 0; at > 0 && slashes < 2; at--)
        slashes += g->name[at - 1] == '/';
    at += at > 0;
    len += (size_t)(strrchr(g->name, '/') + 1 - g->name) - at;
    snprintf(out, NAME_MAX_LEN, "%.*s", (int)len, g->name + at);
}

static void full_name(const struct unit_group *g, size_t i, char *out)
{
    group_name(g, out);
    size_t len = strlen(out);
    snprintf(out + len, NAME_MAX_LEN - len, " %s", g->test_name(g, i));
}

static bool is_wanted(const struct unit_group *g, size_t i, char *const *words)
{
    char name[NAME_MAX_LEN];

    full_name(g, i, name);
    while (*words && strstr(name, *words))
        words++;
    return !*words;
}

static void choose(char *const *words)
{
    for (struct unit_group *g = groups; g; g = g->next) {
        g->outcomes = mmap(NULL, g->n_tests * sizeof *g->outcomes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (g->outcomes == MAP_FAILED)
            die("mmap");
        for (size_t i = 0; i < g->n_tests; i++)
            g->outcomes[i].state = is_wanted(g, i, words) ? CHOSEN : NOT_CHOSEN;
    }
}

static void list(void)
{
    char name[NAME_MAX_LEN];

    for (const struct unit_group *g = groups; g; g = g->next)
        for (size_t i = 0; i < g->n_tests; i++) {
            full_name(g, i, name);
            puts(name);
        }
}

static bool has(const struct unit_group *g, enum state state)
{
    for (size_t i = 0; i < g->n_tests; i++)
        if (g->outcomes[i].state == state)
            return true;
    return false;
}

/* ---- a group's process ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static off_t printed(const struct unit_group *g)
{
    struct stat st;

    fflush(NULL);
    return fstat(g->output, &st) < 0 ? 0 : st.st_size;
}

static size_t next_chosen(const struct unit_group *g, size_t i)
{
    while (i < g->n_tests && g->outcomes[i].state == NOT_CHOSEN)
        i++;
    return i;
}

static void run_test(const struct unit_group *g, size_t i, bool first)
{
    struct unit_outcome *o = &g->outcomes[i];
    double began = now();

    o->from = printed(g);
    o->state = RUNNING;
    bool passes = g->passes(g, i, first, next_chosen(g, i + 1) == g->n_tests);
    o->to = printed(g);
    o->seconds = now() - began;
    o->state = passes ? PASSED : FAILED;
}

__attribute__((noreturn)) static void run_group(const struct unit_group *g)
{
    size_t first = next_chosen(g, 0);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(GROUP_SECONDS);
    if (dup2(g->output, STDOUT_FILENO) < 0 || dup2(g->output, STDERR_FILENO) < 0)
        _exit(1);
    for (size_t i = first; i < g->n_tests; i = next_chosen(g, i + 1))
        run_test(g, i, i == first);
    exit(0);
}

static void start(struct unit_group *g)
{
    fflush(NULL);
    g->output = memfd_create("output", MFD_CLOEXEC);
    if (g->output < 0 || fcntl(g->output, F_SETFL, O_APPEND) < 0)
        die("memfd_create");
    g->pid = fork();
    if (g->pid < 0)
        die("fork");
    if (g->pid == 0)
        run_group(g);
}

/* ---- what came of it ---- */

/* To be freed. */
static char *read_output(const struct unit_group *g, off_t from, off_t to)
{
    size_t len = to > from ? (size_t)(to - from) : 0;
    char *text = calloc(1, len + 1);

    if (!text || pread(g->output, text, len, from) < 0)
        die("output");
    return text;
}

/* The line without what cmocka puts before it. */
static char *bare(char *line)
{
    static const char *const marks[] = {"[  ERROR   ] --- ", "[   LINE   ] --- "};

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strncmp(line, marks[i], strlen(marks[i])) == 0)
            line += strlen(marks[i]);
    return line;
}

/* The next line that says something; NULL: there is none. */
static char *next_line(char **text)
{
    char *line = strsep(text, "\n");

    while (line && (*bare(line) == '\0' || *bare(line) == '[' || strstr(line, " FAILED TEST(S)")))
        line = strsep(text, "\n");
    return line ? bare(line) : NULL;
}

static void print_failed(const char *name, double seconds, char *text, bool last_attempt)
{
    printf("%s %s (%.2f s)\n", last_attempt ? "FAILED" : "unsteady", name, seconds);
    for (char *line; (line = next_line(&text));)
        printf("    %s\n", line);
    n_failed += last_attempt;
}

static void print_passed(const char *name, double seconds, char *text)
{
    if (!strstr(text, "[  SKIPPED ]")) {
        printf("ok %s (%.2f s)\n", name, seconds);
        n_passed++;
        return;
    }
    const char *reason = NULL;
    for (char *line; !reason && (line = next_line(&text));)
        reason = strncmp(line, "skipped: ", 9) == 0 ? line + 9 : NULL;
    printf("skipped %s: %s\n", name, reason ? reason : "it cannot run here");
    n_skipped++;
}

/* What passes before the last attempt is told at the last. */
static void print_outcome(const struct unit_group *g, size_t i, bool last_attempt)
{
    const struct unit_outcome *o = &g->outcomes[i];
    char name[NAME_MAX_LEN];
    char *text = read_output(g, o->from, o->state == RUNNING ? printed(g) : o->to);

    full_name(g, i, name);
    if (o->state != PASSED)
        print_failed(name, o->seconds, text, last_attempt);
    else if (last_attempt)
        print_passed(name, o->seconds, text);
    free(text);
}

/* What sanitizers find when the process ends, for example leaks, or what ended it in a test. */
static void print_bad_end(const struct unit_group *g, int status, bool last_attempt)
{
    off_t from = 0;
    char name[NAME_MAX_LEN], what[NAME_MAX_LEN + 100];

    for (size_t i = 0; i < g->n_tests; i++)
        if (g->outcomes[i].to > from)
            from = g->outcomes[i].to;
    char *text = read_output(g, from, has(g, RUNNING) ? from : printed(g));
    group_name(g, name);
    snprintf(what, sizeof what, "%s its process ended %s %d%s", name,
             WIFSIGNALED(status) ? "by signal" : "with status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
             has(g, CHOSEN) ? " before its last test" : "");
    print_failed(what, 0, text, last_attempt);
    free(text);
}

/* It has ended. */
static void tell(struct unit_group *g, int status)
{
    bool bad = status != 0 || has(g, FAILED);
    bool last_attempt = !bad || g->again || !getenv("SANDCGI_TEST_UNSTEADY");

    g->pid = 0;
    for (size_t i = 0; i < g->n_tests; i++)
        if (g->outcomes[i].state > CHOSEN)
            print_outcome(g, i, last_attempt);
    if (status != 0 && (has(g, RUNNING) || !has(g, FAILED)))
        print_bad_end(g, status, last_attempt);
    close(g->output);
    if (last_attempt)
        return;
    for (size_t i = 0; i < g->n_tests; i++)
        if (g->outcomes[i].state != NOT_CHOSEN)
            g->outcomes[i] = (struct unit_outcome){.state = CHOSEN};
    g->again = true;
    start(g);
}

static void wait_for_one(void)
{
    int status;
    pid_t pid = waitpid(-1, &status, 0);

    if (pid < 0)
        die("waitpid");
    for (struct unit_group *g = groups; g; g = g->next)
        if (g->pid == pid) {
            tell(g, status);
            return;
        }
}

static long n_running(void)
{
    long n = 0;

    for (const struct unit_group *g = groups; g; g = g->next)
        n += g->pid > 0;
    return n;
}

int main(int argc, char **argv)
{
    for (const struct unit_command *c = commands; argc > 1 && c; c = c->next)
        if (strcmp(argv[1], c->word) == 0)
            return c->run();
    setenv("srcdir", SRCDIR, 0); /* as make check does */
    setenv("builddir", BUILDDIR, 0);
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        list();
        return 0;
    }
    choose(argv + 1);
    for (struct unit_group *g = groups; g; g = g->next) {
        while (n_running() >= sysconf(_SC_NPROCESSORS_ONLN))
            wait_for_one();
        if (has(g, CHOSEN))
            start(g);
    }
    while (n_running() > 0)
        wait_for_one();
    if (n_passed + n_failed + n_skipped == 0) {
        puts("FAILED no test has these words; see --list");
        n_failed++;
    }
    printf("%d passed, %d failed, %d skipped\n", n_passed, n_failed, n_skipped);
    return n_failed > 0 ? 1 : n_passed > 0 ? 0 : SKIPPED;
}
