#include "config.h"

#include "common/records/run_record.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD_MAX   8192 /* bytes of run.json */
#define RECORD_DEPTH 4
#define DIR_FLAGS    (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PATH_LEN     (sizeof RUN_RECORDS_DIR + 1 + RUN_RECORD_NAME_LEN)

#define RECORD_FILE  "run.json"
#define RESULT_DRAFT ".result.json"

static const char *const all_files[] = {RECORD_FILE, RUN_RESULT_FILE, RESULT_DRAFT,
                                        RUN_OUTPUT_FILE};

/* Members of a result that are kept as bytes: JSON would escape each control byte as six. */
static const char *const text_names[] = {"stdout", "stderr", "output"};

/* It names its tenant, so that nothing has to be opened to find all of one tenant. */
void run_record_name(const char *run_id, const char *tenant, char out[RUN_RECORD_NAME_LEN + 1])
{
    char tag[CRYPTO_HEX_LEN(RUN_TENANT_BYTES)];

    crypto_tag(tenant, RUN_TENANT_BYTES, tag);
    snprintf(out, RUN_RECORD_NAME_LEN + 1, "%.*s-%s.d", RUN_ID_LEN, run_id, tag);
}

static void record_path(const char *run_id, const char *tenant, char out[PATH_LEN])
{
    char name[RUN_RECORD_NAME_LEN + 1];

    run_record_name(run_id, tenant, name);
    snprintf(out, PATH_LEN, RUN_RECORDS_DIR "/%s", name);
}

void run_record_clear(struct run_record *r)
{
    free(r->tenant);
    free(r->conversation);
    free(r->language);
    *r = (struct run_record){0};
}

void run_record_tell(const struct run_record *r, json_t *result)
{
    json_object_set_new(result, "conversationId", json_string(r->conversation));
    json_object_set_new(result, "language", json_string(r->language));
    json_object_set_new(result, "createdAt", json_integer(r->created));
    if (r->ended)
        json_object_set_new(result, "endedAt", json_integer(r->ended));
    json_object_set_new(result, "expiresAt", json_integer(run_record_expires(r)));
}

int64_t run_record_expires(const struct run_record *r)
{
    return (r->ended ? r->ended : r->deadline) + r->ttl_s;
}

int run_not_found(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_RUN);
}

void run_record_remove_at(int at_fd, const char *path)
{
    AUTO_FD int dir = openat(at_fd, path, DIR_FLAGS);
    for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(all_files); i++)
        unlinkat(dir, all_files[i], 0);
    unlinkat(at_fd, path, AT_REMOVEDIR);
}

void run_record_remove(const struct sandbox_root *root, const char *run_id, const char *tenant)
{
    char path[PATH_LEN];

    record_path(run_id, tenant, path);
    run_record_remove_at(root->fd, path);
}

/* ---- writing ---- */

static int write_file(int dir_fd, const char *name, const char *data, size_t len, bool sync,
                      struct err *e)
{
    AUTO_FD int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            0600);
    if (fd < 0)
        return err_errno(e, "the run's %s cannot be made", name);
    if (fdio_write_all(fd, data, len, e) < 0)
        return err_wrap(e, "the run's %s", name);
    if (sync && fdatasync(fd) < 0)
        return err_errno(e, "the run's %s cannot be written", name);
    return 0;
}

static int write_record(const struct sandbox_root *root, int dir_fd, const struct run_record *r,
                        struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);
    json_auto_t *record = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "tenant", r->tenant,
                                    "conversationId", r->conversation, "language", r->language,
                                    "createdAt", (json_int_t)r->created, "deadline",
                                    (json_int_t)r->deadline, "ttl", (json_int_t)r->ttl_s);

    if (json_write(record, &text) < 0)
        return err_set(e, ERR_LIMIT, "the run's record is over %d bytes", RECORD_MAX);
    if (write_file(dir_fd, RECORD_FILE, text.data, text.len, true, e) < 0)
        return -1;
    /* The names must outlive a power cut as well. */
    AUTO_FD int runs = openat(root->fd, RUN_RECORDS_DIR, DIR_FLAGS);
    if (runs < 0 || fsync(dir_fd) < 0 || fsync(runs) < 0)
        return err_errno(e, "the run's record cannot be written");
    return 0;
}

int run_record_begin(const struct sandbox_root *root, const char *run_id,
                     const struct run_record *record, struct err *e)
{
    char path[PATH_LEN];

    record_path(run_id, record->tenant, path);
    if (mkdirat(root->fd, path, 0700) < 0)
        return err_errno(e, "the run's record cannot be made");
    AUTO_FD int dir = openat(root->fd, path, DIR_FLAGS);
    if (dir >= 0 && write_record(root, dir, record, e) == 0)
        return 0;
    if (dir < 0)
        err_errno(e, "the run's record cannot be opened");
    run_record_remove_at(root->fd, path);
    return -1;
}

static int write_result(int dir_fd, int64_t ended, const json_t *result,
                        const struct output *output, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX), texts = BUF_INIT(WIRE_MESSAGE_MAX);
    const char *status = json_get_string(result, "status");
    json_auto_t *head = json_pack("{s:I, s:s, s:I}", "endedAt", (json_int_t)ended, "status",
                                  status ? status : "", "total", (json_int_t)output_total(output));
    json_auto_t *rest = json_copy((json_t *)(uintptr_t)result);

    for (size_t i = 0; i < ARRAY_LEN(text_names); i++) {
        const json_t *one = json_object_get(result, text_names[i]);
        if (!json_is_string(one))
            continue;
        json_object_set_new(head, text_names[i], json_integer((json_int_t)json_string_length(one)));
        buf_add(&texts, json_string_value(one), json_string_length(one));
        json_object_del(rest, text_names[i]);
    }
    if (json_write(head, &text) < 0)
        return err_set(e, ERR_INTERNAL, "the run's result has no head");
    buf_add_char(&text, '\n');
    if (json_write(rest, &text) == 0)
        buf_add_char(&text, '\n');
    buf_add(&text, buf_str(&texts), texts.len);
    if (!rest || !buf_ok(&text))
        return err_set(e, ERR_LIMIT, "the run's result is over %u bytes", WIRE_MESSAGE_MAX);
    return write_file(dir_fd, RESULT_DRAFT, text.data, text.len, false, e);
}

int run_record_end(const struct sandbox_root *root, const char *run_id,
                   const struct run_record *record, const json_t *result,
                   const struct output *output, struct err *e)
{
    char path[PATH_LEN];
    AUTO_BUF struct buf raw = BUF_INIT(OUTPUT_NEWEST);

    record_path(run_id, record->tenant, path);
    AUTO_FD int dir = openat(root->fd, path, DIR_FLAGS);
    if (dir < 0)
        return err_errno(e, "the run's record cannot be opened");
    output_raw(output, &raw);
    if (write_file(dir, RUN_OUTPUT_FILE, buf_str(&raw), raw.len, false, e) < 0 ||
        write_result(dir, record->ended, result, output, e) < 0)
        return -1;
    if (renameat(dir, RESULT_DRAFT, dir, RUN_RESULT_FILE) < 0)
        return err_errno(e, "the run's result cannot be put in its place");
    return 0;
}

/* ---- reading ---- */

/* Up to max bytes of a file; a longer one is cut, or an error. */
static int read_file(int dir_fd, const char *name, struct buf *out, bool whole, struct err *e)
{
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "%s cannot be opened", name);
    if (whole)
        return fdio_read_to_end(fd, out, e);
    char *to = buf_reserve(out, out->max);
    ssize_t n = to ? read(fd, to, out->max) : -1;
    if (n < 0)
        return err_errno(e, "%s cannot be read", name);
    buf_grew(out, (size_t)n);
    return 0;
}

/* -1 when it is missing or torn. */
static int read_record(int dir_fd, struct run_record *out)
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);
    struct err e = ERR_INIT;

    if (read_file(dir_fd, RECORD_FILE, &text, true, &e) < 0)
        return -1;
    json_auto_t *record = json_parse(buf_str(&text), text.len, RECORD_DEPTH, &e);
    const char *tenant = json_get_string(record, "tenant");
    const char *conversation = json_get_string(record, "conversationId");
    const char *language = json_get_string(record, "language");
    if (!tenant || !conversation || !language)
        return -1;
    *out = (struct run_record){
        .tenant = mem_strdup(tenant),
        .conversation = mem_strdup(conversation),
        .language = mem_strdup(language),
        .created = json_get_integer(record, "createdAt", 0),
        .deadline = json_get_integer(record, "deadline", 0),
        .ttl_s = json_get_integer(record, "ttl", 0),
    };
    return 0;
}

/* The first line of the result, with what is behind it in *rest; NULL when there is no result. */
static json_t *read_result_head(int dir_fd, struct buf *text, bool whole, const char **rest)
{
    struct err e = ERR_INIT;

    if (read_file(dir_fd, RUN_RESULT_FILE, text, whole, &e) < 0)
        return NULL;
    const char *end = memchr(buf_str(text), '\n', text->len);
    if (!end)
        return NULL;
    *rest = end + 1;
    return json_parse(text->data, (size_t)(end - text->data), RECORD_DEPTH, &e);
}

/* Opens the folder, reads the record. The folder's descriptor, or -1. */
static int open_record(int at_fd, const char *path, struct run_record *out)
{
    AUTO_FD int dir = openat(at_fd, path, DIR_FLAGS);
    if (dir < 0 || read_record(dir, out) < 0)
        return -1;
    return TAKE_FD(dir);
}

int run_record_look(int runs_fd, const char *name, struct run_record *out,
                    char out_status[RUN_STATUS_MAX])
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);
    const char *rest;

    AUTO_FD int dir = open_record(runs_fd, name, out);
    if (dir < 0)
        return -1;
    json_auto_t *head = read_result_head(dir, &text, false, &rest);
    out->ended = json_get_integer(head, "endedAt", 0);
    json_copy_string(head, "status", out_status, RUN_STATUS_MAX);
    return 0;
}

/* Puts the texts behind the first line of rest back into the result. */
static json_t *join_texts(const json_t *head, const char *rest, const char *end)
{
    struct err e = ERR_INIT;
    const char *at = memchr(rest, '\n', (size_t)(end - rest));
    json_auto_t *result = at ? json_parse(rest, (size_t)(at - rest), JSON_MAX_DEPTH, &e) : NULL;

    for (size_t i = 0; result && i < ARRAY_LEN(text_names); i++) {
        json_int_t len = json_get_integer(head, text_names[i], -1);
        if (len < 0)
            continue;
        if (len > end - (at + 1))
            return NULL;
        json_object_set_new(result, text_names[i], json_from_bytes(at + 1, (size_t)len));
        at += len;
    }
    return TAKE_PTR(result);
}

static void read_result(int dir_fd, struct run_record *out, json_t **out_result)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    const char *rest;
    json_auto_t *head = read_result_head(dir_fd, &text, true, &rest);

    if (head)
        *out_result = join_texts(head, rest, text.data + text.len);
    if (*out_result)
        out->ended = json_get_integer(head, "endedAt", 0);
}

int run_record_read(const struct sandbox_root *root, const char *run_id, const char *tenant,
                    struct run_record *out, json_t **out_result, struct err *e)
{
    AUTO_RUN_RECORD struct run_record r = {0};
    char path[PATH_LEN];
    json_auto_t *result = NULL;

    record_path(run_id, tenant, path);
    AUTO_FD int dir = run_id_ok(run_id) ? open_record(root->fd, path, &r) : -1;
    if (dir < 0 || strcmp(r.tenant, tenant) != 0)
        return run_not_found(e);
    read_result(dir, &r, &result);
    if (clock_unix_s() >= run_record_expires(&r))
        return run_not_found(e);
    *out = r;
    r = (struct run_record){0};
    *out_result = TAKE_PTR(result);
    return 0;
}

struct output *run_record_output(const struct sandbox_root *root, const char *run_id,
                                 const char *tenant, struct err *e)
{
    AUTO_BUF struct buf raw = BUF_INIT(OUTPUT_NEWEST);
    AUTO_BUF struct buf head_text = BUF_INIT(RECORD_MAX);
    char path[PATH_LEN];
    const char *rest;

    record_path(run_id, tenant, path);
    AUTO_FD int dir = openat(root->fd, path, DIR_FLAGS);
    int rc = dir < 0 ? -1 : read_file(dir, RUN_OUTPUT_FILE, &raw, true, e);
    json_auto_t *head = rc < 0 ? NULL : read_result_head(dir, &head_text, false, &rest);
    json_int_t total = json_get_integer(head, "total", -1);
    if (total < (json_int_t)raw.len) {
        run_not_found(e);
        return NULL;
    }
    struct output *output = output_new(0, OUTPUT_NEWEST);
    output_resume(output, (uint64_t)total - raw.len);
    output_add(output, ENGINE_STDOUT, buf_str(&raw), raw.len);
    return output;
}

json_t *run_record_row(const char *run_id, const struct run_record *r, const char *status)
{
    json_t *row = json_pack("{s:s, s:s}", "runId", run_id, "status", status);

    run_record_tell(r, row);
    return row;
}
