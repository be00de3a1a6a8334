#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TIER_MAX 32 /* of a frame W */

/* Killed and not reaped yet: interpreters that got no program, a template that loads. */
#define GONE_MAX 8

static struct {
    const struct options *options;
    struct {
        struct child child; /* pid 0: none, or it has not said U yet. Nothing comes out of it */
        int fd;             /* -1: none */
    } templates[TEMPLATE_N];
    struct input input;   /* fd 0: none, or the program has it */
    struct child child;   /* pid 0: none, or it has not said U yet */
    enum template parent; /* of the child, which has one if -t was given */
    int hook_fd;          /* -1: none */
    pid_t gone[GONE_MAX];
    uint64_t used_us;           /* its processor time before the program */
    struct offer offer;         /* the program */
    char demand[NAMES_MAX + 1]; /* what a program waits for; "" = nothing */
    int demand_fd;              /* that program's standard input */
    char names[NAMES_MAX + 1];  /* to be imported, with blanks between */
    char ready[NAMES_MAX + 1];  /* those that have been */
    pid_t noted;                /* the template of the libraries, as the program has found it */
    bool named;                 /* 'P' has come */
    bool loaded;                /* all names are there, and have settled */
    bool up;                    /* the interpreter waits */
    bool shut;     /* a template has made one: no program can reach its memory any more */
    int told;      /* tiers: 1 it is up, 2 with libraries */
    char step[64]; /* the import under way; "" = none */
} self = {.templates = {{.fd = -1}, {.fd = -1}}, .hook_fd = -1};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Kills one that its streams lead to, unless it is known to have ended. */
static void drop(struct child *c, bool ended)
{
    if (c->out_fd > 0) {
        close(c->out_fd);
        close(c->err_fd);
    }
    if (c->pid > 0 && !ended) {
        kill(c->pid, SIGKILL);
        for (size_t i = 0; i < GONE_MAX; i++) {
            if (self.gone[i] == 0) {
                self.gone[i] = c->pid;
                break;
            }
        }
    }
    *c = (struct child){0};
}

static void drop_child(bool ended)
{
    close_fd(&self.hook_fd);
    drop(&self.child, ended);
    self.up = false;
}

static void drop_template(enum template which, bool ended)
{
    kill_spare(which, 0);
    close_fd(&self.templates[which].fd);
    drop(&self.templates[which].child, ended);
    if (which == TEMPLATE_LOADED) {
        self.loaded = false;
        self.ready[0] = '\0';
    }
    self.step[0] = '\0';
}

/* SCRIPT has to exist before the interpreter starts. */
static void place_script(void)
{
    const char *script = self.options->script;
    int fd = open(script, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        entry_error(errno, "creating %s", script);
    else
        close(fd);
}

/* ---- start ---- */

/* Asks a template for an interpreter, which takes the place of the one that waits. */
static bool fork_child(enum template parent, int input_fd)
{
    drop_child(false);
    self.parent = parent;
    if (self.templates[parent].fd >= 0)
        self.hook_fd = child_fork(&self.child, self.templates[parent].fd, 'F', input_fd);
    return self.hook_fd >= 0;
}

/* Where names are imported: by the interpreter that waits, or by a template of their own. */
static int loader_fd(int input_fd)
{
    const int plain_fd = self.templates[TEMPLATE_PLAIN].fd;
    int *fd = &self.templates[TEMPLATE_LOADED].fd;

    if (!self.options->template)
        return self.hook_fd;
    if (*fd < 0)
        drop_template(TEMPLATE_LOADED, false);
    if (*fd < 0 && plain_fd >= 0)
        *fd = child_fork(&self.templates[TEMPLATE_LOADED].child, plain_fd, 'T', input_fd);
    return *fd;
}

/* Has the names imported: 'P', and what can be done before a program comes, or 'L'. */
static bool load(char letter, const char *names, int input_fd)
{
    char packet[NAMES_MAX + 2];
    const size_t len = (size_t)snprintf(packet, sizeof(packet), "%c%s", letter, names);
    const int fd = loader_fd(input_fd);

    self.step[0] = '\0';
    return fd >= 0 && send(fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

/* Starts the template, or the interpreter itself. */
static bool start(const struct options *o)
{
    char **argv, *env[2];
    struct child_plan plan = {
        .env = env, .cwd = o->cwd, .input_fd = self.input.fd, .template = o->template};
    const char *old = getenv("LD_PRELOAD"); /* what the image preloads stays, behind ours */
    char *preload = NULL;
    char why[CHILD_WHY_MAX];
    int pair[2];
    bool started;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    argv = argv_new(o->command, o->option, NULL, 0);
    if (o->object &&
        asprintf(&preload, "LD_PRELOAD=%s%s%s", o->object, old ? ":" : "", old ? old : "") < 0)
        preload = NULL;
    if (preload)
        env[plan.n_env++] = preload;
    if (o->extra)
        env[plan.n_env++] = o->extra;
    plan.argv = argv;
    plan.hook_fd = pair[1];
    started = argv && child_start(o->template ? &self.templates[TEMPLATE_PLAIN].child : &self.child,
                                  &plan, why) == 0;
    if (started) {
        *(o->template ? &self.templates[TEMPLATE_PLAIN].fd : &self.hook_fd) = pair[0];
    } else {
        entry_error(0, "%s", argv ? why : "no memory for arguments");
        self.templates[TEMPLATE_PLAIN].child = self.child = (struct child){0};
        close(pair[0]);
    }
    close(pair[1]);
    free(argv);
    free(preload);
    drop_template(TEMPLATE_LOADED, false);
    self.shut = false;
    return started && (!o->template || fork_child(TEMPLATE_PLAIN, self.input.fd));
}

void warm_start(const struct options *o)
{
    self.options = o;
    if (o->place)
        place_script();
    if (o->warm && !files_forbid(o) && input_open(&self.input))
        start(o);
}

bool warm_again(void)
{
    const struct options *o = self.options;

    drop_child(false);
    if (o->place)
        place_script();
    self.told = self.named;
    if (!o->warm || files_forbid(o))
        return true;
    if (self.input.fd == 0 && !input_open(&self.input))
        return false;
    self.told = self.ready[0] != '\0';
    if (self.templates[TEMPLATE_PLAIN].child.pid > 0) {
        if (!fork_child(self.loaded ? self.parent : TEMPLATE_PLAIN, self.input.fd))
            return false;
    } else if (!start(o)) {
        return false;
    }
    if (self.names[0] && !self.loaded)
        load('P', self.names, self.input.fd);
    return true;
}

int warm_fd(void)
{
    return self.hook_fd;
}

int warm_template_fd(enum template which)
{
    return self.templates[which].fd;
}

bool warm_take_input(struct input *out)
{
    if (self.input.fd == 0)
        return false;
    *out = self.input;
    self.input = (struct input){0};
    return true;
}

/* ---- waiting for the program ---- */

/* Without an interpreter, or a template that could load for it, there is nothing to wait for, and
 * the server is told so. */
bool warm_tier_due(bool make)
{
    bool lost = self.named && self.options->template && self.templates[TEMPLATE_LOADED].fd < 0;
    int reached = self.hook_fd < 0 ? 1 + self.named : self.up ? 1 + (self.ready[0] || lost) : 0;

    if (self.told >= reached)
        return false;
    if (make) {
        int len = snprintf(frame_room(), TIER_MAX, "%s %" PRIu64,
                           self.told ? "preloaded" : "started", report_memory());

        self.told++;
        frame_begin('W', 0, (size_t)len);
    }
    return true;
}

/* Takes one packet if there is one; its letter, 0 = none, -1 = the other end is closed, and now
 * ours is, too. */
static int take_packet(int *fd, char *text, size_t size)
{
    ssize_t n;

    if (*fd < 0)
        return -1;
    do {
        n = recv(*fd, text, size - 1, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) {
        close_fd(fd);
        return -1;
    }
    text[n] = '\0';
    return text[0];
}

static void note_packet(const char *text)
{
    if (text[0] == 'S' || text[0] == 'D')
        snprintf(self.step, sizeof(self.step), "%s", text[0] == 'S' ? text + 1 : "");
    if (text[0] == 'D') {
        self.loaded = true;
        names_add(self.ready, self.names);
    }
}

/* The libraries that a program waits for are there, or will not be. The template that has them is
 * noted while there is no program yet that could change it. */
static void end_demand(bool there)
{
    if (!self.demand[0])
        return;
    if (there) {
        names_add(self.ready, self.demand);
        names_add(self.names, self.demand);
        self.loaded = false;
        warm_note_templates();
        fork_child(TEMPLATE_LOADED, self.demand_fd);
    }
    self.demand[0] = '\0';
}

int warm_packets(void)
{
    char text[sizeof(self.step) + 1];
    int letter;

    take_packet(&self.templates[TEMPLATE_PLAIN].fd, text, sizeof(text)); /* it says nothing */
    while (take_packet(&self.templates[TEMPLATE_LOADED].fd, text, sizeof(text)) > 0) {
        if (text[0] == 'U')
            self.templates[TEMPLATE_LOADED].child.pid = (pid_t)digits(text + 1);
        note_packet(text);
        if (text[0] == 'L' || text[0] == 'N')
            end_demand(text[0] == 'L');
        /* The one that waits has been forked too early. The one that a program has begun to come
         * for stays. */
        if (text[0] == 'D' && self.input.fd > 0)
            fork_child(TEMPLATE_LOADED, self.input.fd);
    }
    if (self.templates[TEMPLATE_LOADED].fd < 0)
        end_demand(false);
    while ((letter = take_packet(&self.hook_fd, text, sizeof(text))) > 0) {
        if (letter == 'Y' || letter == 'N')
            return letter;
        self.up |= letter == 'U';
        self.shut |= letter == 'U';
        if (letter == 'U' && self.options->template)
            self.child.pid = (pid_t)digits(text + 1);
        note_packet(text);
    }
    return letter;
}

bool warm_preload(const char *names, size_t len)
{
    if (self.named || len > NAMES_MAX)
        return false;
    self.named = true;
    memcpy(self.names, names, len);
    self.names[len] = '\0';
    load('P', self.names, self.input.fd);
    return true;
}

/* ---- handing over the program ---- */

/* Whether an import under way is worth waiting for: only if the code needs it. */
static bool needs_step(const struct items *w)
{
    return code_needs(self.options->script, self.step) ||
           (w->load && names_in(self.ready, w->load));
}

/* Has the interpreter for the program made by the template that has the libraries, or by the other
 * one. */
static bool fork_for(const struct items *w, int input_fd)
{
    const struct options *o = self.options;
    bool libraries = self.step[0]
                         ? needs_step(w)
                         : self.ready[0] && !(o->modules && code_is_plain(o->script, o->modules));
    enum template parent = libraries ? TEMPLATE_LOADED : TEMPLATE_PLAIN;

    return parent == self.parent || fork_child(parent, input_fd);
}

/* Whether the warm interpreter can take the program, as far as can be told from outside. */
static bool program_fits(const struct items *w)
{
    const struct options *o = self.options;
    const char *variables;

    if (warm_packets() != 0 || w->cwd || w->control || files_forbid(o))
        return false;
    variables = w->n_env > 0 && o->words && code_has(o->script, o->words) ? "*" : o->variables;
    if (variables_differ(variables, w))
        return false;
    return o->template || !self.step[0] || needs_step(w);
}

bool warm_demand(const struct items *w, int input_fd)
{
    if (!self.options->template || !w->load || names_in(self.ready, w->load) || !program_fits(w) ||
        !names_add(self.demand, w->load))
        return false;
    self.demand_fd = input_fd;
    if (!load('L', self.demand, input_fd))
        self.demand[0] = '\0';
    return warm_loads();
}

bool warm_loads(void)
{
    return self.demand[0] != '\0';
}

static uint64_t processor_time_us(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

bool warm_offer(const struct items *w, int input_fd)
{
    bool fits = program_fits(w) && offer_make(&self.offer, w);

    self.used_us = 0;
    fits = fits && (!self.options->template || fork_for(w, input_fd));
    if (fits && self.child.pid > 0)
        self.used_us = processor_time_us(self.child.pid);
    if (fits && offer_send(&self.offer, self.hook_fd))
        return true;
    warm_discard();
    return false;
}

/* The program begins, or does not: a template that loads would take processor time from it, and
 * stops if it has anything; one that comes up could be changed by it. */
static void end_loading(void)
{
    const struct child *loader = &self.templates[TEMPLATE_LOADED].child;
    bool up = self.shut && loader->pid > 0 && loader->pid == self.noted;

    self.demand[0] = '\0';
    if (!self.shut)
        drop_template(TEMPLATE_PLAIN, false);
    if (!up || !self.ready[0])
        drop_template(TEMPLATE_LOADED, false);
    else if (!self.loaded)
        send(self.templates[TEMPLATE_LOADED].fd, "H", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (self.options->template)
        warm_note_templates();
}

struct child warm_taken(void)
{
    struct child taken = self.child;

    self.child = (struct child){0};
    drop_child(false);
    end_loading();
    return taken;
}

void warm_discard(void)
{
    drop_child(false);
    end_loading();
}

uint64_t warm_used_us(void)
{
    return self.used_us;
}

bool warm_reaped(pid_t pid)
{
    for (enum template i = 0; i < TEMPLATE_N; i++) {
        if (pid == self.templates[i].child.pid) {
            drop_template(i, true);
            if (i == TEMPLATE_LOADED)
                end_demand(false);
            return true;
        }
    }
    if (pid == self.child.pid) {
        drop_child(true);
        return true;
    }
    for (size_t i = 0; i < GONE_MAX; i++) {
        if (self.gone[i] == pid) {
            self.gone[i] = 0;
            return true;
        }
    }
    return false;
}

pid_t warm_pid(void)
{
    return self.child.pid;
}

void warm_note_templates(void)
{
    pid_t pids[TEMPLATE_N];

    for (enum template i = 0; i < TEMPLATE_N; i++) {
        pids[i] = self.templates[i].child.pid;
        kill_spare(i, pids[i]);
    }
    self.noted = pids[TEMPLATE_LOADED];
    proof_note_templates(pids);
}
