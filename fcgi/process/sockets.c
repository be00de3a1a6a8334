#include "config.h"

#include "fcgi/process/sockets.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/remedy.h"
#include "common/base/sock.h"
#include "fcgi/hub/events.h"
#include "fcgi/process/handed.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#define PAIR_TIMEOUT_S 30 /* for a broker that is frozen */

const char *const server_socket_names[N_SOCKETS] = {
    [SOCKET_FASTCGI] = "fastcgi",
    [SOCKET_BROKER] = "broker",
    [SOCKET_HUB] = "hub",
    [SOCKET_EVENTS] = "events",
    [SOCKET_METRICS] = "metrics",
    [SOCKET_JUDGE] = "judge",
    [SOCKET_OAUTH] = "oauth",
    [SOCKET_CONTROL] = "control",
    [SOCKET_CONNS_IN] = "conns_in",
    [SOCKET_CONNS_OUT] = "conns_out",
    [SOCKET_HUB_CONNS_IN] = "hub_conns_in",
    [SOCKET_HUB_CONNS_OUT] = "hub_conns_out",
    [SOCKET_METRICS_CONNS_IN] = "metrics_conns_in",
    [SOCKET_METRICS_CONNS_OUT] = "metrics_conns_out",
    [SOCKET_EVENTS_IN] = "events_in",
    [SOCKET_EVENTS_OUT] = "events_out",
    [SOCKET_ASKS_IN] = "asks_in",
    [SOCKET_ASKS_OUT] = "asks_out",
};

/* "": the settings want no such socket; NULL: it has no address. */
static const char *address_of(enum server_socket which, const struct settings *s)
{
    switch (which) {
    case SOCKET_FASTCGI:
        return s->listen;
    case SOCKET_BROKER:
        return s->broker;
    case SOCKET_HUB:
        return s->hub;
    case SOCKET_EVENTS:
        return *s->hub ? s->events : "";
    case SOCKET_METRICS:
        return s->metrics;
    case SOCKET_JUDGE:
        return *s->oauth ? s->access.check : "";
    case SOCKET_OAUTH:
        return s->access.builtin ? s->oauth_listen : "";
    case SOCKET_CONTROL:
        return s->control;
    default:
        return NULL;
    }
}

static const char *setting_of(enum server_socket which)
{
    static const char *const settings[] = {"SANDCGI_LISTEN", "SANDCGI_BROKER",  "SANDCGI_HUB",
                                           "events.sock",    "SANDCGI_METRICS", "judge.sock",
                                           "oauth.sock",     "SANDCGI_BROKER"};

    return settings[which];
}

/* Who may connect: the web server, or workers and hub, or this account. */
static struct sock_owner owner_of(enum server_socket which, const struct settings *s,
                                  const struct account *workers)
{
    if (which == SOCKET_BROKER || which == SOCKET_EVENTS)
        return (struct sock_owner){.uid = workers->uid, .gid = (gid_t)-1, .mode = 0600};
    if (which == SOCKET_CONTROL)
        return (struct sock_owner){.uid = (uid_t)-1, .gid = (gid_t)-1, .mode = 0600};
    if (which == SOCKET_METRICS)
        return (struct sock_owner){.uid = (uid_t)-1, .gid = (gid_t)-1, .mode = 0660};
    return (struct sock_owner){
        .uid = (uid_t)-1, .gid = s->web_gid ? s->web_gid : (gid_t)-1, .mode = 0660};
}

/* ---- opening ---- */

int pair_open(int fds[2], struct err *e)
{
    const struct timeval timeout = {.tv_sec = PAIR_TIMEOUT_S};

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0 ||
        setsockopt(fds[1], SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) < 0)
        return err_errno(e, "socketpair");
    return 0;
}

/* The web server's sockets may have been opened by the program that has started us. */
static int take_handed(struct server_sockets *fresh, enum server_socket which,
                       const struct settings *s, struct err *e)
{
    const char *name = which == SOCKET_FASTCGI ? HANDED_FASTCGI : HANDED_HUB;

    if (which != SOCKET_FASTCGI && which != SOCKET_HUB)
        return 0;
    fresh->fds[which] = handed_socket(name, e);
    fresh->handed[which] = fresh->fds[which] >= 0;
    if (fresh->handed[which] && !*address_of(which, s))
        return err_set(e, ERR_INVALID, "a socket named %s was handed over, but %s is empty", name,
                       setting_of(which));
    return e->kind == ERR_NONE ? 0 : -1;
}

static int listen_at(enum server_socket which, const char *address, const struct settings *s,
                     const struct account *workers, struct err *e)
{
    const struct sock_owner owner = owner_of(which, s, workers);

    return which == SOCKET_EVENTS ? events_listen(address, workers, e)
                                  : sock_listen(address, &owner, e);
}

static const char *mend_of(const struct err *cause)
{
    switch (cause->sys) {
    case EACCES:
    case EROFS:
        return "; let this account listen there (its folder's owner), or set another address";
    case ENOENT:
        return "; make its folder, or set another address";
    case EADDRNOTAVAIL:
        return "; this machine does not have that address: set another one";
    default:
        return "";
    }
}

/* /run is empty after a boot. Where it cannot be made, listening says what is wrong. */
static void make_folder_of(const char *address)
{
    const char *slash = strrchr(address, '/');
    AUTO_FREE char *folder = mem_strndup(address, slash ? (size_t)(slash - address) : 0);

    if (*folder && mkdir(folder, 0755) == 0 && chmod(folder, 0755) == 0) /* whatever the umask */
        log_info("made the folder %s", folder);
}

static int open_one(struct server_sockets *fresh, enum server_socket which,
                    const struct settings *s, const struct account *workers, struct err *e)
{
    const char *address = address_of(which, s);
    int *fd = &fresh->fds[which];
    struct err cause = ERR_INIT;

    if (take_handed(fresh, which, s, e) < 0)
        return -1;
    if (*fd >= 0 || !*address)
        return 0;
    make_folder_of(address);
    *fd = listen_at(which, address, s, workers, &cause);
    if (*fd < 0 && cause.kind == ERR_BUSY && s->takeover && strchr(address, '/')) {
        AUTO_FREE char *path = sock_beside(address);
        *fd = listen_at(which, path, s, workers, &cause);
        fresh->beside[which] = *fd >= 0;
    }
    if (*fd >= 0)
        return 0;
    if (cause.kind == ERR_BUSY)
        return err_set(e, ERR_BUSY,
                       "%s: %s; is the server started already (%s)? Else end that process, or set "
                       "another address",
                       setting_of(which), cause.text, remedy(REMEDY_STATUS));
    return err_set(e, cause.kind, "%s: %s%s", setting_of(which), cause.text, mend_of(&cause));
}

/* Is the open socket still the one that the settings want? */
static bool still_wanted(const struct server_sockets *open, enum server_socket which,
                         const struct settings *s)
{
    const char *address = address_of(which, s);
    int fd = open->fds[which];

    return fd >= 0 && (!address || open->handed[which] || sock_is_at(fd, address));
}

static int open_or_keep(struct server_sockets *fresh, const struct server_sockets *open,
                        enum server_socket which, const struct settings *s,
                        const struct account *workers, struct err *e)
{
    const char *address = address_of(which, s);

    if (still_wanted(open, which, s)) {
        const struct sock_owner owner = owner_of(which, s, workers);
        fresh->fds[which] = open->fds[which];
        fresh->handed[which] = open->handed[which];
        if (!address || open->handed[which])
            return 0;
        return sock_own(address, &owner, e) < 0 ? err_wrap(e, "%s", setting_of(which)) : 0;
    }
    if (!address) /* the second of a pair is opened with the first */
        return fresh->fds[which] < 0 ? pair_open(&fresh->fds[which], e) : 0;
    return open_one(fresh, which, s, workers, e);
}

/* With the file of a Unix socket. */
static void close_for_good(int *fd)
{
    struct sockaddr_un a = {0};
    socklen_t len = sizeof a;

    if (*fd >= 0 && getsockname(*fd, (struct sockaddr *)&a, &len) == 0 && a.sun_family == AF_UNIX &&
        a.sun_path[0] == '/')
        unlink(a.sun_path);
    auto_close_fd(fd);
}

int server_sockets_open(struct server_sockets *out, const struct settings *s,
                        const struct account *workers, struct err *e)
{
    struct server_sockets fresh = SERVER_SOCKETS_INIT;
    int rc = 0;

    for (enum server_socket i = 0; i < N_SOCKETS && rc == 0; i++)
        rc = open_or_keep(&fresh, out, i, s, workers, e);
    const struct server_sockets *kept = rc < 0 ? out : &fresh;
    struct server_sockets *dropped = rc < 0 ? &fresh : out;
    for (size_t i = 0; i < N_SOCKETS; i++)
        if (dropped->fds[i] != kept->fds[i])
            close_for_good(&dropped->fds[i]);
    *out = *kept;
    return rc;
}

bool server_sockets_are_beside(const struct server_sockets *s)
{
    for (size_t i = 0; i < N_SOCKETS; i++)
        if (s->beside[i])
            return true;
    return false;
}

int server_sockets_take_over(struct server_sockets *open, const struct settings *s, struct err *e)
{
    for (enum server_socket i = 0; i < N_SOCKETS; i++) {
        if (open->beside[i] && sock_take_over(open->fds[i], address_of(i, s), e) < 0)
            return err_wrap(e, "%s", setting_of(i));
        open->beside[i] = false;
    }
    return 0;
}

/* ---- the end ---- */

bool server_sockets_keep_queue(const struct server_sockets *s)
{
    int family = AF_UNSPEC;
    socklen_t len = sizeof family;

    return getsockopt(s->fds[SOCKET_FASTCGI], SOL_SOCKET, SO_DOMAIN, &family, &len) == 0 &&
           family == AF_UNIX;
}

void server_sockets_keep(struct server_sockets *s, unsigned which)
{
    for (size_t i = 0; i < N_SOCKETS; i++)
        if (!(which & 1u << i))
            auto_close_fd(&s->fds[i]);
}

void server_sockets_shut(const struct server_sockets *s, unsigned which)
{
    for (size_t i = 0; i < N_SOCKETS; i++)
        if (which & 1u << i && !s->handed[i])
            shutdown(s->fds[i], SHUT_RD);
}

void server_sockets_close(struct server_sockets *s)
{
    for (size_t i = 0; i < N_SOCKETS; i++)
        auto_close_fd(&s->fds[i]);
}
