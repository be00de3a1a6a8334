#include "config.h"

#include "common/broker/network_probe.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/engine/docker_config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define START_MS    30000 /* of one container */
#define COMMAND_MS  10000
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

struct probe {
    struct engine *engine;
    const struct sandbox_root *root;
    char dir[WARM_DIR_NAME_LEN + 1]; /* their /data; "": none */
};

static void probe_clear(struct probe *p)
{
    if (p->engine) {
        p->engine->ops->finish(p->engine);
        p->engine->ops->free(p->engine);
    }
    if (*p->dir)
        warm_dir_remove(p->root, p->dir);
}

#define AUTO_PROBE AUTO(probe_clear)

static int probe_start(struct probe *p, const struct spawner *s, const char *image,
                       enum network_tier tier, struct err *e)
{
    const struct broker_config *config = s->config;
    char run_id[RUN_ID_LEN + 1], user[48];
    struct stat dir;

    p->root = s->root;
    p->engine = docker_engine_new(&config->engine, e);
    if (!p->engine || warm_dir_make(s->root, p->dir, e) < 0)
        return -1;
    if (!warm_dir_stat(s->root, p->dir, &dir))
        return err_set(e, ERR_IO, "the test's directory is gone");
    AUTO_FREE char *data_path = warm_dir_host_path(s->root, p->dir);
    crypto_random_hex(RUN_ID_LEN / 2, run_id);
    snprintf(user, sizeof user, "%u:%u", dir.st_uid, dir.st_gid);
    const struct engine_spec spec = {.image = image,
                                     .data_path = data_path,
                                     .user = user,
                                     .instance = config->instance,
                                     .run_id = run_id,
                                     .deadline_unix = clock_unix_s() + 2 * START_MS / 1000,
                                     .runtime = config->runtime,
                                     .network = tier,
                                     .limits = config->container,
                                     .psandbox = true,
                                     .helpers_path = s->helpers_path};
    return p->engine->ops->start(p->engine, &spec, NULL, deadline_in_ms(START_MS), e);
}

/* "entry probe" with the words of targets; its output goes to out. */
static int probe_ask(struct probe *p, const char *targets, struct buf *out, struct err *e)
{
    const char *argv[2 + TARGETS_MAX] = {CONTAINER_HELPERS "/entry", "probe"};
    AUTO_FREE char *words = mem_strdup(targets);
    struct engine_command command = {.argv = argv, .n_argv = 2, .timeout_ms = COMMAND_MS};
    struct deadline d = deadline_in_ms(COMMAND_MS);
    const struct engine_ops *ops = p->engine->ops;
    struct engine_event ev;
    char *rest = NULL;
    uint32_t id;

    for (char *word = strtok_r(words, " \n", &rest); word && command.n_argv < ARRAY_LEN(argv);
         word = strtok_r(NULL, " \n", &rest))
        argv[command.n_argv++] = word;
    if (ops->exec(p->engine, &command, &id, e) < 0)
        return -1;
    while (!deadline_passed(d)) {
        if (ops->read(p->engine, &ev, e) < 0)
            return -1;
        if (ev.kind == ENGINE_EVENT_NOTHING) {
            struct pollfd w = {.fd = ops->fd(p->engine), .events = ops->waits(p->engine)};
            poll(&w, 1, deadline_poll_ms(d));
        } else if (ev.kind == ENGINE_EVENT_OUT) {
            buf_add(out, ev.data, ev.len);
        } else if (ev.kind == ENGINE_EVENT_FAILED ||
                   (ev.kind == ENGINE_EVENT_ENDED && ev.outcome.exit_code != 0)) {
            return err_set(e, ERR_REFUSED, "the test failed in its container");
        } else if (ev.kind == ENGINE_EVENT_ENDED) {
            return 0;
        }
    }
    return err_set(e, ERR_TIMEOUT, "the test did not end in time");
}

int network_probe(const struct spawner *s, const char *image, enum network_tier tier, struct err *e)
{
    AUTO_PROBE struct probe one = {0}, other = {0};
    AUTO_BUF struct buf others = BUF_INIT(OUTPUT_MAX), lines = BUF_INIT(OUTPUT_MAX);

    if (probe_start(&other, s, image, tier, e) < 0 || probe_ask(&other, "", &others, e) < 0 ||
        probe_start(&one, s, image, tier, e) < 0)
        return -1;
    AUTO_FREE char *targets = mem_printf("%s %s", network_probe_targets(tier), buf_str(&others));
    if (probe_ask(&one, targets, &lines, e) < 0)
        return -1;
    return network_probe_judge(tier, lines.data ? lines.data : (char[]){""}, buf_str(&others), e);
}
