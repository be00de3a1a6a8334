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

static struct {
    const struct options *options;
    struct input input; /* fd 0: none, or the first program has it */
    struct child child; /* pid 0: none */
    int hook_fd;        /* -1: none */
    pid_t holder;       /* keeps the interpreter's memory past its end; 0 = none */
    pid_t discarded;    /* it did not get the program, and is being killed; 0 = none */
    uint64_t used_us;   /* its processor time before the program */
    bool named;         /* 'P' has come */
    int reached, told;  /* tiers: 1 it is up, 2 with the names of 'P' */
    char step[64];      /* the import under way; "" = none */
} self;

static void hook_close(void)
{
    if (self.hook_fd >= 0)
        close(self.hook_fd);
    self.hook_fd = -1;
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

void warm_start(const struct options *o)
{
    char **argv, *env[2];
    struct child_plan plan = {.env = env, .cwd = o->cwd};
    const char *old = getenv("LD_PRELOAD"); /* what the image preloads stays, behind ours */
    char *preload = NULL;
    char why[CHILD_WHY_MAX];
    int pair[2];

    self.options = o;
    self.hook_fd = -1;
    if (!o->warm || files_forbid(o) || !input_open(&self.input) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return;
    argv = argv_new(o->command, o->option, NULL, 0);
    if (o->object &&
        asprintf(&preload, "LD_PRELOAD=%s%s%s", o->object, old ? ":" : "", old ? old : "") < 0)
        preload = NULL;
    if (preload)
        env[plan.n_env++] = preload;
    if (o->extra)
        env[plan.n_env++] = o->extra;
    plan.argv = argv;
    plan.input_fd = self.input.fd;
    plan.hook_fd = pair[1];
    if (argv && child_start(&self.child, &plan, why) == 0) {
        self.hook_fd = pair[0];
    } else {
        entry_error(0, "%s", argv ? why : "no memory for arguments");
        self.child.pid = 0;
        close(pair[0]);
    }
    close(pair[1]);
    free(argv);
    free(preload);
}

int warm_fd(void)
{
    return self.hook_fd;
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

/* Without an interpreter there is nothing to wait for, and the server is told so. */
bool warm_tier_due(bool make)
{
    int reached = self.hook_fd >= 0 ? self.reached : 1 + self.named;

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

/* Takes one packet if there is one; its letter, 0 = none, -1 = the interpreter's end is closed. */
static int take_packet(char *text, size_t size)
{
    ssize_t n;

    do {
        n = recv(self.hook_fd, text, size - 1, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return -1;
    text[n] = '\0';
    return text[0];
}

int warm_packets(void)
{
    char text[sizeof(self.step) + 1];
    int letter;

    while (self.hook_fd >= 0 && (letter = take_packet(text, sizeof(text))) > 0) {
        if (letter == 'Y' || letter == 'N')
            return letter;
        if (letter == 'H')
            self.holder = (pid_t)digits(text + 1);
        snprintf(self.step, sizeof(self.step), "%s", letter == 'S' ? text + 1 : "");
        if (self.reached < 2 && letter == "UD"[self.reached])
            self.reached++;
    }
    if (self.hook_fd >= 0 && letter < 0)
        hook_close();
    return self.hook_fd < 0 ? -1 : 0;
}

bool warm_preload(const char *names, size_t len)
{
    char packet[NAMES_MAX + 1] = "P";

    if (self.named || len > NAMES_MAX)
        return false;
    self.named = true;
    memcpy(packet + 1, names, len);
    if (self.hook_fd >= 0)
        send(self.hook_fd, packet, len + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
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
static bool program_fits(const struct items *w)
{
    const struct options *o = self.options;
    const char *variables;

    if (self.child.pid == 0 || warm_packets() != 0 || w->cwd || w->control || files_forbid(o))
        return false;
    variables = w->n_env > 0 && o->words && code_has(o->script, o->words) ? "*" : o->variables;
    for (size_t i = 0; i < w->n_env; i++) {
        if (variable_differs(variables, w->env[i]))
            return false;
    }
    /* Waiting for an import under way is worth it only if the code needs it. */
    return !self.step[0] || code_needs(o->script, self.step);
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

bool warm_offer(const struct items *w)
{
    bool fits = program_fits(w);

    self.used_us = fits ? processor_time_us(self.child.pid) : 0;
    if (fits && send_program(w))
        return true;
    warm_discard();
    return false;
}

struct child warm_taken(void)
{
    struct child taken = self.child;

    hook_close();
    self.child.pid = 0;
    return taken;
}

void warm_discard(void)
{
    hook_close();
    if (self.child.pid > 0) {
        kill(self.child.pid, SIGKILL);
        close(self.child.out_fd);
        close(self.child.err_fd);
        self.discarded = self.child.pid;
    }
    if (self.holder > 0)
        kill(self.holder, SIGKILL);
    self.child.pid = self.holder = 0;
}

uint64_t warm_used_us(void)
{
    return self.used_us;
}

bool warm_reaped(pid_t pid)
{
    if (pid == self.holder)
        self.holder = 0;
    if (pid == self.child.pid)
        warm_discard();
    if (pid != self.discarded)
        return false;
    self.discarded = 0;
    return true;
}

pid_t warm_pid(void)
{
    return self.child.pid;
}

pid_t warm_holder(void)
{
    return self.holder;
}

pid_t warm_template(void)
{
    return 0;
}

void warm_again(void)
{
    warm_discard();
    self.reached = self.told = 0;
    self.step[0] = '\0';
    warm_start(self.options);
}
