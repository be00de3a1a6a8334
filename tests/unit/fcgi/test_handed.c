/* Sockets that another program has opened: which of them is whose. */
#include "config.h"

#include "common/base/mem.h"
#include "fcgi/process/handed.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST 3
#define NONE  -1
#define WRONG -2

/* A listening socket at fd. */
static void listen_at(int fd)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_STREAM, 0);

    if (bind(made, (struct sockaddr *)&any, sizeof any.sun_family) < 0 || listen(made, 1) < 0 ||
        (made != fd && (dup2(made, fd) < 0 || close(made) < 0)))
        _exit(9);
}

static bool takes(const char *name, int expected)
{
    struct err e = ERR_INIT;
    int fd = handed_socket(name, &e);

    if (expected < 0)
        return fd == -1 && (e.kind == ERR_NONE) == (expected == NONE);
    return fd == expected && fcntl(fd, F_GETFD) == FD_CLOEXEC && (fcntl(fd, F_GETFL) & O_NONBLOCK);
}

struct handing {
    const char *names; /* NULL: not set */
    int n;             /* sockets */
    int fastcgi, hub;  /* descriptor, NONE or WRONG */
    const char *count; /* NULL: n */
    bool foreign;      /* LISTEN_PID is another's */
};

/* In a child, whose descriptors are its own to arrange. */
static bool handed_as_expected(const struct handing *h)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        closefrom(FIRST);
        for (int i = 0; i < h->n; i++)
            listen_at(FIRST + i);
        AUTO_FREE char *own = mem_printf("%d", (int)getpid());
        AUTO_FREE char *count = mem_printf("%d", h->n);
        setenv("LISTEN_PID", h->foreign ? "1" : own, 1);
        setenv("LISTEN_FDS", h->count ? h->count : count, 1);
        if (h->names)
            setenv("LISTEN_FDNAMES", h->names, 1);
        _exit(takes("hub", h->hub) && takes("fastcgi", h->fastcgi) ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static void sockets_are_found_by_their_names(void **state)
{
    static const struct handing cases[] = {
        {"fastcgi:hub", 2, 3, 4, NULL, false},
        {"hub:fastcgi", 2, 4, 3, NULL, false},
        {"connection:hub:x:fastcgi", 4, 6, 4, NULL, false},
        {"hub", 1, NONE, 3, NULL, false},
        {"fastcgi", 1, 3, NONE, NULL, false},
        {NULL, 1, 3, NONE, NULL, false},
        {"sandcgi.socket", 1, 3, NONE, NULL, false},
        {NULL, 2, WRONG, NONE, NULL, false},
        {"fastcg:hub:", 2, WRONG, 4, NULL, false},
        {"fastcgi:hub", 1, 3, WRONG, NULL, false}, /* fewer than names */
        {"fastcgi:hub", 1, 3, WRONG, "2", false},  /* fewer than LISTEN_FDS */
        {"fastcgi:hub", 2, NONE, NONE, NULL, true},
        {"fastcgi", 1, NONE, NONE, "0", false},
        {"fastcgi", 1, NONE, NONE, "17", false},
        {"fastcgi", 1, NONE, NONE, "1x", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (!handed_as_expected(&cases[i]))
            fail_msg("case %zu, %s", i, cases[i].names ? cases[i].names : "no names");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sockets_are_found_by_their_names),
};
UNIT_TESTS(tests)
