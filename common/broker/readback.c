#include "config.h"

#include "common/broker/readback.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/metrics.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/unsaved.h"
#include "common/store/identity.h"
#include "common/store/kinds.h"
#include "common/store/load.h"
#include "common/store/record.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX 4096
#define PAUSE_S     120 /* after so long without a use, another node may have had it */

/* ---- the helper's process ---- */

struct asking {
    struct asking *next;
    struct readback *owner;
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    bool here; /* older files are */
    struct helper helper;
};

static const char *const outcomes[] = {[LOAD_NONE] = "none",
                                       [LOAD_SAME] = "same",
                                       [LOAD_PLACED] = "placed",
                                       [LOAD_STAGED] = "staged",
                                       [LOAD_EXPIRED] = "expired"};

static int load(const struct asking *a, struct load_sum *out, struct err *e)
{
    const struct spawner *s = a->owner->spawner;
    const struct store_settings *settings = &s->config->store;
    AUTO_STORE struct store *store = store_open(settings, e);
    const struct saver saver = {
        .store = store, .root = s->root, .node = settings->node ? settings->node : ""};

    if (!store || store_identify(store, settings, s->root, e) < 0) {
        e->kind = ERR_UNAVAILABLE;
        return -1;
    }
    return load_conversation(&saver, a->sandbox_dir, out, e);
}

static void count_load(const char *result)
{
    AUTO_BUF struct buf labels = BUF_INIT(100);

    metrics_label(&labels, "result", result);
    metrics_add(METRIC_STORE_LOADS, buf_str(&labels), 1);
}

static void run_asking(void *ctx, int fd)
{
    const struct asking *a = ctx;
    struct load_sum sum;
    struct err e = ERR_INIT;
    int rc = load(a, &sum, &e);

    count_load(rc < 0 ? "error" : outcomes[sum.outcome]);
    if (rc == 0 && sum.outcome == LOAD_PLACED)
        log_info("%llu files of a conversation were read back from the store",
                 (unsigned long long)sum.files);
    json_auto_t *message = rc < 0 ? json_pack("{s:s, s:s}", "error", e.text, "kind",
                                              err_kind_name(e.kind))
                                  : json_pack("{s:s}", "staged",
                                              sum.outcome == LOAD_STAGED ? sum.staged : "");
    if (wire_send(fd, message, -1, &e) < 0)
        log_debug("%s", e.text);
}

/* ---- does a call need it? ---- */

/* The sandbox that a call's files are in; false: none, or a link that is not ours. */
static bool name_of(const struct readback *r, const json_t *head, char out[SANDBOX_NAME_LEN + 1])
{
    const struct sandbox_root *root = r->spawner->root;
    const char *uri = json_get_string(head, "uri"), *subject = json_get_string(head, "subject");
    AUTO_FILE_URL struct file_url url = {.path = NULL};
    struct err why = ERR_INIT;

    switch (op_row(op_of(head))->files) {
    case OP_FILES_NONE:
        return false;
    case OP_FILES_NAMED:
        return sandbox_name_of(root, head, out, &why) == 0;
    case OP_FILES_URL:
        if (!uri || file_url_parse(uri, root->url_ttl_s > 0, &url, &why) < 0 ||
            file_url_check(&root->file_keys, &url, clock_unix_s(), &why) < 0)
            return false;
        memcpy(out, url.id, SANDBOX_NAME_LEN + 1);
        return true;
    case OP_FILES_ARCHIVE:
        return subject && sandbox_name_of_url_path(root, subject, out, &why) == 0;
    }
    return false;
}

/* An empty record says that another node has a newer state (store/save.h). */
static bool is_stale(const struct sandbox_root *root, const char *sandbox_dir)
{
    char path[sizeof SAVED_DIR + 1 + SANDBOX_NAME_LEN];
    struct stat st;

    snprintf(path, sizeof path, SAVED_DIR "/%s", sandbox_dir);
    return fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == 0;
}

static bool is_here(const struct sandbox_root *root, const char *sandbox_dir)
{
    return faccessat(root->fd, sandbox_dir, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool readback_wants(const struct readback *r, const json_t *head,
                    char sandbox_dir[SANDBOX_NAME_LEN + 1])
{
    const struct sandbox_root *root = r->spawner->root;
    const struct store_settings *store = &r->spawner->config->store;
    const int64_t pause_began = clock_unix_s() - PAUSE_S;

    if (!store_is_wanted(store) || !name_of(r, head, sandbox_dir))
        return false;
    if (!is_here(root, sandbox_dir)) /* with a note it was deleted here just now */
        return !unsaved_has(root, sandbox_dir);
    if (op_row(op_of(head))->files == OP_FILES_URL) /* as nginx serves it */
        return false;
    if (is_stale(root, sandbox_dir))
        return true;
    if (!store->node || !*store->node || unsaved_has(root, sandbox_dir))
        return false;
    return state_last_used(root, sandbox_dir) < (r->began > pause_began ? r->began : pause_began);
}

/* ---- the main process's side ---- */

static void asking_free(struct readback *r, struct asking *a)
{
    struct asking **at = &r->first;

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    helper_close(&a->helper);
    free(a);
}

/* When the store does not answer, a call uses the files of this machine; without any it is refused.
 */
static void finish(struct asking *a, const struct err *why)
{
    struct readback *r = a->owner;
    struct err refusal = ERR_INIT;

    if (why->kind != ERR_NONE)
        log_warn("a conversation was not read back from the store%s: %s",
                 a->here ? "; its files of here are used" : "", why->text);
    if (why->kind == ERR_LIMIT || why->kind == ERR_BUSY)
        refusal = *why;
    else if (why->kind != ERR_NONE && !a->here)
        err_set(&refusal, ERR_BUSY,
                why->kind == ERR_UNAVAILABLE
                    ? "the store that may have this conversation's files does not answer"
                    : "this conversation's files cannot be read back from the store; the server's "
                      "log says why");
    r->done(r->ctx, a->sandbox_dir, &refusal);
    asking_free(r, a);
}

/* The record of what was staged comes to its place with the files. */
static int put_staged(struct asking *a, const char *staged, struct err *e)
{
    const struct sandbox_root *root = a->owner->spawner->root;

    if (prune_replace(a->owner->prune, a->sandbox_dir, staged, e) == 0)
        return save_record_put(root, a->sandbox_dir, e);
    if (e->kind == ERR_BUSY)
        err_set(e, ERR_BUSY,
                "the store has newer files of this conversation than those that are in use here; "
                "end what uses them");
    return -1;
}

static void on_message(void *owner, void *item, uint32_t events)
{
    struct asking *a = item;
    bool ended;
    json_auto_t *message = helper_next_message(&a->helper, &ended);
    const char *error = message ? json_get_string(message, "error") : NULL;
    const char *staged = message ? json_get_string(message, "staged") : NULL;
    struct err why = ERR_INIT;

    (void)owner;
    (void)events;
    if (!message && !ended)
        return;
    if (error)
        err_set(&why, err_kind_parse(json_get_string(message, "kind")), "%s", error);
    else if (!staged)
        err_set(&why, ERR_INTERNAL, "its process ended without a word");
    else if (*staged)
        (void)put_staged(a, staged, &why);
    finish(a, &why);
}

static void start(struct asking *a)
{
    const struct helper_spawn spawn = {.role = "readback",
                                       .main = run_asking,
                                       .ctx = a,
                                       .on_message = on_message,
                                       .item = a,
                                       .awaited = true};
    struct err e = ERR_INIT;

    if (helper_start(&a->helper, a->owner->spawner, &spawn, &e) < 0)
        finish(a, &e);
}

void readback_tick(struct readback *r)
{
    size_t n = 0;

    for (const struct asking *a = r->first; a; a = a->next)
        n += a->helper.pid > 0;
    for (struct asking *a = r->first, *next; a && n < READBACK_MAX; a = next) {
        next = a->next;
        if (a->helper.pid > 0)
            continue;
        n++;
        start(a);
    }
}

bool readback_is_asking(const struct readback *r, const char *sandbox_dir)
{
    for (const struct asking *a = r->first; a; a = a->next)
        if (strcmp(a->sandbox_dir, sandbox_dir) == 0)
            return true;
    return false;
}

void readback_ask(struct readback *r, const char *sandbox_dir)
{
    struct asking **at = &r->first;

    if (readback_is_asking(r, sandbox_dir))
        return;
    while (*at)
        at = &(*at)->next;
    *at = mem_alloc(sizeof **at);
    **at = (struct asking){.owner = r,
                           .here = is_here(r->spawner->root, sandbox_dir),
                           .helper = HELPER_INIT(MESSAGE_MAX)};
    memcpy((*at)->sandbox_dir, sandbox_dir, sizeof(*at)->sandbox_dir);
}

void readback_init(struct readback *r, const struct spawner *spawner, struct prune *prune,
                   void (*done)(void *ctx, const char *sandbox_dir, const struct err *why),
                   void *ctx)
{
    *r = (struct readback){
        .spawner = spawner, .prune = prune, .began = clock_unix_s(), .done = done, .ctx = ctx};
}

void readback_clear(struct readback *r)
{
    while (r->first) {
        helper_end(&r->first->helper);
        asking_free(r, r->first);
    }
}
