/*
 * The template of Bun. Behind its start, before its first script, Bun is one thread that waits for
 * nothing, so that a fork of it goes on as it would have. What the kernel does not make anew for a
 * fork is made anew here; random numbers are left to the caller
 * (runners/workbench/typescript/warm.mjs).
 */
#include "warm.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bun has one of each kind, and one registration. */
#define OWN_MAX 8
/* Descriptors of a template have low numbers. */
#define FDS_MAX 64

/* As runners/common/child.c gives to what is no template. */
static const char oom_score[] = "1000";

/* Descriptors that a child would have in common with the template. */
static struct {
    int events[OWN_MAX], polls[OWN_MAX];
    struct watched {
        int poll_fd, fd;
        struct epoll_event event;
    } watched[OWN_MAX];
    size_t n_events, n_polls, n_watched;
} own;

/* ---- before a fork ---- */

/* A fork has the thread that forks, and no other. */
static bool is_single(void)
{
    struct stat st;

    return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3; /* "." and ".." count */
}

/* Takes the number at p, behind blanks; returns what follows it. */
static const char *number_at(const char *p, unsigned base, unsigned long long *out)
{
    *out = 0;
    for (p += strspn(p, " \t"); isxdigit((unsigned char)*p); p++)
        *out = *out * base + (unsigned)(*p <= '9' ? *p - '0' : (*p | 32) - 'a' + 10);
    return p;
}

/* The number behind the name in the line; 0: there is none. */
static unsigned long long number_of(const char *line, const char *name, unsigned base)
{
    const char *at = strstr(line, name);
    unsigned long long number = 0;

    if (at)
        number_at(at + strlen(name), base, &number);
    return number;
}

/* What a poll descriptor waits for; false: that is not known, or too much. */
static bool note_watched(int poll_fd)
{
    char path[64], line[256];
    bool fits = true;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", poll_fd);
    f = fopen(path, "re");
    while (f && fits && fgets(line, sizeof(line), f)) {
        struct watched *w = &own.watched[own.n_watched];

        if (strncmp(line, "tfd:", 4) != 0)
            continue;
        fits = ++own.n_watched < OWN_MAX; /* the last one is never used */
        w->poll_fd = poll_fd;
        w->fd = (int)number_of(line, "tfd:", 10);
        w->event.events = (unsigned)number_of(line, "events:", 16);
        w->event.data.u64 = number_of(line, "data:", 16);
    }
    if (f)
        fclose(f);
    return f && fits;
}

/* Notes the descriptor if it is one of ours; false: there is no room. */
static bool note_own(int fd)
{
    char path[64], name[64];
    ssize_t len;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    len = readlink(path, name, sizeof(name) - 1);
    name[len < 0 ? 0 : len] = '\0';
    if (strcmp(name, "anon_inode:[eventfd]") == 0) {
        if (own.n_events == OWN_MAX)
            return false;
        own.events[own.n_events++] = fd;
    } else if (strcmp(name, "anon_inode:[eventpoll]") == 0) {
        if (own.n_polls == OWN_MAX)
            return false;
        own.polls[own.n_polls++] = fd;
        return note_watched(fd);
    }
    return true;
}

static bool note_descriptors(void)
{
    bool noted = true;

    for (int fd = 0; noted && fd < FDS_MAX; fd++)
        noted = note_own(fd);
    return noted;
}

/* Bun keeps the memory of compiled code from forks, because it expects none that goes on. False:
 * the kernel does not tell which it is. */
static bool share_memory(void)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    unsigned long long start, from = 0, to = 0;
    bool shared = false;
    char line[512];

    while (maps && fgets(line, sizeof(line), maps)) {
        const char *at = number_at(line, 16, &start);

        if (at > line && *at == '-') {
            from = start;
            number_at(at + 1, 16, &to);
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dc")) {
            shared = madvise((void *)(uintptr_t)from, (size_t)(to - from), MADV_DOFORK) == 0;
            if (!shared)
                break;
        }
    }
    if (maps)
        fclose(maps);
    return shared;
}

/* ---- behind it ---- */

static bool move(int from, int to)
{
    bool moved = from >= 0 && dup3(from, to, O_CLOEXEC) == to;

    if (from >= 0)
        close(from);
    return moved;
}

static bool renew_descriptors(void)
{
    bool renewed = true;

    for (size_t i = 0; i < own.n_events; i++)
        renewed &= move(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), own.events[i]);
    for (size_t i = 0; i < own.n_polls; i++)
        renewed &= move(epoll_create1(EPOLL_CLOEXEC), own.polls[i]);
    for (size_t i = 0; i < own.n_watched; i++)
        renewed &= epoll_ctl(own.watched[i].poll_fd, EPOLL_CTL_ADD, own.watched[i].fd,
                             &own.watched[i].event) == 0;
    return renewed;
}

/* In the child: its session, descriptors and place in a shortage of memory. */
static bool become_child(const int fds[FORK_FDS])
{
    int score;

    setsid();
    for (int place = 0; place < FORK_FDS; place++) {
        if (dup2(fds[place], place) != place)
            return false;
        close(fds[place]);
    }
    score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
        (void)!write(score, oom_score, sizeof(oom_score) - 1);
        close(score);
    }
    return renew_descriptors();
}

/* Makes a child of the entry program's (template.c); true in that one. */
static bool fork_child(const int fds[FORK_FDS])
{
    int gone[2];
    pid_t between;
    char none;

    if (pipe2(gone, O_CLOEXEC) != 0)
        _exit(1);
    between = fork();
    if (between == 0) {
        close(gone[1]);
        (void)!read(gone[0], &none, 1); /* the process between has gone */
        close(gone[0]);
        if (!become_child(fds))
            _exit(1);
        return true;
    }
    if (between > 0)
        waitpid(between, NULL, 0);
    close(gone[0]);
    close(gone[1]);
    for (int i = 0; i < FORK_FDS; i++)
        close(fds[i]);
    return false;
}

/* ---- the template's work ---- */

/* The descriptors that come with an 'F'; false: another packet. Without the entry program there is
 * no point in living. */
static bool receive_fork(int fds[FORK_FDS])
{
    union {
        struct cmsghdr head; /* for its alignment */
        char room[CMSG_SPACE(FORK_FDS * sizeof(int))];
    } control;
    char letter = 0;
    struct msghdr message = {.msg_iov = &(struct iovec){&letter, 1},
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    const struct cmsghdr *rights;

    if (recvmsg(HOOK_FD, &message, MSG_CMSG_CLOEXEC) <= 0)
        _exit(0);
    rights = CMSG_FIRSTHDR(&message);
    if (letter != 'F' || !rights || rights->cmsg_len != CMSG_LEN(FORK_FDS * sizeof(int)))
        return false;
    memcpy(fds, CMSG_DATA(rights), FORK_FDS * sizeof(int));
    return true;
}

int sandbox_child(char *packet, size_t size)
{
    int fds[FORK_FDS];
    char up[16];
    ssize_t len;

    template_block_signals(); /* Bun has let one through */
    if (!is_single() || !note_descriptors() || !share_memory())
        _exit(1);
    while (!receive_fork(fds) || !fork_child(fds))
        ;
    len = snprintf(up, sizeof(up), "U%d", getpid());
    if (write(HOOK_FD, up, (size_t)len) != len)
        _exit(0);
    len = read(HOOK_FD, packet, size);
    if (len <= 0 || write(HOOK_FD, "Y", 1) != 1)
        _exit(0);
    close(HOOK_FD);
    return (int)len;
}

uint32_t sandbox_seed(void)
{
    uint32_t seed;

    if (getentropy(&seed, sizeof(seed)) != 0)
        _exit(1);
    return seed;
}
