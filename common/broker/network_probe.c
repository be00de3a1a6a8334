#include "config.h"

#include "common/broker/network_probe.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/broker/probe.h"
#include "common/engine/docker_config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define OUTPUT_MAX  ((size_t)64 * 1024)
#define TARGETS_MAX 24
#define SELF        "127.0.0.1" /* answers, or the probe cannot tell what arrives */

/* ---- the verdict ---- */

/* What the public network must refuse: one address of each kind, and the gateway, which is the
 * engine's host. */
static const char public_targets[] = SELF " gateway 10.255.255.254 172.31.255.254 192.168.255.254 "
                                          "169.254.169.254 100.127.255.254 fd00:ec2::254";

const char *network_probe_targets(enum network_tier tier)
{
    return tier == NETWORK_PUBLIC ? public_targets : SELF;
}

static bool in_words(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *s = list; *s; s += strspn(s, " \n")) {
        size_t n = strcspn(s, " \n");
        if (n == len && memcmp(s, word, len) == 0)
            return true;
        s += n;
    }
    return false;
}

static int judge_line(const char *target, const char *word, const char *others, struct err *e)
{
    if (in_words(others, target)) {
        if (strcmp(word, "answered") == 0)
            return err_set(e, ERR_REFUSED, "containers reach each other (%s)", target);
        return 0;
    }
    if (strcmp(target, SELF) == 0) {
        if (strcmp(word, "answered") != 0)
            return err_set(e, ERR_REFUSED, "the test does not work in this engine's containers");
        return 0;
    }
    /* "none": the container has no route there. */
    if (strcmp(word, "prohibited") != 0 && strcmp(word, "none") != 0)
        return err_set(e, ERR_REFUSED, "no firewall rule of ours keeps containers from %s (%s)",
                       target, word);
    return 0;
}

int network_probe_judge(enum network_tier tier, char *lines, const char *others, struct err *e)
{
    AUTO_BUF struct buf seen = BUF_INIT(OUTPUT_MAX);
    char *rest = NULL;

    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *words = NULL;
        const char *target = strtok_r(line, " ", &words), *word = strtok_r(NULL, " ", &words);

        if (!word || judge_line(target, word, others, e) < 0)
            return word ? -1 : err_set(e, ERR_PROTOCOL, "the test's output is not readable");
        buf_addf(&seen, "%s ", target);
    }
    AUTO_FREE char *wanted = mem_printf("%s %s", network_probe_targets(tier), others);
    for (char *word = strtok_r(wanted, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
        if (!in_words(buf_str(&seen), word))
            return err_set(e, ERR_PROTOCOL, "the test says nothing about %s", word);
    return 0;
}

/* ---- its containers ---- */

/* "entry probe" with the words of targets; its output goes to out. */
static int ask(struct probe *p, const char *targets, struct buf *out, struct err *e)
{
    const char *argv[2 + TARGETS_MAX] = {CONTAINER_HELPERS "/entry", "probe"};
    AUTO_FREE char *words = mem_strdup(targets);
    struct engine_outcome outcome;
    char *rest = NULL;
    size_t n = 2;

    for (char *word = strtok_r(words, " \n", &rest); word && n < ARRAY_LEN(argv);
         word = strtok_r(NULL, " \n", &rest))
        argv[n++] = word;
    if (probe_run(p, argv, n, out, &outcome, e) < 0)
        return -1;
    return outcome.exit_code == 0 ? 0 : err_set(e, ERR_REFUSED, "the test failed in its container");
}

static int probe_both(const struct spawner *s, const char *image, enum network_tier tier,
                      struct err *e)
{
    AUTO_PROBE struct probe one = {0}, other = {0};
    AUTO_BUF struct buf others = BUF_INIT(OUTPUT_MAX), lines = BUF_INIT(OUTPUT_MAX);
    const struct engine_limits *limits = &s->config->container;

    if (probe_start(&other, s, image, tier, limits, e) < 0 || ask(&other, "", &others, e) < 0 ||
        probe_start(&one, s, image, tier, limits, e) < 0)
        return -1;
    AUTO_FREE char *targets = mem_printf("%s %s", network_probe_targets(tier), buf_str(&others));
    if (ask(&one, targets, &lines, e) < 0)
        return -1;
    return network_probe_judge(tier, lines.data ? lines.data : (char[]){""}, buf_str(&others), e);
}

/* The end of the broker waits until the containers are removed: no other process removes them. */
int network_probe(const struct spawner *s, const char *image, enum network_tier tier, struct err *e)
{
    sigset_t end, before;

    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, &before);
    int rc = probe_both(s, image, tier, e);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}
