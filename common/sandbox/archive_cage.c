#include "config.h"

#include "common/sandbox/archive_cage.h"

#include "common/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY    65534
#define CPU_MAX_S 120
#define MEMORY_MAX                                                                                 \
    (512u << 20) /* xz asks for 65 MiB at its strongest usual level, zstd for 128 MiB */

/* ---- from outside ---- */

static void become_program(const char *command, int in_fd, int out_fd)
{
    char *argv[] = {(char *)(uintptr_t) "sandcgi", (char *)(uintptr_t)command, NULL};
    char *envp[] = {NULL};
    AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (dup2(in_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0 || close_range(STDERR_FILENO + 1, ~0u, 0) < 0)
        return;
    execve("/proc/self/exe", argv, envp);
}

int archive_cage_start(const char *command, int in_fd, pid_t *out_pid, struct err *e)
{
    int pipe_fds[2];

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_errno(e, "a pipe for the archive's reader");
    AUTO_FD int from = pipe_fds[0];
    AUTO_FD int to = pipe_fds[1];
    /* Copies above the standard ones, which dup2 is about to replace. */
    AUTO_FD int high_in = fcntl(in_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    AUTO_FD int high_to = fcntl(to, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (high_in < 0 || high_to < 0)
        return err_errno(e, "descriptors for the archive's reader");
    *out_pid = fork();
    if (*out_pid == 0) {
        become_program(command, high_in, high_to);
        _exit(127);
    }
    if (*out_pid < 0)
        return err_errno(e, "a process for the archive's reader");
    return TAKE_FD(from);
}

void archive_cage_end(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* ---- from inside ---- */

/* Without root there is nothing to give up, and the filter below has to do. */
static int drop_rights(void)
{
    if (geteuid() == 0) {
        /* Where the kernel has no such namespaces the filter refuses sockets all the same. */
        (void)unshare(CLONE_NEWNET | CLONE_NEWIPC);
        if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
            setresuid(NOBODY, NOBODY, NOBODY) < 0)
            return -1;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

static int bound_resources(void)
{
    static const struct {
        __rlimit_resource_t resource;
        rlim_t max;
    } limits[] = {
#ifndef WITH_SANITIZER /* which reserves terabytes of addresses */
        {RLIMIT_AS, MEMORY_MAX},
#endif
        {RLIMIT_CPU, CPU_MAX_S}, {RLIMIT_FSIZE, 0}, {RLIMIT_NOFILE, STDERR_FILENO + 1},
        {RLIMIT_CORE, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        const struct rlimit limit = {.rlim_cur = limits[i].max, .rlim_max = limits[i].max};
        if (setrlimit(limits[i].resource, &limit) < 0)
            return -1;
    }
    return 0;
}

#if defined __x86_64__
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef FILTER_ARCH

#define ALLOW_CALL(nr)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(nr), 0, 1),                                     \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Everything else fails with EPERM: nothing can be opened, connected, started or signalled. */
static int filter_calls(void)
{
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW_CALL(__NR_read),
        ALLOW_CALL(__NR_write),
        ALLOW_CALL(__NR_lseek),
        ALLOW_CALL(__NR_pread64),
        ALLOW_CALL(__NR_fstat),
#ifdef __NR_newfstatat
        ALLOW_CALL(__NR_newfstatat), /* what fstat is in newer libraries */
#endif
        ALLOW_CALL(__NR_brk),
        ALLOW_CALL(__NR_mmap),
        ALLOW_CALL(__NR_munmap),
        ALLOW_CALL(__NR_mremap),
        ALLOW_CALL(__NR_mprotect),
        ALLOW_CALL(__NR_madvise),
        ALLOW_CALL(__NR_futex),
        ALLOW_CALL(__NR_getpid),
        ALLOW_CALL(__NR_gettid),
        ALLOW_CALL(__NR_getrandom),
        ALLOW_CALL(__NR_clock_gettime),
        ALLOW_CALL(__NR_rt_sigprocmask),
        ALLOW_CALL(__NR_rt_sigreturn),
        ALLOW_CALL(__NR_sigaltstack),
        ALLOW_CALL(__NR_sched_yield),
        ALLOW_CALL(__NR_close),
        ALLOW_CALL(__NR_exit),
        ALLOW_CALL(__NR_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog program = {.len = ARRAY_LEN(rules), .filter = rules};

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

#else

static int filter_calls(void)
{
    return 0;
}

#endif

int archive_cage_enter(void)
{
    if (drop_rights() < 0 || bound_resources() < 0)
        return -1;
    return filter_calls();
}
