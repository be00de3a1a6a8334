#include "config.h"

#include "common/broker/limits_probe.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/broker/probe.h"

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
} trials[] = {
    {"head -c 1048576 /dev/zero | tail -c 1048576 | wc -c; " /* tail keeps all in memory */
     "head -c 167772160 /dev/zero | tail -c 167772160 | wc -c",
     "1048576\n", "167772160\n",
     "memory (SANDBOX_MEMORY): a program took 160 MB under a limit of 64 MB"},
    {"echo begun; i=0; while [ $i -lt 80 ]; do sleep 3 & i=$((i+1)); done; echo all", "begun\n",
     "all\n", "processes (SANDBOX_PIDS): a program started 80 under a limit of 40"},
};

/* The container may die of it: with small limits that is what should happen. */
static int try(const struct spawner *s, const char *image, const struct trial *t, bool *out_holds,
               struct err *e)
{
    const char *const argv[] = {"sh", "-c", t->command};
    AUTO_PROBE struct probe p = {0};
    AUTO_BUF struct buf out = BUF_INIT(OUTPUT_MAX);
    struct engine_limits limits = s->config->container;
    struct engine_outcome outcome;
    struct err died = ERR_INIT;

    limits.memory_bytes = MEMORY_MIB * MIB;
    limits.tmp_bytes = MIB;
    limits.pids = PIDS;
    if (probe_start(&p, s, image, NETWORK_NONE, &limits, e) < 0)
        return -1;
    probe_run(&p, argv, ARRAY_LEN(argv), &out, &outcome, &died);
    if (strncmp(buf_str(&out), t->begins, strlen(t->begins)) != 0)
        return err_set(e, ERR_PROTOCOL, "the test does not work in this engine's containers: %s",
                       died.text);
    *out_holds = !strstr(buf_str(&out) + strlen(t->begins), t->passed);
    return 0;
}

int limits_probe(const struct spawner *s, const char *image, struct err *e)
{
    AUTO_BUF struct buf missing = BUF_INIT(OUTPUT_MAX);

    for (size_t i = 0; i < ARRAY_LEN(trials); i++) {
        bool holds = false;

        if (try(s, image, &trials[i], &holds, e) < 0)
            return -1;
        if (!holds)
            buf_addf(&missing, "%s; ", trials[i].limit);
    }
    if (missing.len == 0)
        return 0;
    return err_set(e, ERR_REFUSED, "the engine does not bound %s" ADVICE, buf_str(&missing));
}
