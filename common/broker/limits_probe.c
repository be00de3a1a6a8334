#include "config.h"

#include "common/broker/limits_probe.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/broker/probe.h"

#include <errno.h>
#include <string.h>

#define MIB        (1024u * 1024u)
#define MEMORY_MIB 64
#define PIDS       40
#define OUTPUT_MAX 4096
#define ADVICE                                                                                     \
    "an engine without root needs cgroup v2 and delegation by systemd; see \"docker info\" or "    \
    "\"podman info\""

static const struct trial {
    const char *command; /* of a shell */
    const char *begins;  /* what it prints as long as it stays below the limit: else nothing is
                            proved */
    const char *passed;  /* and what it prints when nothing has stopped it */
    const char *limit;
    bool ends_container; /* with small limits the kernel may choose the container's first process */
} trials[LIMITS_TRIALS] = {
    [LIMITS_MEMORY] =
        {"head -c 1048576 /dev/zero | tail -c 1048576 | wc -c; " /* tail keeps all in memory */
         "head -c 167772160 /dev/zero | tail -c 167772160 | wc -c",
         "1048576\n", "167772160\n",
         "memory (SANDBOX_MEMORY): a program took 160 MB under a limit of 64 MB", true},
    [LIMITS_PIDS] =
        {"echo begun; i=0; while [ $i -lt 80 ]; do sleep 3 & i=$((i+1)); done; echo all", "begun\n",
         "all\n", "processes (SANDBOX_PIDS): a program started 80 under a limit of 40", false},
};

enum limits_verdict limits_judge(enum limits_trial trial, const char *printed,
                                 const struct err *died, struct err *e)
{
    const struct trial *t = &trials[trial];
    const size_t begins = strlen(t->begins);
    const bool ended = died->kind == ERR_NONE ||
                       (t->ends_container && died->kind == ERR_LOST && died->sys == ENOMEM);

    if (strncmp(printed, t->begins, begins) == 0 && strstr(printed + begins, t->passed))
        return LIMITS_FAIL;
    if (strncmp(printed, t->begins, begins) == 0 && ended)
        return LIMITS_HOLD;
    err_set(e, ERR_PROTOCOL, "the trial of limits does not work in this engine's containers: %s",
            died->kind != ERR_NONE ? died->text : "it printed something else");
    return LIMITS_UNKNOWN;
}

static enum limits_verdict try(const struct spawner *s, const char *image, enum limits_trial trial,
                               struct err *e)
{
    const char *const argv[] = {"sh", "-c", trials[trial].command};
    AUTO_PROBE struct probe p = {0};
    AUTO_BUF struct buf out = BUF_INIT(OUTPUT_MAX);
    struct engine_limits limits = s->config->container;
    struct engine_outcome outcome;
    struct err died = ERR_INIT;

    limits.memory_bytes = MEMORY_MIB * MIB;
    limits.tmp_bytes = MIB;
    limits.pids = PIDS;
    if (probe_start(&p, s, image, NETWORK_NONE, &limits, e) < 0)
        return LIMITS_UNKNOWN;
    probe_run(&p, argv, ARRAY_LEN(argv), &out, &outcome, &died);
    return limits_judge(trial, buf_str(&out), &died, e);
}

enum limits_verdict limits_probe(const struct spawner *s, const char *image, struct err *e)
{
    AUTO_BUF struct buf missing = BUF_INIT(OUTPUT_MAX);

    for (enum limits_trial i = 0; i < LIMITS_TRIALS; i++) {
        const enum limits_verdict verdict = try(s, image, i, e);

        if (verdict == LIMITS_UNKNOWN)
            return LIMITS_UNKNOWN;
        if (verdict == LIMITS_FAIL)
            buf_addf(&missing, "%s; ", trials[i].limit);
    }
    if (missing.len == 0)
        return LIMITS_HOLD;
    err_set(e, ERR_REFUSED, "the engine does not bound %s" ADVICE, buf_str(&missing));
    return LIMITS_FAIL;
}
