/* The system calls that no program of the container can make: runners/calls.md says why. */
#include "runners/common/entry.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter of system calls is for x86_64 and aarch64"
#endif

/* The last call that the table was made with. Later ones, and those of x32, do not exist here. */
#define NEWEST 469

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)
#define NEW_TIME 0x80 /* of unshare; in clone's flags these bits are a signal */

/* Calls that old headers lack. Their numbers are the same on all machines. */
enum {
    CALL_io_uring_setup = 425,
    CALL_io_uring_enter,
    CALL_io_uring_register,
    CALL_open_tree,
    CALL_move_mount,
    CALL_fsopen,
    CALL_fsconfig,
    CALL_fsmount,
    CALL_fspick,
    CALL_clone3 = 435,
    CALL_mount_setattr = 442,
    CALL_quotactl_fd,
    CALL_open_tree_attr = 467,
};

static const struct rule {
    unsigned call, err;
    uint32_t flags; /* the call fails if its first argument has one of them; 0: always */
    bool families;  /* or if that is another family, or protocol of it, than programs need */
} rules[] = {
    {SYS_socket, EAFNOSUPPORT, 0, true},
    {SYS_socketpair, EAFNOSUPPORT, 0, true},
    {SYS_clone, EPERM, NEW_NAMESPACES, false},
    {SYS_unshare, EPERM, NEW_NAMESPACES | NEW_TIME, false},
    {CALL_clone3, ENOSYS, 0, false},
    {SYS_setns, EPERM, 0, false},
    {SYS_mount, EPERM, 0, false},
    {SYS_umount2, EPERM, 0, false},
    {SYS_pivot_root, EPERM, 0, false},
    {CALL_open_tree, EPERM, 0, false},
    {CALL_open_tree_attr, EPERM, 0, false},
    {CALL_move_mount, EPERM, 0, false},
    {CALL_fsopen, EPERM, 0, false},
    {CALL_fsconfig, EPERM, 0, false},
    {CALL_fsmount, EPERM, 0, false},
    {CALL_fspick, EPERM, 0, false},
    {CALL_mount_setattr, EPERM, 0, false},
    {SYS_open_by_handle_at, EPERM, 0, false},
    {CALL_io_uring_setup, ENOSYS, 0, false},
    {CALL_io_uring_enter, ENOSYS, 0, false},
    {CALL_io_uring_register, ENOSYS, 0, false},
    {SYS_userfaultfd, EPERM, 0, false},
    {SYS_bpf, EPERM, 0, false},
    {SYS_perf_event_open, EPERM, 0, false},
    {SYS_fanotify_init, EPERM, 0, false},
    {SYS_add_key, EPERM, 0, false},
    {SYS_request_key, EPERM, 0, false},
    {SYS_keyctl, EPERM, 0, false},
    {SYS_syslog, EPERM, 0, false},
    {SYS_quotactl, EPERM, 0, false},
    {CALL_quotactl_fd, EPERM, 0, false},
    {SYS_swapon, EPERM, 0, false},
    {SYS_swapoff, EPERM, 0, false},
    {SYS_kexec_load, EPERM, 0, false},
    {SYS_kexec_file_load, EPERM, 0, false},
    {SYS_reboot, EPERM, 0, false},
    {SYS_init_module, EPERM, 0, false},
    {SYS_finit_module, EPERM, 0, false},
    {SYS_delete_module, EPERM, 0, false},
};

/* Of INET and INET6, each whatever the type. Others are modules that the call would load. */
static const unsigned protocols[] = {0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6};

#define PROTOCOLS_N (sizeof(protocols) / sizeof(protocols[0]))
#define RULES_N     (sizeof(rules) / sizeof(rules[0]))
#define RULE_MAX    (12 + PROTOCOLS_N) /* instructions */
#define HEAD_N      6

static struct {
    struct sock_filter items[HEAD_N + RULES_N * RULE_MAX + 1];
    unsigned short n;
} code;

static void add(unsigned short op, unsigned char jt, unsigned char jf, uint32_t k)
{
    code.items[code.n++] = (struct sock_filter){op, jt, jf, k};
}

static void add_load(size_t offset)
{
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/* The next jt or jf instructions are left out. */
static void add_jump(unsigned short test, uint32_t k, unsigned char jt, unsigned char jf)
{
    add(BPF_JMP | test | BPF_K, jt, jf, k);
}

static void add_answer(uint32_t answer)
{
    add(BPF_RET | BPF_K, 0, 0, answer);
}

/* The lower half is what the kernel takes, and comes first on both machines. */
static void add_argument(size_t which)
{
    add_load(offsetof(struct seccomp_data, args) + which * sizeof(uint64_t));
}

/* What is allowed leaves out the instruction that follows, the rule's answer. */
static void add_families(void)
{
    add_argument(0);
    add_jump(BPF_JEQ, AF_UNIX, PROTOCOLS_N + 8, 0);
    add_jump(BPF_JEQ, AF_INET, 4, 0);
    add_jump(BPF_JEQ, AF_INET6, 3, 0);
    add_jump(BPF_JEQ, AF_NETLINK, 0, PROTOCOLS_N + 4);
    add_argument(2);
    add_jump(BPF_JEQ, NETLINK_ROUTE, PROTOCOLS_N + 3, PROTOCOLS_N + 2);
    add_argument(2);
    for (size_t i = 0; i < PROTOCOLS_N; i++)
        add_jump(BPF_JEQ, protocols[i], (unsigned char)(PROTOCOLS_N - i + 1), 0);
    add_answer(SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
}

static void add_rule(const struct rule *r)
{
    unsigned short at = code.n;

    add_jump(BPF_JEQ, r->call, 0, 0);
    if (r->families) {
        add_families();
    } else if (r->flags) {
        add_argument(0);
        add_jump(BPF_JSET, r->flags, 0, 1);
    }
    add_answer(SECCOMP_RET_ERRNO | r->err);
    if (r->families || r->flags)
        add_answer(SECCOMP_RET_ALLOW);
    code.items[at].jf = (unsigned char)(code.n - at - 1);
}

static void make_code(void)
{
    add_load(offsetof(struct seccomp_data, arch));
    add_jump(BPF_JEQ, ARCHITECTURE, 1, 0);
    add_answer(SECCOMP_RET_ERRNO | ENOSYS);
    add_load(offsetof(struct seccomp_data, nr));
    add_jump(BPF_JGT, NEWEST, 0, 1);
    add_answer(SECCOMP_RET_ERRNO | ENOSYS);
    for (size_t i = 0; i < RULES_N; i++)
        add_rule(&rules[i]);
    add_answer(SECCOMP_RET_ALLOW);
}

/* False with errno set. */
static bool set_filter(unsigned flags)
{
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags,
                   &(struct sock_fprog){code.n, code.items}) == 0;
}

bool calls_confine(void)
{
    make_code();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    /* Older kernels slow filtered processes down without the flag, which gVisor does not know. */
    return set_filter(SECCOMP_FILTER_FLAG_SPEC_ALLOW) || (errno == EINVAL && set_filter(0));
}
