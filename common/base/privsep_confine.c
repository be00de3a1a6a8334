#include "config.h"

#include "common/base/privsep.h"

#include "common/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef TCGETS
#include <asm/termbits.h>
#endif

/* ---- Landlock: files, TCP, signals. The C library has no calls for it, older headers no names
 * ---- */

enum {
    CREATE_RULESET = 444, /* system calls, the same on all architectures */
    ADD_RULE,
    RESTRICT_SELF,
};

enum { GET_VERSION = 1 }; /* flag of CREATE_RULESET */
enum { RULE_BENEATH = 1, RULE_PORT = 2 };

#define FS_WRITE_FILE  (1u << 1)
#define FS_READ_FILE   (1u << 2)
#define FS_READ_DIR    (1u << 3)
#define FS_REMOVE_FILE (1u << 5)
#define FS_MAKE_FILE   (1u << 8)
#define FS_MAKE_FIFO   (1u << 10)
#define FS_TRUNCATE    (1u << 14)
#define FS_ALL_1       ((1u << 13) - 1) /* of version 1; further ones came with */
#define FS_ALL_2       ((1u << 14) - 1)
#define FS_ALL_3       ((1u << 15) - 1)
#define FS_ALL_5       ((1u << 16) - 1)
#define FS_CHANGE                                                                                  \
    (FS_WRITE_FILE | FS_READ_FILE | FS_READ_DIR | FS_REMOVE_FILE | FS_MAKE_FILE | FS_MAKE_FIFO |   \
     FS_TRUNCATE)

#define TCP_BIND    (1u << 0)
#define TCP_CONNECT (1u << 1)

#define SCOPE_ABSTRACT_SOCKETS (1u << 0)
#define SCOPE_SIGNALS          (1u << 1)

struct ruleset {
    uint64_t fs, net, scoped;
};

struct rule_beneath {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

struct rule_port {
    uint64_t allowed, port;
};

int privsep_landlock_version(void)
{
    long version = syscall(CREATE_RULESET, NULL, 0, GET_VERSION);

    return version < 0 ? 0 : (int)version;
}

static uint64_t fs_rights(int version)
{
    return version >= 5 ? FS_ALL_5 : version >= 3 ? FS_ALL_3 : version == 2 ? FS_ALL_2 : FS_ALL_1;
}

static int allow_beneath(int ruleset, int fd, uint64_t allowed)
{
    const struct rule_beneath rule = {.allowed = allowed, .fd = fd};

    return syscall(ADD_RULE, ruleset, RULE_BENEATH, &rule, 0) < 0 ? -1 : 0;
}

/* What is not there cannot be allowed, and need not be. */
static int allow_reading(int ruleset, const char *path)
{
    struct stat st;
    AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) < 0)
        return -1;
    return allow_beneath(ruleset, fd,
                         S_ISDIR(st.st_mode) ? FS_READ_FILE | FS_READ_DIR : FS_READ_FILE);
}

static int allow_port(int ruleset, uint16_t port)
{
    const struct rule_port rule = {.allowed = TCP_CONNECT, .port = port};

    return syscall(ADD_RULE, ruleset, RULE_PORT, &rule, 0) < 0 ? -1 : 0;
}

static int restrict_files(const struct privsep_needs *needs, int version)
{
    bool with_ports = needs->ports && version >= PRIVSEP_LANDLOCK_TCP;
    const struct ruleset set = {
        .fs = fs_rights(version),
        .net = with_ports ? TCP_BIND | TCP_CONNECT : 0,
        .scoped = version >= PRIVSEP_LANDLOCK_SIGNALS ? SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS : 0,
    };
    AUTO_FD int ruleset = (int)syscall(CREATE_RULESET, &set, sizeof set, 0);

    if (ruleset < 0)
        return -1;
    for (const char *const *path = needs->files; path && *path; path++)
        if (allow_reading(ruleset, *path) < 0)
            return -1;
    if (needs->folder_fd >= 0 && allow_beneath(ruleset, needs->folder_fd, FS_CHANGE & set.fs) < 0)
        return -1;
    for (const uint16_t *port = needs->ports; with_ports && *port; port++)
        if (allow_port(ruleset, *port) < 0)
            return -1;
    return syscall(RESTRICT_SELF, ruleset, 0) < 0 ? -1 : 0;
}

/* ---- seccomp ---- */

/*
 * Of a program with libc, OpenSSL, libcurl and threads. Names, as an older library or another
 * architecture lacks some. Calls of processes, sockets and devices are below.
 */
static const char ordinary_calls[] =
    /* open files */
    "read write readv writev pread64 pwrite64 preadv preadv2 pwritev pwritev2 lseek _llseek close "
    "close_range dup dup2 dup3 fcntl fcntl64 flock fsync fdatasync ftruncate ftruncate64 fallocate "
    "fadvise64 fadvise64_64 arm_fadvise64_64 sendfile sendfile64 splice tee copy_file_range "
    "memfd_create fstat fstat64 fstatfs fstatfs64 getdents getdents64 fchmod "
    /* files by name */
    "open openat openat2 stat stat64 lstat lstat64 newfstatat fstatat64 statx statfs statfs64 "
    "access faccessat faccessat2 readlink readlinkat getcwd mknodat unlink unlinkat rename "
    "renameat renameat2 umask inotify_init1 inotify_add_watch inotify_rm_watch "
    /* memory */
    "brk mmap mmap2 munmap mremap mprotect madvise mlock mlock2 munlock mincore membarrier mseal "
    /* threads and time */
    "futex futex_time64 futex_waitv set_robust_list get_robust_list rseq set_tid_address "
    "set_thread_area arch_prctl sched_yield sched_getaffinity getcpu clock_gettime clock_gettime64 "
    "clock_getres clock_getres_time64 clock_nanosleep clock_nanosleep_time64 nanosleep "
    "gettimeofday time times setitimer getitimer alarm timer_create timer_settime timer_settime64 "
    "timer_gettime timer_delete timerfd_create timerfd_settime timerfd_settime64 "
    /* the process itself */
    "getpid getppid gettid getpgrp getpgid getsid getuid getuid32 geteuid geteuid32 getgid "
    "getgid32 getegid getegid32 getresuid getresuid32 getresgid getresgid32 getgroups getgroups32 "
    "getrlimit ugetrlimit setrlimit getrusage sysinfo uname getrandom prctl exit exit_group "
    "restart_syscall rt_sigaction rt_sigprocmask rt_sigpending rt_sigreturn rt_sigsuspend "
    "rt_sigtimedwait rt_sigtimedwait_time64 sigaltstack sigreturn signalfd4 wait4 waitid "
    /* waiting, pipes, open sockets */
    "poll ppoll ppoll_time64 select _newselect pselect6 pselect6_time64 epoll_create1 epoll_ctl "
    "epoll_wait epoll_pwait epoll_pwait2 eventfd2 pipe pipe2 accept accept4 "
    "getsockname getpeername getsockopt setsockopt send sendmsg sendmmsg recv recvfrom "
    "recvmsg recvmmsg recvmmsg_time64 shutdown";

/* No library calls these: other bytes than ours have taken over the process. */
static const char deadly_calls[] =
    "execve execveat ptrace process_vm_readv process_vm_writev pidfd_getfd unshare setns mount "
    "umount2 pivot_root chroot bpf perf_event_open open_by_handle_at keyctl add_key request_key "
    "init_module finit_module userfaultfd";

/* What libc and libcurl ask of a descriptor. A terminal's input cannot be forged. */
static const scmp_datum_t harmless_ioctls[] = {FIONREAD, FIONBIO, FIOCLEX, TCGETS};

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)
#define CALL_NAME_MAX 31
#define SOCKET_TYPES  0xfu /* of socketpair's type, which has flags as well */
#ifdef __s390__
#define CLONE_FLAGS_ARG 1
#else
#define CLONE_FLAGS_ARG 0
#endif

/* A name that the library does not know is of a call that nothing here makes. */
static int add_rule(scmp_filter_ctx filter, uint32_t action, const char *name,
                    const struct scmp_arg_cmp *arg)
{
    int call = seccomp_syscall_resolve_name(name);

    if (call == __NR_SCMP_ERROR)
        return 0;
    return seccomp_rule_add_array(filter, action, call, arg ? 1 : 0, arg);
}

/* names: with blanks between them. */
static int add_rules(scmp_filter_ctx filter, uint32_t action, const char *names)
{
    char name[CALL_NAME_MAX + 1];

    for (size_t len; *names; names += len + strspn(names + len, " ")) {
        len = strcspn(names, " ");
        if (len > CALL_NAME_MAX)
            return -1;
        memcpy(name, names, len);
        name[len] = '\0';
        if (add_rule(filter, action, name, NULL) < 0)
            return -1;
    }
    return 0;
}

static bool is_needed(const struct privsep_needs *needs, int family)
{
    for (const int *one = needs->families; one && *one; one++)
        if (*one == family)
            return true;
    return false;
}

/* Of those that a process does not need, libraries try some and do without; others are an attack.
 */
static uint32_t action_for(const struct privsep_needs *needs, int family)
{
    bool usual = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
                 family == AF_NETLINK;

    if (is_needed(needs, family))
        return SCMP_ACT_ALLOW;
    return usual && needs->families ? SCMP_ACT_ERRNO(EAFNOSUPPORT) : SCMP_ACT_KILL_PROCESS;
}

static int add_sockets(scmp_filter_ctx filter, const struct privsep_needs *needs)
{
    for (int family = 0; family <= AF_NETLINK; family++)
        if (add_rule(filter, action_for(needs, family), "socket",
                     &SCMP_A0(SCMP_CMP_EQ, (unsigned)family)) < 0)
            return -1;
    return add_rule(filter, SCMP_ACT_KILL_PROCESS, "socket", &SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
}

/* The filter cannot see sendmsg's address, but a pair of streams sends to nothing else. */
static int add_addresses(scmp_filter_ctx filter, const struct privsep_needs *needs)
{
    const struct scmp_arg_cmp stream[] = {SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
                                          SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPES, SOCK_STREAM)};
    const struct scmp_arg_cmp no_address = SCMP_A4(SCMP_CMP_EQ, 0);

    if (seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), ARRAY_LEN(stream),
                               stream) < 0)
        return -1;
    return needs->families ? add_rules(filter, SCMP_ACT_ALLOW, "bind connect listen sendto")
                           : add_rule(filter, SCMP_ACT_ALLOW, "sendto", &no_address);
}

/* clone3's flags cannot be seen: without it libc uses clone. */
static int add_children(scmp_filter_ctx filter, bool children)
{
    const scmp_datum_t mask = children ? NAMESPACES : NAMESPACES | CLONE_THREAD;
    const scmp_datum_t wanted = children ? 0 : CLONE_THREAD;
    const struct scmp_arg_cmp flags = SCMP_CMP(CLONE_FLAGS_ARG, SCMP_CMP_MASKED_EQ, mask, wanted);
    const struct scmp_arg_cmp self = SCMP_A0(SCMP_CMP_EQ, (unsigned)getpid());

    if (add_rule(filter, SCMP_ACT_ALLOW, "clone", &flags) < 0)
        return -1;
    return children ? add_rules(filter, SCMP_ACT_ALLOW, "fork kill tgkill")
                    : add_rule(filter, SCMP_ACT_ALLOW, "tgkill", &self); /* abort */
}

static int add_ordinary(scmp_filter_ctx filter, const struct privsep_needs *needs)
{
    for (size_t i = 0; i < ARRAY_LEN(harmless_ioctls); i++) {
        const struct scmp_arg_cmp request = SCMP_A1(SCMP_CMP_EQ, harmless_ioctls[i]);
        if (add_rule(filter, SCMP_ACT_ALLOW, "ioctl", &request) < 0)
            return -1;
    }
    if (add_rule(filter, SCMP_ACT_ALLOW, "prlimit64", &SCMP_A0(SCMP_CMP_EQ, 0)) < 0 ||
        add_addresses(filter, needs) < 0 || add_children(filter, needs->children) < 0)
        return -1;
    return add_rules(filter, SCMP_ACT_ALLOW, ordinary_calls);
}

/* Other calls fail as on a kernel that does not have them: libraries are prepared for that. */
static int restrict_calls(const struct privsep_needs *needs)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    bool ok = filter &&
              seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0 &&
              add_rules(filter, SCMP_ACT_KILL_PROCESS, deadly_calls) == 0 &&
              (needs->calls ? add_rules(filter, SCMP_ACT_ALLOW, needs->calls)
                            : add_ordinary(filter, needs)) == 0 &&
              add_sockets(filter, needs) == 0 && seccomp_load(filter) == 0;

    seccomp_release(filter);
    return ok ? 0 : -1;
}

/* ---- both ---- */

/* A filter that is not there is an error of the address, if filters are known. */
bool privsep_has_seccomp(void)
{
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}

const char *const privsep_network_files[] = {
    /* names of hosts */
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/services", "/run/systemd/resolve",
    /* libraries that libc loads for them */
    "/etc/ld.so.cache", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store",
    /* certificates and OpenSSL's settings */
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust",
    "/etc/ca-certificates", "/etc/crypto-policies", "/usr/share/crypto-policies",
    "/usr/share/ca-certificates", "/usr/share/pki", "/usr/local/share/ca-certificates",
    "/var/lib/ca-certificates",
    /* where the kernel's random numbers come from a file */
    "/dev/urandom", NULL};

const int privsep_network_families[] = {AF_INET, AF_INET6, AF_NETLINK, 0};

int privsep_confine(const struct privsep_needs *needs, struct err *e)
{
    int version = privsep_landlock_version();

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_errno(e, "no_new_privs");
    if (version > 0 && restrict_files(needs, version) < 0)
        return err_errno(e, "Landlock version %d", version);
    if (!needs->calls && !privsep_has_seccomp())
        return 0;
    if (restrict_calls(needs) < 0)
        return err_set(e, ERR_INTERNAL, "the filter of system calls cannot be loaded");
    return 0;
}
