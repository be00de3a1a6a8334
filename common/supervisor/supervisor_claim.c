#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/wire.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/warm_dir.h"
#include "common/supervisor/run_limits.h"

#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_MS        30000 /* for the body, which was sent behind the head */
#define KEEP_BYTES_MAX (8u * 1024 * 1024)

/* ---- limits: the broker trusts no worker ---- */

/* And fills in what the caller left to us. */
static int check_request(const struct supervisor_start *start, struct run_request *r, struct err *e)
{
    const struct broker_limits *limits = &start->config->limits;

    if (strcmp(r->language, start->runner->language) != 0)
        return err_set(e, ERR_INTERNAL, "a run in another language came to a supervisor");
    if (run_limits_check_size("code", r->code.len, limits->code_max, e) < 0 ||
        run_limits_check_size("stdin", r->input.len, limits->stdin_max, e) < 0 ||
        run_limits_check_env(r, limits->env_max, e) < 0)
        return -1;
    if (r->network && !limits->network)
        return err_set(e, ERR_DENIED, "network: this server does not allow it (SANDBOX_NETWORK)");
    if (r->timeout_ms > limits->timeout_max_ms)
        return err_set(e, ERR_LIMIT, "timeout is %" PRIu64 " ms; the limit is %" PRIu64,
                       r->timeout_ms, limits->timeout_max_ms);
    if (start->runner->protocol == 0 && (r->input.data || r->n_args > 0))
        return err_set(e, ERR_INVALID,
                       "stdin and args: the runner image for %s takes only code (it has no "
                       "sandbox.protocol label)",
                       start->runner->language);
    if (r->timeout_ms == 0)
        r->timeout_ms = limits->timeout_ms;
    if (r->keep_bytes == 0 || r->keep_bytes > KEEP_BYTES_MAX)
        r->keep_bytes = limits->output_keep;
    return 0;
}

/* ---- the claim ---- */

static int take_request(struct supervisor *s, const json_t *head, int connection, struct err *e)
{
    s->head = json_deep_copy(head);
    if (wire_run_head_decode(s->head, &s->request, &s->options, e) < 0 ||
        !(s->body = wire_recv(connection, NULL, deadline_in_ms(BODY_MS), e)) ||
        wire_run_body_decode(s->body, &s->request, e) < 0 ||
        check_request(s->start, &s->request, e) < 0 || supervisor_check_index(s, e) < 0)
        return -1;
    /* Its name is known before its directory is there. */
    s->sandbox.root = s->start->root;
    return sandbox_name(s->start->root, s->request.tenant, s->request.conversation, s->sandbox.name,
                        e);
}

static void describe(struct supervisor *s)
{
    const struct run_request *r = &s->request;
    int64_t now = clock_unix_s();

    s->record = (struct run_record){
        .tenant = (char *)(uintptr_t)r->tenant,
        .conversation = (char *)(uintptr_t)r->conversation,
        .language = (char *)(uintptr_t)r->language,
        .created = now,
        .deadline = now +
                    (int64_t)(r->timeout_ms + SUPERVISOR_STARTS * SUPERVISOR_START_MS) / 1000 + 1,
        .ttl_s = (int64_t)s->start->config->limits.result_ttl_ms / 1000,
    };
}

static void add_caller(struct supervisor *s, int connection)
{
    struct waiter *r = waiters_add(&s->waiters, connection, WAITER_CALLER);
    int64_t left_ms = (int64_t)s->options.wait_ms - s->queue_ms;

    r->live = s->options.live;
    if (s->options.wait_ms > 0)
        r->answer_by = deadline_in_ms(left_ms > 0 ? left_ms : 0);
    if (s->options.background)
        r->answer_by = deadline_in_ms(0);
}

void supervisor_claim(struct supervisor *s, const json_t *head, int64_t queue_ms, int connection)
{
    struct err e = ERR_INIT;

    if (s->claimed || s->stop) {
        close(connection); /* without a word: somebody else may serve it */
        return;
    }
    broker_address_remember(&s->home, connection);
    if (take_request(s, head, connection, &e) < 0) {
        json_auto_t *refusal = wire_error_new(&e);
        waiter_refuse(connection, refusal);
        s->stop = true;
        return;
    }
    s->claimed = true;
    s->queue_ms = queue_ms;
    describe(s);
    run_capture_init(&s->capture, s->request.keep_bytes, s->start->config->limits.output_max);
    add_caller(s, connection);
    supervisor_say(s, json_pack("{s:s}", "is", "running"));
    supervisor_tend(s);
}

void supervisor_unclaim(struct supervisor *s)
{
    run_capture_clear(&s->capture);
    sandbox_close(&s->sandbox);
    wire_run_decoded_clear(&s->request);
    json_decref(s->head);
    json_decref(s->body);
}

/* ---- its directory ---- */

/* The warm directory becomes the sandbox, unless there is one meanwhile. */
static int adopt_warm_dir(struct supervisor *s, struct err *e)
{
    struct err why = ERR_INIT;

    if (warm_dir_adopt(s->start->root, s->start->warm_dir, s->request.tenant,
                       s->request.conversation, &s->sandbox, &why) == 0) {
        s->fresh = true;
        return 0;
    }
    if (why.kind != ERR_EXISTS)
        log_warn("a waiting container is of no use: %s", why.text);
    s->started = false;
    return sandbox_open(s->start->root, s->request.tenant, s->request.conversation, &s->sandbox, e);
}

int supervisor_place(struct supervisor *s, struct err *e)
{
    if (run_needs_new(&s->request))
        s->started = false;
    if (s->started && s->start->warm_dir)
        return adopt_warm_dir(s, e);
    if (sandbox_open(s->start->root, s->request.tenant, s->request.conversation, &s->sandbox, e) <
        0)
        return -1;
    if (s->started && supervisor_seat(s->start->root, s->sandbox.name) != s->seat)
        s->started = false;
    return 0;
}

void supervisor_note_use(struct supervisor *s)
{
    struct err e = ERR_INIT;

    if (s->noted || s->sandbox.fd < 0)
        return;
    s->noted = true;
    if (state_note_use(&s->sandbox, s->request.tenant, s->request.conversation, &e) < 0)
        log_warn("a sandbox's record was not written: %s", e.text);
}
