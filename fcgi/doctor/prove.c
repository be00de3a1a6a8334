/* Runs programs that mean harm on the running server, and says which walls hold. */
#include "config.h"

#include "fcgi/doctor/prove.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/remedy.h"
#include "common/protocol/client_files.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "fcgi/commands.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TENANT       "prove" /* of SANDBOX_TENANTS_FILE, where that bounds all others too much */
#define BEGUN        "begun\n"
#define RUN_MS       60000 /* with its time in the queue */
#define DELETE_TRIES 50
#define DELETE_MS    100
#define FACT_MAX     512
#define HOLES_MAX    200 /* bytes of what a program has found */
#define CPU_FAULTS   "/sys/devices/system/cpu/vulnerabilities"

/* ---- what a run proves ---- */

static bool is_one_of(const char *words, const char *word)
{
    const size_t len = strlen(word);

    for (const char *at = words; len > 0 && (at = strstr(at, word)); at += len)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
    return false;
}

static void say_untried(const char *about, const char *why, const char *text, struct findings *out)
{
    findings_add(out, FINDING_NOTE, about, "", "could not be tried: %s%.*s", why, HOLES_MAX, text);
}

/* Without the end of the last line. */
static int length_of_holes(const char *holes)
{
    size_t n = strnlen(holes, HOLES_MAX);

    while (n > 0 && holes[n - 1] == '\n')
        n--;
    return (int)n;
}

void wall_judge(const struct wall *w, const json_t *result, const struct err *e,
                struct findings *out)
{
    const char *status = json_get_string(result, "status"),
               *printed = json_get_string(result, "stdout"),
               *errors = json_get_string(result, "stderr");
    const size_t begun = strlen(BEGUN);

    if (!result)
        say_untried(w->about, "", e->text, out);
    else if (!status || !printed || strncmp(printed, BEGUN, begun) != 0)
        say_untried(w->about, "the program did not begin: ", errors ? errors : "", out);
    else if (printed[begun])
        findings_add(out, FINDING_WRONG, w->about, w->mend, "%s: %.*s", w->missing,
                     length_of_holes(printed + begun), printed + begun);
    else if (errors && *errors)
        say_untried(w->about, "the program failed: ", errors, out);
    else if (!is_one_of(w->ends, status))
        say_untried(w->about, "the program ended with status ", status, out);
    else
        findings_add(out, FINDING_OK, w->about, "", "%s", w->holds);
}

/* ---- what needs no program ---- */

static void say(struct findings *out, const char *about, bool holds, const char *yes,
                const char *no, const char *mend)
{
    findings_add(out, holds ? FINDING_OK : FINDING_WRONG, about, holds ? "" : mend, "%s",
                 holds ? yes : no);
}

static void look_at_kernel(struct findings *out)
{
    struct utsname name = {0};
    const long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1); /* asks the version */

    uname(&name);
    if (landlock > 0)
        findings_add(out, FINDING_OK, "kernel", "", "%s, with Landlock %ld around workers",
                     name.release, landlock);
    else
        findings_add(out, FINDING_WRONG, "kernel", "use Linux 5.13 or later, with Landlock on",
                     "%s has no Landlock: workers can open what their account may", name.release);
}

static bool is_vulnerable(int folder, const char *name)
{
    char text[FACT_MAX] = "";
    AUTO_FD int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
           strncmp(text, "Vulnerable", strlen("Vulnerable")) == 0;
}

static void look_at_processor(struct findings *out)
{
    AUTO_BUF struct buf names = BUF_INIT(FACT_MAX);
    AUTO_DIR DIR *folder = opendir(CPU_FAULTS);

    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (is_vulnerable(dirfd(folder), entry->d_name))
            buf_addf(&names, " %s", entry->d_name);
    if (!folder)
        findings_add(out, FINDING_NOTE, "processor", "", "the kernel does not tell its faults");
    else if (names.len > 0)
        findings_add(out, FINDING_WRONG, "processor", "update the kernel, microcode or hypervisor",
                     "a program may read other memory by faults that are not mitigated:%s",
                     buf_str(&names));
    else
        say(out, "processor", true, "its known faults are mitigated", "", "");
}

static void look_at_engine(const struct settings *s, const json_t *status, struct findings *out)
{
    const char *error = json_get_string(json_object_get(status, "engine"), "lastError"),
               *version = json_get_string(status, "engineApi");

    if (error)
        say_untried("engine", "", error, out);
    else
        findings_add(out, FINDING_OK, "engine", "", "answers with API %s, and has the runtime %s",
                     version ? version + strspn(version, "/v") : "?",
                     *s->runtime ? s->runtime : "that is its default");
}

static void look_at_limits(const json_t *status, struct findings *out)
{
    const json_t *limits = json_object_get(status, "limits");
    const char *error = json_get_string(limits, "lastError");

    if (json_get_bool(limits, "hold", 0))
        say(out, "limits", true, "the engine bounds memory and processes: tried at the start", "",
            "");
    else if (error)
        findings_add(out, FINDING_WRONG, "limits", "", "%s", error);
    else
        findings_add(out, FINDING_NOTE, "limits", "SANDBOX_LIMITS_CHECK=warn",
                     "the server has not tried them, or has just started");
}

static void look_at_network(const json_t *status, struct findings *out)
{
    const json_t *network = json_object_get(status, "network");
    const char *error = json_get_string(network, "lastError"),
               *tier = json_get_string(network, "limit");

    if (error)
        findings_add(out, FINDING_OK, "network", "", "no program gets one: %s", error);
    else
        say(out, "network", tier && strcmp(tier, network_name(NETWORK_LAN)) != 0,
            "SANDBOX_NETWORK leads to no private address",
            "SANDBOX_NETWORK=lan leads to this machine and to its network",
            "SANDBOX_NETWORK=public");
}

void walls_of_status(const struct settings *s, const json_t *status, struct findings *out)
{
    const json_t *kept = json_object_get(status, "walls");

    look_at_engine(s, status, out);
    look_at_limits(status, out);
    say(out, "users", json_get_bool(kept, "ownUsers", 0),
        "the programs of each conversation have a user of its own",
        "all programs have one user: they share its limits and, outside, its rights",
        "start the server as root, with SANDBOX_USER=auto");
    say(out, "quotas", json_get_bool(kept, "userQuotas", 0),
        "the kernel bounds the files of each conversation",
        "the server looks at files twice a second: meanwhile a program can fill the disk",
        "put SANDBOX_ROOT on a file system with user quotas");
    look_at_network(status, out);
}

/* ---- the command ---- */

struct proof {
    const struct settings *s;
    struct broker_client client;
    char *conversation;
    char bytes[32], pids[32], quota[32], here[FACT_MAX]; /* what programs are told */
};

/* The namespaces of this process: those of the machine, where the engine is here. */
static void add_namespaces(char out[FACT_MAX])
{
    static const char *const names[] = {"cgroup", "ipc", "mnt", "net", "pid", "uts"};
    AUTO_BUF struct buf all = BUF_INIT(FACT_MAX);

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[64], target[64] = "";
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        if (readlink(path, target, sizeof target - 1) > 0)
            buf_addf(&all, "%s ", target);
    }
    snprintf(out, FACT_MAX, "%s", buf_str(&all));
}

static void try_wall(const struct proof *p, const struct wall *w, struct findings *out)
{
    const struct run_env env[] = {{"PROVE_MEMORY", p->bytes},
                                  {"PROVE_PIDS", p->pids},
                                  {"PROVE_QUOTA", p->quota},
                                  {"PROVE_HERE", p->here}};
    const struct run_request request = {.tenant = TENANT,
                                        .conversation = p->conversation,
                                        .language = "python",
                                        .network = w->network ? (enum network_tier)p->s->network
                                                              : NETWORK_NONE,
                                        .timeout_ms = w->timeout_ms,
                                        .code = {w->program, strlen(w->program)},
                                        .env = env,
                                        .n_env = ARRAY_LEN(env)};
    const struct broker_run_options options = {.options = {.cancel_on_disconnect = true}};
    struct err e = ERR_INIT;
    json_auto_t *result = broker_run(&p->client, &request, &options, &e);

    wall_judge(w, result, &e, out);
}

static void try_walls(struct proof *p, const json_t *status, struct findings *out)
{
    snprintf(p->bytes, sizeof p->bytes, "%" PRIu64, p->s->container.memory_bytes);
    snprintf(p->pids, sizeof p->pids, "%" PRIu64, p->s->container.pids);
    snprintf(p->quota, sizeof p->quota, "%" PRIu64, p->s->bounds.bytes);
    add_namespaces(p->here);
    for (size_t i = 0; i < walls_n; i++)
        if (!walls[i].applies || walls[i].applies(p->s, status))
            try_wall(p, &walls[i], out);
}

/* Its last container may still be wiped. */
static int remove_conversation(const struct proof *p, struct err *e)
{
    for (int i = 0; i < DELETE_TRIES; i++) {
        *e = ERR_INIT;
        json_auto_t *gone = broker_delete_conversation(&p->client, p->conversation, e);
        if (gone || e->kind == ERR_NOT_FOUND)
            return 0;
        if (e->kind != ERR_BUSY)
            break;
        poll(NULL, 0, DELETE_MS);
    }
    return err_wrap(e, "the conversation %s of the tenant " TENANT " stays", p->conversation);
}

int walls_sum_up(const struct findings *f, struct buf *out)
{
    const size_t missing = findings_count(f, FINDING_WRONG),
                 untried = findings_count(f, FINDING_NOTE);

    if (missing == 0 && untried == 0)
        buf_addf(out, "isolated: %zu walls hold\n", f->n);
    else
        buf_addf(out, "%zu missing, %zu could not be tried\n", missing, untried);
    return missing > 0 ? PROVE_MISSING : untried > 0 ? PROVE_UNTRIED : 0;
}

static int print_walls(const struct findings *f, bool quiet)
{
    static const char *const names[] = {
        [FINDING_OK] = "holds", [FINDING_NOTE] = "untried", [FINDING_WRONG] = "missing"};
    AUTO_BUF struct buf sum = BUF_INIT(FACT_MAX);
    const int result = walls_sum_up(f, &sum);

    for (size_t i = 0; i < f->n; i++) {
        const struct finding *one = &f->items[i];
        if (!quiet || one->state != FINDING_OK)
            printf("%-7s  %-13s  %s%s%s%s\n", names[one->state], one->about, one->text,
                   *one->mend ? " (to mend it: " : "", one->mend, *one->mend ? ")" : "");
    }
    if (!quiet || result != 0)
        fputs(buf_str(&sum), stdout);
    return result;
}

int prove_run(const struct settings *s, bool quiet)
{
    AUTO_FREE char *conversation = mem_printf("prove-%lld-%ld", (long long)clock_unix_s(),
                                              (long)getpid());
    struct proof p = {.s = s,
                      .client = {.path = s->broker,
                                 .tenant = TENANT,
                                 .cancel_fd = -1,
                                 .leave_fd = -1,
                                 .limit_ms = RUN_MS},
                      .conversation = conversation};
    struct findings found = {0};
    struct err e = ERR_INIT;
    json_auto_t *status = broker_status(&p.client, &e);

    if (!status) {
        fprintf(stderr, "sandcgi: nothing could be tried: the server does not answer: %s; %s\n",
                e.text, remedy(REMEDY_START));
        return PROVE_UNTRIED;
    }
    look_at_kernel(&found);
    look_at_processor(&found);
    walls_of_status(s, status, &found);
    try_walls(&p, status, &found);
    if (remove_conversation(&p, &e) < 0)
        fprintf(stderr, "sandcgi: %s\n", e.text);
    const int result = print_walls(&found, quiet);
    findings_clear(&found);
    return result;
}
