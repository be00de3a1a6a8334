#include "config.h"

#include "common/sandbox/archive/archive_privsep.h"

#include "common/base/auto.h"
#include "common/base/privsep.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPU_MAX_S 120
#define MEMORY_MAX                                                                                 \
    (512u << 20) /* xz asks for 65 MiB at its strongest usual level, zstd for 128 MiB */

int archive_privsep_start(const char *command, int in_fd, pid_t *out_pid, struct err *e)
{
    int pipe_fds[2];

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_errno(e, "a pipe for the archive's reader");
    AUTO_FD int from = pipe_fds[0];
    AUTO_FD int to = pipe_fds[1];
    const int fds[] = {in_fd, to, -1};
    *out_pid = privsep_start(command, fds, ARRAY_LEN(fds), e);
    return *out_pid < 0 ? -1 : TAKE_FD(from);
}

static const struct privsep_limit limits[] = {
    {RLIMIT_AS, MEMORY_MAX},
    {RLIMIT_CPU, CPU_MAX_S},
    {RLIMIT_FSIZE, 0},
    {RLIMIT_NOFILE, STDERR_FILENO + 1},
};

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

/* Without root there are no rights to give up, and the filter has to do. */
int archive_privsep_enter(void)
{
    /* Where the kernel has no such namespaces the filter refuses sockets all the same. */
    if (geteuid() == 0)
        (void)unshare(CLONE_NEWNET | CLONE_NEWIPC);
    if (privsep_drop_rights() < 0 || privsep_bound(limits, ARRAY_LEN(limits)) < 0)
        return -1;
    return filter_calls();
}
