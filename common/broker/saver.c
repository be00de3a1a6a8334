#include "config.h"

#include "common/broker/saver.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/purpose.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/state/unsaved.h"
#include "common/store/identity.h"
#include "common/store/kinds.h"
#include "common/store/save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MESSAGE_MAX  64
#define RESTART_MS   2000
#define END_MS       20000 /* for what is left when the server stops */
#define LOOK_MS      500
#define SETTLE_MS    1000 /* runs of one conversation that follow each other are saved once */
#define AGAIN_MS     4000 /* between two looks at files in use */
#define BACK_OFF_MS  1000
#define BACK_OFF_MAX 30000
#define BEHIND_MS    30000
#define SAY_MS       600000

/* ---- the saver's process ---- */

struct saving_loop {
    struct saver saver;
    const struct store_settings *settings;
    int fd;                 /* readable: the main process has closed its end */
    bool ending;            /* all that is left is due */
    struct deadline pause;  /* the store is not asked until then */
    int64_t back_off_ms;    /* of the next failure */
    struct deadline behind; /* when it is said again; never: it is not behind */
    char why[200];          /* of the last failure */
};

static bool must_end(struct saving_loop *l, int wait_ms)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};

    if (!l->ending && poll(&p, 1, wait_ms) > 0)
        l->ending = true;
    return l->ending;
}

static void note_failure(struct saving_loop *l, const struct err *e)
{
    metrics_add(METRIC_STORE_ERRORS, "", 1);
    snprintf(l->why, sizeof l->why, "%.199s", e->text);
    if (e->kind != ERR_UNAVAILABLE)
        return;
    l->pause = deadline_in_ms(l->back_off_ms);
    l->back_off_ms = l->back_off_ms < BACK_OFF_MAX / 2 ? 2 * l->back_off_ms : BACK_OFF_MAX;
}

static void tell_sum(const struct save_sum *sum)
{
    metrics_add(METRIC_STORE_FILES, "", sum->files);
    metrics_add(METRIC_STORE_BYTES, "", sum->bytes);
    if (sum->outcome == SAVE_STALE)
        log_warn("the store has a newer state of a conversation, from another node: what was "
                 "changed here since is not saved");
    else if (sum->left_out > 0)
        log_info("%" PRIu64 " files of a conversation are not in the store: special, unreadable, "
                 "too deep or over %llu bytes",
                 sum->left_out, SAVE_FILE_MAX);
}

/* -1: the store did not do it, so that others need not be tried. */
static int save_one(struct saving_loop *l, const char *name)
{
    const struct sandbox_root *root = l->saver.root;
    bool used = sandbox_is_held(root, name);
    struct save_sum sum;
    struct err e = ERR_INIT;

    if (!unsaved_take(root, name))
        return 0;
    if (save_conversation(&l->saver, name, &sum, &e) < 0) {
        note_failure(l, &e);
        if (e.kind == ERR_UNAVAILABLE) {
            unsaved_put_back(root, name);
            return -1;
        }
        log_warn("the files of a conversation were not saved: %s", e.text);
        used = true;
    } else {
        tell_sum(&sum);
    }
    if (used || (sum.changed > 0 && sum.outcome == SAVE_SENT))
        unsaved_note_again(root, name);
    unsaved_done(root, name);
    return 0;
}

/* The store is opened for each round: what a path leads to can change. */
static int open_store(struct saving_loop *l)
{
    struct err e = ERR_INIT;

    l->saver.store = store_open(l->settings, &e);
    if (l->saver.store && store_identify(l->saver.store, l->settings, l->saver.root, &e) == 0)
        return 0;
    e.kind = ERR_UNAVAILABLE;
    note_failure(l, &e);
    return -1;
}

static bool is_due(const struct saving_loop *l, const struct unsaved_item *item, int64_t now_ms)
{
    const int64_t age_ms = now_ms - item->since_ms;

    return l->ending || age_ms >= (item->again ? AGAIN_MS : SETTLE_MS) || age_ms < 0;
}

static void save_due(struct saving_loop *l, const struct unsaved *all)
{
    const int64_t now_ms = clock_unix_us() / 1000;
    bool opened = false;

    for (size_t i = 0; i < all->n; i++) {
        if (!is_due(l, &all->items[i], now_ms))
            continue;
        if (!opened && open_store(l) < 0)
            break;
        opened = true;
        if (save_one(l, all->items[i].name) < 0)
            break;
        l->back_off_ms = BACK_OFF_MS;
        (void)must_end(l, 0);
    }
    store_free(&l->saver.store);
}

static void tell_lag(struct saving_loop *l, const struct unsaved *all)
{
    const int64_t lag_ms = all->n ? clock_unix_us() / 1000 - all->items[0].since_ms : 0;

    if (lag_ms > BEHIND_MS && (l->behind.at_ms < 0 || deadline_passed(l->behind))) {
        log_warn("the store is behind: %zu conversations are to be saved, the first for %" PRId64
                 " s%s%s",
                 all->n, lag_ms / 1000, *l->why ? "; last failure: " : "", l->why);
        l->behind = deadline_in_ms(SAY_MS);
    } else if (lag_ms < BEHIND_MS / 2 && l->behind.at_ms >= 0) {
        log_info("the store has caught up");
        l->behind = DEADLINE_NEVER;
        l->why[0] = '\0';
    }
}

static void save_round(struct saving_loop *l)
{
    AUTO_UNSAVED struct unsaved all = {0};
    struct err e = ERR_INIT;

    if (unsaved_list(l->saver.root, false, &all, &e) < 0)
        log_warn("%s", e.text);
    tell_lag(l, &all);
    purpose_count();
    if (deadline_passed(l->pause) || l->pause.at_ms < 0 || l->ending)
        save_due(l, &all);
}

/* Another broker's may still be at its last conversation. */
static int lock_root(struct saving_loop *l, struct err *e)
{
    int fd = openat(l->saver.root->fd, SAVING_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "SANDBOX_ROOT/" SAVING_DIR " cannot be opened");
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        if (must_end(l, LOOK_MS))
            break;
    return fd; /* held until the process ends */
}

static void run_saver(void *ctx, int fd)
{
    const struct spawner *spawner = ctx;
    const struct store_settings *settings = &spawner->config->store;
    struct saving_loop l = {.saver = {.root = spawner->root, .node = settings->node},
                            .settings = settings,
                            .fd = fd,
                            .pause = DEADLINE_NEVER,
                            .behind = DEADLINE_NEVER,
                            .back_off_ms = BACK_OFF_MS};
    struct err e = ERR_INIT;

    (void)!nice(10);
    if (lock_root(&l, &e) < 0 || unsaved_begin(spawner->root, &e) < 0) {
        log_error("%s", e.text);
        return;
    }
    do
        save_round(&l);
    while (!must_end(&l, LOOK_MS));
    save_round(&l);
}

/* ---- the main process's side ---- */

static bool is_wanted(const struct saver_link *k)
{
    return store_is_wanted(&k->spawner->config->store);
}

static void on_message(void *owner, void *item, uint32_t events)
{
    struct saver_link *k = item;
    bool ended; /* which is all that it says */
    json_auto_t *message = helper_next_message(&k->helper, &ended);

    (void)owner;
    (void)events;
}

void saver_link_init(struct saver_link *k, const struct spawner *spawner)
{
    *k = (struct saver_link){.spawner = spawner,
                             .helper = HELPER_INIT(MESSAGE_MAX),
                             .start = deadline_in_ms(0),
                             .end = DEADLINE_NEVER};
}

int saver_link_open(struct saver_link *k, struct err *e)
{
    if (is_wanted(k))
        return unsaved_begin(k->spawner->root, e);
    unsaved_end(k->spawner->root);
    k->start = DEADLINE_NEVER;
    return 0;
}

void saver_link_tick(struct saver_link *k)
{
    const struct helper_spawn spawn = {.role = "saver",
                                       .main = run_saver,
                                       .ctx = (void *)(uintptr_t)k->spawner,
                                       .on_message = on_message,
                                       .item = k,
                                       .awaited = true};
    struct err e = ERR_INIT;

    if (!deadline_passed(k->start))
        return;
    k->start = DEADLINE_NEVER;
    if (helper_start(&k->helper, k->spawner, &spawn, &e) == 0)
        return;
    log_error("saver: %s", e.text);
    k->start = deadline_in_ms(RESTART_MS);
}

void saver_link_stop(struct saver_link *k, bool now)
{
    k->start = DEADLINE_NEVER;
    if (k->helper.pid == 0)
        return;
    if (now || deadline_passed(k->end)) {
        kill(k->helper.pid, SIGTERM);
        k->end = DEADLINE_NEVER;
    } else if (k->end.at_ms < 0 && children_count(k->spawner->children, NULL, NULL) == 1) {
        helper_close(&k->helper);
        k->end = deadline_in_ms(END_MS);
    }
}

void saver_link_reap(struct saver_link *k, const struct child *child)
{
    if (child->pid != k->helper.pid)
        return;
    k->helper.pid = 0;
    helper_close(&k->helper);
    if (k->end.at_ms < 0)
        k->start = deadline_in_ms(RESTART_MS);
}

struct deadline saver_link_due(const struct saver_link *k)
{
    return deadline_min(k->start, k->end);
}
