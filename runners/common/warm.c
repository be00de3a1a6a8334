#include "runners/common/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TIER_MAX 32 /* of a frame W */

/* Between the words of a list on the command line. */
#define LIST_BREAKS ", "

/* Whether the word is in a list like "A,B_* C", in which "B_*" stands for all that start so. */
static bool list_has(const char *list, const char *word, size_t len)
{
    const char *at = list ? list + strspn(list, LIST_BREAKS) : "";

    while (*at) {
        size_t n = strcspn(at, LIST_BREAKS);
        bool prefix = at[n - 1] == '*';
        size_t same = prefix ? n - 1 : n;

        if ((prefix ? len >= same : len == same) && memcmp(at, word, same) == 0)
            return true;
        at += n;
        at += strspn(at, LIST_BREAKS);
    }
    return false;
}

/* Killed and not reaped yet: interpreters that got no program, a template that loads. */
#define GONE_MAX 8

static struct {
    const struct options *options;
    struct child template; /* pid 0: none. Nothing comes out of it */
    int template_fd;       /* -1: none */
    struct input input;    /* fd 0: none, or the program has it */
    struct child child;    /* pid 0: none, or it has not said U yet */
    int hook_fd;           /* -1: none */
    pid_t gone[GONE_MAX];
    uint64_t used_us; /* its processor time before the program */
    char names[NAMES_MAX];
    size_t names_len;
    bool named;    /* 'P' has come */
    bool loaded;   /* what it names has been imported */
    bool up;       /* the interpreter waits */
    bool shut;     /* the template has made one: no program can reach its memory any more */
    int told;      /* tiers: 1 it is up, 2 with the names of 'P' */
    char step[64]; /* the import under way; "" = none */
} self = {.template_fd = -1, .hook_fd = -1};

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

static void drop_template(bool ended)
{
    kill_spare(0);
    close_fd(&self.template_fd);
    drop(&self.template, ended);
    self.step[0] = '\0';
}

/* Whether the working directory has a file that the interpreter reads when it starts. */
static bool files_forbid(const struct options *o)
{
    const struct dirent *d;
    bool found = false;
    DIR *dir = o->files ? opendir(o->cwd) : NULL;

    if (!dir)
        return false;
    while (!found && (d = readdir(dir)))
        found = list_has(o->files, d->d_name, strlen(d->d_name));
    closedir(dir);
    return found;
}

/* ---- start ---- */

/* Asks the template for an interpreter, which takes the place of the one that waits. */
static bool fork_child(int input_fd)
{
    drop_child(false);
    if (self.template_fd >= 0)
        self.hook_fd = child_fork(&self.child, self.template_fd, input_fd);
    return self.hook_fd >= 0;
}

static void send_names(void)
{
    int fd = self.options->template ? self.template_fd : self.hook_fd;
    char packet[NAMES_MAX + 1] = "P";

    memcpy(packet + 1, self.names, self.names_len);
    if (fd >= 0)
        send(fd, packet, self.names_len + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
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
    started = argv && child_start(o->template ? &self.template : &self.child, &plan, why) == 0;
    if (started) {
        *(o->template ? &self.template_fd : &self.hook_fd) = pair[0];
    } else {
        entry_error(0, "%s", argv ? why : "no memory for arguments");
        self.template = self.child = (struct child){0};
        close(pair[0]);
    }
    close(pair[1]);
    free(argv);
    free(preload);
    self.loaded = self.shut = false;
    return started && (!o->template || fork_child(self.input.fd));
}

void warm_start(const struct options *o)
{
    self.options = o;
    if (o->warm && !files_forbid(o) && input_open(&self.input))
        start(o);
}

bool warm_again(void)
{
    const struct options *o = self.options;

    drop_child(false);
    self.told = self.named;
    if (!o->warm || files_forbid(o))
        return true;
    if (self.input.fd == 0 && !input_open(&self.input))
        return false;
    if (self.template.pid > 0) {
        self.told = self.loaded;
        return fork_child(self.input.fd);
    }
    self.told = 0;
    if (!start(o))
        return false;
    if (self.named)
        send_names();
    return true;
}

int warm_fd(void)
{
    return self.hook_fd;
}

int warm_template_fd(void)
{
    return self.template_fd;
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
    bool lost = self.named && self.options->template && self.template.pid == 0;
    int reached = self.hook_fd < 0 ? 1 + self.named : self.up ? 1 + (self.loaded || lost) : 0;

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
    self.loaded |= text[0] == 'D';
}

int warm_packets(void)
{
    char text[sizeof(self.step) + 1];
    int letter;

    while (take_packet(&self.template_fd, text, sizeof(text)) > 0) {
        note_packet(text);
        /* The one that waits has been forked too early. The one that a program has begun to come
         * for stays. */
        if (text[0] == 'D' && self.input.fd > 0)
            fork_child(self.input.fd);
    }
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
    self.names_len = len;
    memcpy(self.names, names, len);
    send_names();
    return true;
}

/* ---- handing over the program ---- */

/* Whether the interpreter was started with another value of a variable in the list. */
static bool variable_differs(const char *list, const char *entry)
{
    size_t len = strcspn(entry, "=");
    char *name;
    const char *now;
    bool same;

    if (!list_has(list, entry, len))
        return false;
    name = strndup(entry, len);
    now = name ? getenv(name) : NULL;
    same = now && strcmp(now, entry + len + 1) == 0;
    free(name);
    return !same;
}

/* Whether one of the words is in the code. */
static bool code_has(const char *script, const char *words)
{
    struct stat st;
    void *code = MAP_FAILED;
    bool found = false;
    int fd = open(script, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
        code = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (code != MAP_FAILED) {
        for (size_t len; !found && *(words += strspn(words, LIST_BREAKS)); words += len) {
            len = strcspn(words, LIST_BREAKS);
            found = memmem(code, (size_t)st.st_size, words, len) != NULL;
        }
        munmap(code, (size_t)st.st_size);
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* Whether the code may need the import under way: it has the first part of its name. */
static bool code_needs(const char *script, const char *name)
{
    char first[NAME_MAX + 1];
    size_t len = strcspn(name, ".");

    if (len > NAME_MAX)
        return true;
    memcpy(first, name, len);
    first[len] = '\0';
    return code_has(script, first);
}

/* Whether the warm interpreter can take the program, as far as can be told from outside. */
static bool program_fits(const struct items *w, int input_fd)
{
    const struct options *o = self.options;
    const char *variables;

    if (warm_packets() != 0 || w->cwd || w->control || files_forbid(o))
        return false;
    variables = w->n_env > 0 && o->words && code_has(o->script, o->words) ? "*" : o->variables;
    for (size_t i = 0; i < w->n_env; i++) {
        if (variable_differs(variables, w->env[i]))
            return false;
    }
    /* Waiting for an import under way is worth it only if the code needs it. */
    if (!self.step[0])
        return true;
    return code_needs(o->script, self.step) ? !o->template || fork_child(input_fd) : o->template;
}

/* Puts a letter and a text with its NUL behind the packet; false when it has no room left. */
static bool packet_add(char *packet, size_t *len, char letter, const char *text)
{
    size_t size = strlen(text) + 1;

    if (size + 1 > PACKET_MAX - *len)
        return false;
    packet[(*len)++] = letter;
    memcpy(packet + *len, text, size);
    *len += size;
    return true;
}

/* False when the packet would be too long, or cannot be sent. */
static bool send_program(const struct items *w)
{
    static char packet[PACKET_MAX] = "G";
    size_t len = 1;
    bool fits = true;

    for (size_t i = 0; fits && i < w->n_args; i++)
        fits = packet_add(packet, &len, 'A', w->args[i]);
    for (size_t i = 0; fits && i < w->n_env; i++)
        fits = packet_add(packet, &len, 'E', w->env[i]);
    return fits && send(self.hook_fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
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
    bool fits = program_fits(w, input_fd);

    self.used_us = fits && self.child.pid > 0 ? processor_time_us(self.child.pid) : 0;
    if (fits && send_program(w))
        return true;
    warm_discard();
    return false;
}

/* The program begins: a template that loads would take processor time from it, one that comes up
 * could be changed by it. */
static void end_loading(void)
{
    if (self.template.pid > 0 && (!self.shut || (self.named && !self.loaded))) {
        drop_template(false);
        proof_note_template(0);
    }
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
    if (pid == self.template.pid) {
        drop_template(true);
        return true;
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

pid_t warm_template(void)
{
    return self.template.pid;
}
