/* Which calls the limits of their tenants allow. One process decides, so none can be passed by
 * calling twice at once; only the time of programs that still run is not known yet. */
#include "config.h"

#include "common/broker/broker.h"

#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/staging.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAVE_MS    5000 /* what a broker that is killed forgets at most */
#define FILE_NAME  "run-seconds"
#define LOCK_NAME  "run-seconds.lock" /* a broker that ends may meet the next one */
#define FILE_MAX   (1u << 20)
#define FILE_DEPTH 4

static struct tenant_now now(void)
{
    return (struct tenant_now){clock_mono_ms(), clock_unix_s()};
}

/* ---- what was used before ---- */

static int open_state(const struct broker *b)
{
    return openat(b->root.fd, STATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A file that is not there, is known or makes no sense says nothing. */
static void load(struct broker *b, int dir_fd)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    AUTO_FD int fd = openat(dir_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct err e = ERR_INIT;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || memcmp(&st.st_mtim, &b->books_read, sizeof st.st_mtim) == 0)
        return;
    const bool whole = fdio_read_to_end(fd, &text, &e) == 0;
    if (whole || e.kind != ERR_IO) /* else it is tried again */
        b->books_read = st.st_mtim;
    json_auto_t *saved = whole ? json_parse(buf_str(&text), text.len, FILE_DEPTH, &e) : NULL;
    if (!saved)
        log_warn(STATE_DIR "/" FILE_NAME ": %s; the time of programs counts from 0", e.text);
    tenant_books_merge(b->tenant_books, saved, now());
}

/* ---- the check ---- */

static int check_language(const struct tenant_limits *limits, const json_t *head, struct err *e)
{
    const char *language = json_get_string(head, "language");

    if (!*limits->languages || (language && tenants_list_has(limits->languages, language)))
        return 0;
    return err_set(e, ERR_DENIED, "%s: not allowed by your limits (languages); allowed are: %s",
                   language ? "language" : "image", limits->languages);
}

static int check_network(const struct tenant_limits *limits, const json_t *head, struct err *e)
{
    if (wire_network(head) <= (enum network_tier)limits->network)
        return 0;
    return err_set(e, ERR_DENIED, "network: not allowed by your limits (network is %s)",
                   network_name((enum network_tier)limits->network));
}

const struct tenant_limits *tenant_limits_of(const struct broker *b, const json_t *head)
{
    const char *section = json_get_string(head, "limits");

    return tenants_find(b->config->tenants, section ? section : json_get_string(head, "tenant"));
}

int tenant_limits_check(struct broker *b, enum broker_op op, const json_t *head,
                        int64_t *out_retry_ms, struct err *e)
{
    const char *tenant = json_get_string(head, "tenant");
    const bool makes = op == OP_RUN || op == OP_SESSION || op == OP_CREATE_PSANDBOX;

    *out_retry_ms = 0;
    if (!tenant || (!makes && op != OP_EXEC))
        return 0;
    const struct tenant_limits *limits = tenant_limits_of(b, head);
    if (makes && (check_language(limits, head, e) < 0 || check_network(limits, head, e) < 0))
        return -1;
    /* Runs wait for their tenant's place in the queue; in a persistent sandbox nothing waits. */
    if (limits->concurrent_runs > 0 && (op == OP_EXEC || op == OP_SESSION)) {
        if (run_queue_check_most(b->queue, tenant, limits->concurrent_runs, e) < 0) {
            *out_retry_ms = run_queue_retry_ms(b->queue);
            return -1;
        }
    }
    if (limits->run_seconds_per_day > 0) {
        AUTO_FD int dir = open_state(b);
        load(b, dir); /* what another broker, before or beside this one, has saved */
    }
    return tenant_books_ask(b->tenant_books, tenant, limits, now(), out_retry_ms, e);
}

/* ---- time of programs, and its file ---- */

void tenant_limits_note_run(struct broker *b, const char *tenant, int64_t ms)
{
    if (!tenant)
        return;
    tenant_books_note_run(b->tenant_books, tenant, ms, now());
    if (tenant_books_changed(b->tenant_books) && b->books_at.at_ms < 0)
        b->books_at = deadline_in_ms(SAVE_MS);
}

static int save(struct broker *b, int dir_fd, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    AUTO_STAGED struct staged file = STAGED_INIT;
    AUTO_FD int fd = staging_create_file(&b->root, &file);
    json_auto_t *books = tenant_books_encode(b->tenant_books);

    if (fd < 0)
        return err_errno(e, "cannot be made");
    if (json_write(books, &text) < 0)
        return err_set(e, ERR_LIMIT, "is over %u bytes", FILE_MAX);
    if (fdio_write_all(fd, text.data, text.len, e) < 0)
        return -1;
    if (staged_move(&file, dir_fd, FILE_NAME, STAGED_MOVE_REPLACE) < 0)
        return err_errno(e, "cannot be put in its place");
    tenant_books_saved(b->tenant_books);
    return 0;
}

/* Another broker's additions are taken in, so that both are in the file. */
static void save_all(struct broker *b)
{
    AUTO_FD int dir = open_state(b);
    AUTO_FD int lock = openat(dir, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct err e = ERR_INIT;

    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0) {
        b->books_at = deadline_in_ms(SAVE_MS);
        return;
    }
    load(b, dir);
    if (save(b, dir, &e) < 0)
        log_warn(STATE_DIR "/" FILE_NAME " %s: a restart forgets how long programs ran", e.text);
}

void tenant_limits_tick(struct broker *b)
{
    if (b->books_at.at_ms < 0 || !(b->stopping || deadline_passed(b->books_at)))
        return;
    b->books_at = DEADLINE_NEVER;
    save_all(b);
}

void tenant_limits_close(struct broker *b)
{
    if (b->root.fd >= 0 && b->tenant_books && tenant_books_changed(b->tenant_books))
        save_all(b);
    tenant_books_free(b->tenant_books);
}
