#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIER_MAX 32 /* of a frame W */

static struct {
    const struct languages *languages;
    const struct options *options; /* of the run, or of the last one; at first, the first */
    struct {
        struct child child; /* pid 0: none, or it has not said U yet. Nothing comes out of it */
        int fd;             /* -1: none */
        bool shut; /* it has made an interpreter: no program can reach its memory any more */
    } templates[TEMPLATE_N];
    struct input input;         /* fd 0: none, or the program has it */
    struct child child;         /* pid 0: none, or it has not said U yet */
    size_t parent;              /* its template; without -t, the one that its language would have */
    int hook_fd;                /* -1: none */
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
    bool claimed;               /* a run has come */
    bool further;               /* the interpreter is to bring up a further language's template */
    int told;                   /* tiers: 1 it is up, 2 with libraries */
    char step[64];              /* the import under way; "" = none */
} self = {.hook_fd = -1};

/* The first language: the others load no libraries. */
static bool is_first(const struct options *o)
{
    return o == self.languages->items;
}

static size_t template_of(const struct options *o)
{
    return (size_t)(o - self.languages->items);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void drop_child(bool ended)
{
    close_fd(&self.hook_fd);
    child_drop(&self.child, ended);
    self.up = false;
}

static void drop_template(size_t which, bool ended)
{
    kill_spare(which, 0);
    close_fd(&self.templates[which].fd);
    child_drop(&self.templates[which].child, ended);
    if (which == TEMPLATE_LOADED) {
        self.loaded = false;
        self.ready[0] = self.step[0] = '\0';
    }
}

/* ---- start ---- */

/* Asks a template for an interpreter, which takes the place of the one that waits. */
static bool fork_child(size_t parent, int input_fd)
{
    drop_child(false);
    self.parent = parent;
    if (self.templates[parent].fd >= 0)
        self.hook_fd = child_fork(&self.child, self.templates[parent].fd, 'F', input_fd);
    return self.hook_fd >= 0;
}

/* Where names are imported: by a template of their own, or by the interpreter that waits; -1:
 * nowhere. */
static int loader_fd(void)
{
    if (self.languages->items->template)
        return self.templates[TEMPLATE_LOADED].fd;
    return self.parent == TEMPLATE_FIRST ? self.hook_fd : -1;
}

/* The template of their own, by the first one. */
static void fork_loader(int input_fd)
{
    const int first_fd = self.templates[TEMPLATE_FIRST].fd;

    drop_template(TEMPLATE_LOADED, false);
    if (first_fd >= 0)
        self.templates[TEMPLATE_LOADED].fd = child_fork(&self.templates[TEMPLATE_LOADED].child,
                                                        first_fd, 'T', input_fd);
}

/* Has the names imported: 'P', and what can be done before a program comes, or 'L'. */
static bool load(char letter, const char *names, int input_fd)
{
    char packet[NAMES_MAX + 2];
    const size_t len = (size_t)snprintf(packet, sizeof(packet), "%c%s", letter, names);
    int fd;

    if (loader_fd() < 0)
        fork_loader(input_fd);
    fd = loader_fd();
    self.step[0] = '\0';
    return fd >= 0 && send(fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

/* Starts the template of the language, or the interpreter itself. */
static bool start(void)
{
    const struct options *o = self.options;
    const size_t which = template_of(o);

    if (which == TEMPLATE_FIRST)
        drop_template(TEMPLATE_LOADED, false);
    self.templates[which].shut = false;
    self.parent = which;
    if (o->place)
        script_place(o);
    if (!o->template)
        return (self.hook_fd = child_prestart(&self.child, o, self.input.fd)) >= 0;
    self.templates[which].fd = child_prestart(&self.templates[which].child, o, self.input.fd);
    return fork_child(which, self.input.fd);
}

/* Has an interpreter wait in the language, where it can; false: it cannot be started. */
static bool wait_in_language(void)
{
    const struct options *o = self.options;
    const bool loaded = self.loaded && self.parent == TEMPLATE_LOADED;

    if (!o->warm || files_forbid(o))
        return true;
    if (self.templates[template_of(o)].child.pid <= 0)
        return start();
    return fork_child(loaded && is_first(o) ? TEMPLATE_LOADED : template_of(o), self.input.fd);
}

void warm_start(const struct languages *languages)
{
    self.languages = languages;
    self.options = languages->items;
    for (size_t i = 0; i < TEMPLATE_N; i++)
        self.templates[i].fd = -1;
    if (!self.options->warm || input_open(&self.input))
        wait_in_language();
}

bool warm_again(void)
{
    self.claimed = false;
    drop_child(false);
    if ((self.input.fd == 0 && !input_open(&self.input)) || !wait_in_language())
        return false;
    if (self.names[0] && !self.loaded)
        load('P', self.names, self.input.fd);
    self.told = self.ready[0] != '\0' || (self.named && loader_fd() < 0);
    return true;
}

/* No more than there are: the kernel polls no more than RLIMIT_NOFILE, which programs can lower. */
size_t warm_polls(struct pollfd *p)
{
    size_t n = 0;

    if (self.hook_fd >= 0)
        p[n++] = (struct pollfd){.fd = self.hook_fd, .events = POLLIN};
    for (size_t i = 0; i < TEMPLATE_N; i++) {
        if (self.templates[i].fd >= 0)
            p[n++] = (struct pollfd){.fd = self.templates[i].fd, .events = POLLIN};
    }
    return n;
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
 * the server is told so. A further language's template, which starts while the next run may come,
 * is not waited for, either. */
bool warm_tier_due(bool make)
{
    bool comes = self.hook_fd >= 0 && !self.up &&
                 (is_first(self.options) || self.templates[self.parent].shut);
    int reached = comes ? 0 : 1 + (self.ready[0] || (self.named && loader_fd() < 0));

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

/* That of the language that is left is not to be there. */
static void change_language(const struct options *o)
{
    if (o != self.options)
        script_unplace();
    self.options = o;
}

/* Behind the libraries, while no run comes, templates of further languages start, one after the
 * other: each makes an interpreter, by which it is known to be up. Then one of the first language
 * waits again. */
static void start_further(void)
{
    const struct options *first = self.languages->items, *next = first + self.languages->n;

    while (--next > first)
        if (next->template && !self.templates[template_of(next)].child.pid && !files_forbid(next))
            break;
    if (!self.loaded || self.claimed || (next == first && !self.further))
        return;
    self.further = next > first;
    change_language(next);
    if (self.further)
        wait_in_language();
    else
        fork_child(TEMPLATE_LOADED, self.input.fd);
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

/* The interpreter waits, or the program that it is for does. */
static void note_up(const char *pid)
{
    bool *shut = &self.templates[self.parent].shut;

    if (!*shut && !is_first(self.options) && self.told > 0)
        self.told--; /* with the memory of the template that has come */
    self.up = *shut = true;
    script_unplace();
    if (self.child.pid == 0)
        self.child.pid = (pid_t)digits(pid);
    start_further();
}

/* The templates outlive what a program does now, and the proof is told how they are. */
static void note_templates(void)
{
    pid_t pids[TEMPLATE_N];

    for (size_t i = 0; i < TEMPLATE_N; i++) {
        pids[i] = self.templates[i].child.pid;
        kill_spare(i, pids[i]);
    }
    self.noted = pids[TEMPLATE_LOADED];
    proof_note_templates(pids);
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
        note_templates();
        fork_child(TEMPLATE_LOADED, self.demand_fd);
    }
    self.demand[0] = '\0';
}

int warm_packets(void)
{
    char text[sizeof(self.step) + 1];
    int letter;

    for (size_t i = 0; i < self.languages->n; i++)
        packet_take(&self.templates[i].fd, text, sizeof(text)); /* they say nothing */
    while (packet_take(&self.templates[TEMPLATE_LOADED].fd, text, sizeof(text)) > 0) {
        if (text[0] == 'U') {
            self.templates[TEMPLATE_LOADED].child.pid = (pid_t)digits(text + 1);
            self.templates[TEMPLATE_FIRST].shut = true;
        }
        note_packet(text);
        if (text[0] == 'L' || text[0] == 'N')
            end_demand(text[0] == 'L');
        /* The one that waits has been forked too early. The one that a program has begun to come
         * for stays. */
        if (text[0] == 'D' && self.input.fd > 0 && is_first(self.options))
            fork_child(TEMPLATE_LOADED, self.input.fd);
    }
    if (self.templates[TEMPLATE_LOADED].fd < 0)
        end_demand(false);
    while ((letter = packet_take(&self.hook_fd, text, sizeof(text))) > 0) {
        if (letter == 'Y' || letter == 'N')
            return letter;
        if (letter == 'U')
            note_up(text + 1);
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
    return code_needs(script_code(), self.step) || (w->load && names_in(self.ready, w->load));
}

/* Whether the program, which is in the first language, is to have the libraries. */
static bool needs_libraries(const struct items *w)
{
    const struct options *o = self.options;

    return self.step[0]
               ? needs_step(w)
               : self.ready[0] && !(o->modules && code_is_plain(script_code(), o->modules));
}

/* Has the interpreter for the program made by the template of its language, or the one that has the
 * libraries, unless it waits. */
static bool fork_for(const struct items *w, int input_fd)
{
    size_t parent = template_of(self.options);

    if (is_first(self.options) && needs_libraries(w))
        parent = TEMPLATE_LOADED;
    return (self.hook_fd >= 0 && self.parent == parent) || fork_child(parent, input_fd);
}

/* Whether the warm interpreter can take the program, as far as can be told from outside. */
static bool program_fits(const struct items *w)
{
    const struct options *o = self.options;
    const char *variables;

    if (warm_packets() > 0 || !o->warm || w->cwd || w->control || files_forbid(o) ||
        strcmp(script_path(), o->script) != 0 || script_is_chosen(o))
        return false;
    variables = w->n_env > 0 && o->words && code_has(script_code(), o->words) ? "*" : o->variables;
    if (variables_differ(variables, w))
        return false;
    return o->template || (self.hook_fd >= 0 && self.parent == template_of(o) &&
                           (!is_first(o) || !self.step[0] || needs_step(w)));
}

bool warm_demand(const struct items *w, int input_fd)
{
    if (!is_first(self.options) || !self.options->template || !w->load ||
        names_in(self.ready, w->load) || !program_fits(w) || !names_add(self.demand, w->load))
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

bool warm_offer(const struct items *w, int input_fd)
{
    bool fits = program_fits(w) && offer_make(&self.offer, w);

    self.used_us = 0;
    fits = fits && (!self.options->template || fork_for(w, input_fd));
    if (fits && self.child.pid > 0)
        self.used_us = report_process_us(self.child.pid);
    if (fits && offer_send(&self.offer, self.hook_fd))
        return true;
    warm_discard();
    return false;
}

/* The program begins, or does not: a template that loads would take processor time from it, and
 * stops if it has anything; one that comes up could be changed by it. */
static void end_loading(void)
{
    const pid_t loader = self.templates[TEMPLATE_LOADED].child.pid;

    self.demand[0] = '\0';
    for (size_t i = 0; i < self.languages->n; i++) {
        if (!self.templates[i].shut)
            drop_template(i, false);
    }
    if (loader == 0 || loader != self.noted || !self.ready[0])
        drop_template(TEMPLATE_LOADED, false);
    else if (!self.loaded)
        send(self.templates[TEMPLATE_LOADED].fd, "H", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    note_templates();
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
    for (size_t i = 0; i < TEMPLATE_N; i++) {
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
    return child_was_dropped(pid);
}

pid_t warm_pid(void)
{
    return self.child.pid;
}

void warm_claim(const struct options *o)
{
    change_language(o);
    self.claimed = true;
    self.further = false;
    note_templates();
}
