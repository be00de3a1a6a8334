#include "config.h"

#include "common/base/sock.h"

#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BESIDE_BYTES 4 /* of the random name of a socket beside its address */

static int set_unix_address(struct sockaddr_un *a, const char *path, struct err *e)
{
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof a->sun_path)
        return err_set(e, ERR_INVALID, "the socket path %s must have 1 to %zu characters", path,
                       sizeof a->sun_path - 1);
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(a->sun_path, path, len + 1);
    return 0;
}

/* Removes a socket file without a listener; any other file at the path is an error. */
static int remove_stale(const struct sockaddr_un *a, struct err *e)
{
    struct stat st;
    if (lstat(a->sun_path, &st) < 0) {
        if (errno == ENOENT)
            return 0;
        return err_errno(e, "cannot stat %s", a->sun_path);
    }
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, ERR_INVALID, "%s exists and is not a socket", a->sun_path);
    /* Non-blocking: a listener with a full queue answers EAGAIN. */
    AUTO_FD int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return err_errno(e, "cannot create a socket");
    int rc = connect(probe, (const struct sockaddr *)a, sizeof *a);
    if (rc == 0 || errno == EAGAIN)
        return err_set(e, ERR_BUSY, "%s: another process listens there", a->sun_path);
    if (errno == ENOENT)
        return 0;
    if (errno != ECONNREFUSED)
        return err_errno(e, "cannot tell whether a process listens on %s", a->sun_path);
    if (unlink(a->sun_path) < 0 && errno != ENOENT)
        return err_errno(e, "cannot remove the stale socket %s", a->sun_path);
    return 0;
}

/*
 * FCGX_OpenSocket is not used since it removes any file at the path, ends the process on failure,
 * leaves the descriptor open across exec, and sets a mode of its own.
 */
static int listen_unix(const char *path, const struct sock_owner *owner, struct err *e)
{
    static const struct sock_owner ours = {(uid_t)-1, (gid_t)-1, 0660};
    struct sockaddr_un a;
    if (!owner)
        owner = &ours;
    if (set_unix_address(&a, path, e) < 0 || remove_stale(&a, e) < 0)
        return -1;
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, "cannot create a socket");
    /* The file is created with its mode; connections are refused until listen, so the owner may be
     * set later. */
    mode_t umask_before = umask(~owner->mode & 0777);
    int rc = bind(fd, (const struct sockaddr *)&a, sizeof a);
    umask(umask_before);
    if (rc < 0)
        return err_errno(e, "cannot bind to %s", a.sun_path);
    if ((owner->uid != (uid_t)-1 || owner->gid != (gid_t)-1) &&
        lchown(a.sun_path, owner->uid, owner->gid) < 0) {
        err_errno(e, "cannot set the owner of %s", a.sun_path);
        unlink(a.sun_path);
        return -1;
    }
    if (listen(fd, SOMAXCONN) < 0)
        return err_errno(e, "cannot listen on %s", a.sun_path);
    return TAKE_FD(fd);
}

struct inet_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to;
    socklen_t len;
};

/* "127.0.0.1:9000" or "[::1]:9000": numeric only: no name service decides where we listen. */
static int set_inet_address(struct inet_address *a, const char *text, struct err *e)
{
    const char *colon = strrchr(text, ':');
    uint64_t port;
    char host[INET6_ADDRSTRLEN];
    size_t len = colon ? (size_t)(colon - text) : 0;
    bool brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    if (brackets) {
        text++;
        len -= 2;
    }
    if (!colon || len == 0 || len >= sizeof host || parse_u64(colon + 1, 1, 65535, &port) < 0)
        goto bad;
    memcpy(host, text, len);
    host[len] = '\0';
    *a = (struct inet_address){0};
    if (brackets && inet_pton(AF_INET6, host, &a->to.v6.sin6_addr) == 1) {
        a->to.v6.sin6_family = AF_INET6;
        a->to.v6.sin6_port = htons((uint16_t)port);
        a->len = sizeof a->to.v6;
        return 0;
    }
    if (!brackets && inet_pton(AF_INET, host, &a->to.v4.sin_addr) == 1) {
        a->to.v4.sin_family = AF_INET;
        a->to.v4.sin_port = htons((uint16_t)port);
        a->len = sizeof a->to.v4;
        return 0;
    }
bad:
    return err_set(e, ERR_INVALID,
                   "a listening address is a path with a slash, or ADDRESS:PORT in numbers "
                   "(127.0.0.1:9000, [::1]:9000)");
}

static int listen_inet(const char *address, struct err *e)
{
    struct inet_address a;
    if (set_inet_address(&a, address, e) < 0)
        return -1;
    AUTO_FD int fd = socket(a.to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
        return err_errno(e, "cannot create a socket for %s", address);
    if (bind(fd, &a.to.any, a.len) < 0 || listen(fd, SOMAXCONN) < 0) {
        if (errno == EADDRINUSE)
            return err_set(e, ERR_BUSY, "%s: another process listens there", address);
        return err_errno(e, "cannot listen on %s", address);
    }
    return TAKE_FD(fd);
}

int sock_listen(const char *address, const struct sock_owner *owner, struct err *e)
{
    return strchr(address, '/') ? listen_unix(address, owner, e) : listen_inet(address, e);
}

int sock_address_check(const char *address, struct err *e)
{
    struct sockaddr_un path;
    struct inet_address inet;

    return strchr(address, '/') ? set_unix_address(&path, address, e)
                                : set_inet_address(&inet, address, e);
}

char *sock_beside(const char *address)
{
    char random[CRYPTO_HEX_LEN(BESIDE_BYTES)];

    crypto_random_hex(BESIDE_BYTES, random);
    return mem_printf("%s.%s", address, random);
}

/* Is bound the path, or was it made beside it? */
static bool is_beside(const char *bound, const char *path)
{
    const size_t n = strlen(path);

    if (strncmp(bound, path, n) != 0 || bound[n] == '\0')
        return strcmp(bound, path) == 0;
    return bound[n] == '.' && strspn(bound + n + 1, "0123456789abcdef") == 2 * BESIDE_BYTES &&
           bound[n + 1 + 2 * BESIDE_BYTES] == '\0';
}

int sock_take_over(int fd, const char *address, struct err *e)
{
    struct sockaddr_un bound = {0};
    socklen_t len = sizeof bound - 1;

    if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0)
        return err_errno(e, "cannot tell where a socket is");
    if (rename(bound.sun_path, address) < 0)
        return err_errno(e, "cannot rename %s to %s", bound.sun_path, address);
    return 0;
}

bool sock_is_at(int fd, const char *address)
{
    union {
        struct sockaddr any;
        struct sockaddr_un path;
        struct inet_address inet;
    } wanted, bound = {0};
    struct err none = ERR_INIT;
    socklen_t len = sizeof bound;

    if (getsockname(fd, &bound.any, &len) < 0)
        return false;
    if (strchr(address, '/'))
        return set_unix_address(&wanted.path, address, &none) == 0 &&
               bound.any.sa_family == AF_UNIX &&
               is_beside(bound.path.sun_path, wanted.path.sun_path);
    return set_inet_address(&wanted.inet, address, &none) == 0 && len == wanted.inet.len &&
           memcmp(&bound.inet.to, &wanted.inet.to, len) == 0;
}

int sock_own(const char *address, const struct sock_owner *owner, struct err *e)
{
    if (!strchr(address, '/'))
        return 0;
    if ((owner->uid != (uid_t)-1 || owner->gid != (gid_t)-1) &&
        lchown(address, owner->uid, owner->gid) < 0)
        return err_errno(e, "cannot set the owner of %s", address);
    return chmod(address, owner->mode) < 0 ? err_errno(e, "cannot set the mode of %s", address) : 0;
}

int sock_connect_unix(const char *path, struct err *e)
{
    struct sockaddr_un a;
    if (set_unix_address(&a, path, e) < 0)
        return -1;
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, "cannot create a socket");
    int rc;
    do
        rc = connect(fd, (const struct sockaddr *)&a, sizeof a);
    while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return TAKE_FD(fd);
    if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN)
        return err_set(e, ERR_UNAVAILABLE, "%s: no process listens there", path);
    if (errno == EACCES || errno == EPERM)
        return err_set(e, ERR_DENIED, "not allowed to connect to %s", path);
    return err_errno(e, "cannot connect to %s", path);
}

bool sock_is_listening(int fd)
{
    int yes = 0;
    socklen_t len = sizeof yes;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 && yes;
}

int sock_peer(int fd, uid_t *out_uid, pid_t *out_pid, struct err *e)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return err_errno(e, "cannot read the credentials of the peer");
    if (out_uid)
        *out_uid = peer.uid;
    if (out_pid)
        *out_pid = peer.pid;
    return 0;
}
