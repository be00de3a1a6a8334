/*
 * What a process tries that hostile bytes have taken over: other files, programs, sockets,
 * processes. A test states how its process gives up its rights, and what that process needs.
 */
#pragma once

#include "common/base/privsep.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ESCAPED       77 /* exit status */
#define OUT_THERE_FDS 4  /* sockets */

enum { NEEDS_INTERNET = 1, NEEDS_ANY_PORT = 2, NEEDS_CHILDREN = 4 };

/* What is there to be reached. Everyone may read the file and write to the folder. */
static struct {
    char folder[PATH_MAX], file[PATH_MAX + 8], fresh[PATH_MAX + 8], proc[64];
    struct sockaddr_un abstract, stream, datagram; /* the latter two have a path */
    socklen_t abstract_len;
    struct sockaddr_in tcp;
    pid_t parent, sibling;
} out_there;

static inline bool escape_can_open(const char *path, int flags)
{
    return open(path, flags | O_CLOEXEC, 0600) >= 0;
}

static inline bool escape_reads_a_file(void)
{
    return escape_can_open(out_there.file, O_RDONLY);
}

static inline bool escape_reads_mounts(void)
{
    return escape_can_open(out_there.proc, O_RDONLY);
}

static inline bool escape_lists_a_folder(void)
{
    return escape_can_open("/", O_RDONLY | O_DIRECTORY);
}

static inline bool escape_makes_a_file(void)
{
    return escape_can_open(out_there.fresh, O_WRONLY | O_CREAT);
}

static inline bool escape_writes_a_file(void)
{
    return escape_can_open(out_there.file, O_WRONLY);
}

static inline bool escape_changes_a_mode(void)
{
    return chmod(out_there.file, 0666) == 0;
}

static inline bool escape_starts_a_program(void)
{
    execl("/bin/sh", "sh", "-c", "exit 77", (char *)NULL);
    return false;
}

static inline bool escape_has_socket(int family, int type)
{
    return socket(family, type | SOCK_CLOEXEC, 0) >= 0;
}

static inline bool escape_opens_unix(void)
{
    return escape_has_socket(AF_UNIX, SOCK_STREAM);
}

static inline bool escape_opens_tcp(void)
{
    return escape_has_socket(AF_INET, SOCK_STREAM);
}

static inline bool escape_opens_netlink(void)
{
    return escape_has_socket(AF_NETLINK, SOCK_RAW);
}

static inline bool escape_opens_packet(void)
{
    return escape_has_socket(AF_PACKET, SOCK_RAW);
}

static inline bool escape_opens_alg(void)
{
    return escape_has_socket(38, SOCK_SEQPACKET); /* AF_ALG */
}

static inline bool escape_connects(const void *to, socklen_t len)
{
    const struct sockaddr *a = to;
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, a, len) == 0;
}

static inline bool escape_connects_to_a_port(void)
{
    return escape_connects(&out_there.tcp, sizeof out_there.tcp);
}

static inline bool escape_connects_to_an_abstract_socket(void)
{
    return escape_connects(&out_there.abstract, out_there.abstract_len);
}

static inline bool escape_connects_to_a_path(void)
{
    return escape_connects(&out_there.stream, sizeof out_there.stream);
}

static inline bool escape_sends_to_a_path(int type)
{
    struct iovec part = {&part, 1};
    const struct msghdr m = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_name = &out_there.datagram,
                             .msg_namelen = sizeof out_there.datagram};
    int pair[2];

    return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == 0 &&
           sendmsg(pair[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

static inline bool escape_sends_a_datagram(void)
{
    return escape_sends_to_a_path(SOCK_DGRAM);
}

static inline bool escape_traces(void)
{
    return ptrace(PTRACE_SEIZE, out_there.sibling, NULL, NULL) == 0;
}

static inline bool escape_reads_memory(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {&out_there, 1};

    return process_vm_readv(out_there.sibling, &here, 1, &there, 1, 0) == 1;
}

static inline bool escape_signals_its_parent(void)
{
    return kill(out_there.parent, 0) == 0;
}

static inline bool escape_signals_a_sibling(void)
{
    return kill(out_there.sibling, 0) == 0;
}

static inline bool escape_limits_a_sibling(void)
{
    struct rlimit limit;

    return prlimit(out_there.sibling, RLIMIT_NOFILE, NULL, &limit) == 0;
}

static inline bool escape_makes_a_user_namespace(void)
{
    return unshare(CLONE_NEWUSER) == 0;
}

static inline bool escape_forks_with_a_namespace(void)
{
    return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
}

static inline bool escape_mounts(void)
{
    return mount("none", out_there.folder, "tmpfs", 0, NULL) == 0;
}

static inline bool escape_asks_for_keys(void)
{
    return syscall(SYS_keyctl, 0, -4, 1) >= 0; /* the session's keyring */
}

static inline bool escape_changes_root(void)
{
    return chroot(out_there.folder) == 0;
}

static inline bool escape_forks(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return pid > 0;
}

static const struct escape {
    const char *name;
    bool (*works)(void);
    int unless;   /* NEEDS_…: an escape of other processes only */
    int landlock; /* version that prevents it; 0: seccomp does */
    bool strong;  /* needs rights: without a cage it may fail as well */
} escapes[] = {
    {"reads a file", escape_reads_a_file, 0, 1, false},
    {"reads another process's mounts", escape_reads_mounts, 0, 1, false},
    {"lists a folder", escape_lists_a_folder, 0, 1, false},
    {"writes a file", escape_writes_a_file, 0, 1, false},
    {"makes a file", escape_makes_a_file, 0, 1, false},
    {"changes a file's mode", escape_changes_a_mode, 0, 0, false},
    {"starts a program", escape_starts_a_program, 0, 0, false},
    {"opens a Unix socket", escape_opens_unix, 0, 0, false},
    {"connects to a socket's path", escape_connects_to_a_path, 0, 0, false},
    {"sends a datagram to a path", escape_sends_a_datagram, 0, 0, false},
    {"opens a TCP socket", escape_opens_tcp, NEEDS_INTERNET, 0, false},
    {"opens a netlink socket", escape_opens_netlink, NEEDS_INTERNET, 0, false},
    {"opens a packet socket", escape_opens_packet, 0, 0, true},
    {"opens a socket of the kernel's ciphers", escape_opens_alg, 0, 0, true},
    {"connects to a local port", escape_connects_to_a_port, NEEDS_ANY_PORT, 4, false},
    {"connects to an abstract socket", escape_connects_to_an_abstract_socket, 0, 6, false},
    {"traces a sibling", escape_traces, 0, 0, true},
    {"reads a sibling's memory", escape_reads_memory, 0, 0, true},
    {"signals its parent", escape_signals_its_parent, 0, 6, false},
    {"signals a sibling", escape_signals_a_sibling, 0, 6, false},
    {"changes a sibling's limits", escape_limits_a_sibling, 0, 0, false},
    {"makes a user namespace", escape_makes_a_user_namespace, 0, 0, true},
    {"forks into a user namespace", escape_forks_with_a_namespace, 0, 0, true},
    {"mounts", escape_mounts, 0, 0, true},
    {"asks for keys", escape_asks_for_keys, 0, 0, true},
    {"changes its root", escape_changes_root, 0, 0, true},
    {"forks", escape_forks, NEEDS_CHILDREN, 0, false},
};

/* How a process ends that gives up its rights (enter NULL: keeps them) and tries that. */
static inline int escape_status(const struct escape *escape, int (*enter)(void *), void *arg)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (enter && enter(arg) < 0)
            _exit(1);
        _exit(escape->works() ? ESCAPED : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static inline bool escape_is_none(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSYS : WEXITSTATUS(status) == 0;
}

static inline void escape_assert_one(const struct escape *escape, int (*enter)(void *), void *arg,
                                     int landlock)
{
    if (!escape->strong) { /* else the test would prove nothing */
        int free_status = escape_status(escape, NULL, NULL);
        if (!WIFEXITED(free_status) || WEXITSTATUS(free_status) != ESCAPED)
            fail_msg("a process without a cage does not do this: %s", escape->name);
    }
    if (escape->landlock > landlock) {
        print_message("this kernel's Landlock (%d) is too old to prevent: %s\n", landlock,
                      escape->name);
        return;
    }
    int status = escape_status(escape, enter, arg);
    if (!escape_is_none(status))
        fail_msg("%s (status %x)", escape->name, (unsigned)status);
}

static inline int escape_bind(int type, const void *at, socklen_t len)
{
    const struct sockaddr *a = at;
    int fd = socket(a->sa_family, type | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, a, len), 0);
    return fd;
}

static inline int escape_listen(const void *at, socklen_t len, void *bound, socklen_t *bound_len)
{
    int fd = escape_bind(SOCK_STREAM, at, len);

    assert_int_equal(listen(fd, 128), 0);
    assert_int_equal(getsockname(fd, bound, bound_len), 0);
    return fd;
}

static inline struct sockaddr_un escape_path(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    assert_in_range(snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", out_there.folder, name), 1,
                    sizeof a.sun_path - 1);
    return a;
}

static inline void out_there_make(int fds[OUT_THERE_FDS])
{
    static const struct sockaddr_un any_name = {.sun_family = AF_UNIX};
    static const struct sockaddr_in any_port = {.sin_family = AF_INET,
                                                .sin_addr.s_addr = 0x0100007f}; /* 127.0.0.1 */
    socklen_t len = sizeof out_there.tcp;

    unit_make_folder(out_there.folder);
    snprintf(out_there.file, sizeof out_there.file, "%s/file", out_there.folder);
    snprintf(out_there.fresh, sizeof out_there.fresh, "%s/fresh", out_there.folder);
    unit_write_file(out_there.file, "x", 1);
    assert_int_equal(chmod(out_there.folder, 0777) | chmod(out_there.file, 0666), 0);
    out_there.parent = getpid();
    snprintf(out_there.proc, sizeof out_there.proc, "/proc/%d/mountinfo", (int)out_there.parent);
    out_there.abstract_len = sizeof out_there.abstract;
    fds[0] = escape_listen(&any_name, sizeof(sa_family_t), &out_there.abstract,
                           &out_there.abstract_len);
    fds[1] = escape_listen(&any_port, sizeof any_port, &out_there.tcp, &len);
    struct sockaddr_un ours = out_there.stream = escape_path("stream");
    fds[2] = escape_listen(&ours, sizeof ours, &out_there.stream, &(socklen_t){sizeof ours});
    out_there.datagram = escape_path("datagram");
    fds[3] = escape_bind(SOCK_DGRAM, &out_there.datagram, sizeof out_there.datagram);
    assert_int_equal(chmod(ours.sun_path, 0666) | chmod(out_there.datagram.sun_path, 0666), 0);
    out_there.sibling = fork();
    if (out_there.sibling == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
}

/* From here on this process has a kernel without it. */
static inline void kernel_lacks_seccomp(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(seccomp), 0) < 0 ||
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1,
                         SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP)) < 0 ||
        seccomp_load(filter) < 0)
        _exit(1);
    seccomp_release(filter);
}

static inline void kernel_lacks_landlock(void)
{
    const int create_ruleset = 444;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), create_ruleset, 0) < 0 ||
        seccomp_load(filter) < 0)
        _exit(1);
    seccomp_release(filter);
}

/* Of /proc, which a process without files cannot read itself. */
static inline void assert_confined_status(int (*enter)(void *), void *arg)
{
    AUTO_BUF struct buf text = BUF_INIT(65536);
    char path[64], byte = 'x';
    struct err e = ERR_INIT;
    int ready[2];

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(ready[1], STDIN_FILENO) < 0 || enter(arg) < 0 ||
            write(STDIN_FILENO, &byte, 1) != 1)
            _exit(1);
        for (;;)
            sched_yield();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    assert_works(fdio_read_file(path, &text, &e), e);
    privsep_end(pid);
    close(ready[0]);
    assert_contains(buf_str(&text), "NoNewPrivs:\t1\n");
    assert_contains(buf_str(&text), "Seccomp:\t2\n");
}

/* needs: NEEDS_…, what enter leaves. */
static inline void assert_no_escape(int (*enter)(void *), void *arg, int needs)
{
    int landlock = privsep_landlock_version(), fds[OUT_THERE_FDS];

    out_there_make(fds);
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++)
        if (!(escapes[i].unless & needs))
            escape_assert_one(&escapes[i], enter, arg, landlock);
    assert_confined_status(enter, arg);
    privsep_end(out_there.sibling);
    for (size_t i = 0; i < OUT_THERE_FDS; i++)
        close(fds[i]);
    unlink(out_there.stream.sun_path);
    unlink(out_there.datagram.sun_path);
    unlink(out_there.fresh);
    unlink(out_there.file);
    rmdir(out_there.folder);
}
