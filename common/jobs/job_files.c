/* Files and folders of a sandbox. */
#include "config.h"

#include "common/jobs/job.h"
#include "common/protocol/client_runs.h"

#include "common/base/b64.h"
#include "common/base/clock.h"
#include "common/records/kept_runs.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/snapshot.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/unsaved.h"

#include <fcntl.h>
#include <string.h>

/* Bytes of a page's end as text. */
#define PLACE_MAX B64_ENCODED_LEN(FILES_NAME_MAX)

json_t *job_put(struct job *job, struct err *e)
{
    uint64_t max = job->world->config->limits.file_max;
    json_int_t size = json_get_integer(job->request, "size", -1);
    bool replace = json_get_bool(job->request, "replace", 0);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct job_target t;

    if (size < 0 || job->in_fd < 0)
        return job_fail(e, ERR_INVALID, "put: the content is missing");
    if ((uint64_t)size > max)
        return job_fail(e, ERR_LIMIT, "content is %lld bytes; the limit is %llu", (long long)size,
                        (unsigned long long)max);
    if (job_read_target(job, "name", "filename", &t, e) < 0 ||
        sandbox_open(job->world->root, t.tenant, t.conversation, &sb, e) < 0 ||
        job_take_room(job, &sb, t.tenant, (uint64_t)size, 0, e) < 0 ||
        files_put(&sb, t.name, job->in_fd, (uint64_t)size, replace, e) < 0)
        return NULL;
    job_land(job, (uint64_t)size);
    job_note_use(&sb, t.tenant, t.conversation);
    AUTO_FREE char *url = sandbox_file_url(&sb, t.name);
    json_t *result = json_pack("{s:s, s:I, s:s}", "name", t.name, "size", size, "url", url);
    retention_notice_owner(&sb, result);
    return result;
}

json_t *job_open(struct job *job, struct err *e)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct job_target t;
    struct stat st;

    if (job_open_target(job, &t, &sb, e) < 0)
        return NULL;
    job->out_fd = files_open(&sb, t.name, &st, e);
    if (job->out_fd < 0)
        return NULL;
    job_note_reading(&sb, t.tenant, t.conversation);
    AUTO_FREE char *url = sandbox_file_url(&sb, t.name);
    return json_pack("{s:I, s:s}", "size", (json_int_t)st.st_size, "url", url);
}

/* As nginx serves it: the URL is the key, and reading is no use of the conversation. */
json_t *job_open_url(struct job *job, struct err *e)
{
    const struct sandbox_root *root = job->world->root;
    const char *uri = json_get_string(job->request, "uri");
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_FILE_URL struct file_url url = {.path = NULL};
    struct stat st;

    if (!uri)
        return job_fail(e, ERR_INVALID, "uri is missing");
    if (file_url_parse(uri, root->url_ttl_s > 0, &url, e) < 0 ||
        file_url_check(&root->file_keys, &url, clock_unix_s(), e) < 0 ||
        sandbox_find_named(root, url.id, &sb, e) < 0)
        return NULL;
    job->out_fd = files_open(&sb, url.path, &st, e);
    return job->out_fd < 0 ? NULL : json_pack("{s:I}", "size", (json_int_t)st.st_size);
}

/* ---- listing ---- */

static json_t *row_new(const struct sandbox *sb, const char *name, const struct stat *st)
{
    const char *type = S_ISREG(st->st_mode)   ? "file"
                       : S_ISDIR(st->st_mode) ? "folder"
                       : S_ISLNK(st->st_mode) ? "link"
                                              : "other";
    json_t *row = json_pack("{s:o, s:s, s:I}", "name", json_from_bytes(name, strlen(name)), "type",
                            type, "modified", (json_int_t)st->st_mtim.tv_sec);

    if (S_ISREG(st->st_mode)) {
        AUTO_FREE char *url = sandbox_file_url(sb, name);
        json_object_set_new(row, "size", json_integer((json_int_t)st->st_size));
        json_object_set_new(row, "url", json_string(url));
    }
    return row;
}

/* The end of a page comes from the client: it is only a place in the client's own list. */
static int read_place(const char *text, struct buf *out, struct err *e)
{
    if (!text)
        return 0;
    if (strlen(text) <= PLACE_MAX && b64_decode(text, strlen(text), out) == 0 && buf_ok(out) &&
        out->len > 0 && !memchr(out->data, '\0', out->len))
        return 0;
    return err_set(e, ERR_INVALID, "cursor is not where a page ended");
}

static json_t *page_new(const struct sandbox *sb, const struct files_page *page)
{
    AUTO_BUF struct buf next = BUF_INIT(PLACE_MAX);
    json_t *rows = json_array();
    json_t *result = json_pack("{s:o}", "files", rows);

    for (size_t i = 0; i < page->n; i++)
        json_array_append_new(rows, row_new(sb, page->rows[i].name, &page->rows[i].st));
    if (page->next) {
        b64_encode(page->next, strlen(page->next), &next);
        json_object_set_new(result, "next", json_stringn(buf_str(&next), next.len));
    }
    if (page->incomplete)
        json_object_set_new(result, "incomplete", json_true());
    return result;
}

/* The query without its glob and place. */
static int read_query(const json_t *request, struct files_query *out, struct err *e)
{
    const json_t *folder = json_object_get(request, "folder");
    json_int_t max = json_get_integer(request, "max", 0);

    out->folder = json_string_value(folder);
    out->recursive = json_get_bool(request, "recursive", 0);
    out->hidden = json_get_bool(request, "hidden", 0);
    if (!out->folder)
        return err_set(e, ERR_INVALID, "folder is missing");
    if (max < 1 || max > FILES_LIST_MAX)
        return err_set(e, ERR_INVALID, "max must be from 1 to %d", FILES_LIST_MAX);
    out->max = (size_t)max;
    return json_string_length(folder) == 0
               ? 0
               : files_check_name("folder", out->folder, json_string_length(folder), e);
}

json_t *job_list_folder(struct job *job, struct err *e)
{
    const char *pattern = json_get_string(job->request, "glob");
    AUTO_BUF struct buf place = BUF_INIT(FILES_NAME_MAX + 2);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_FILES_PAGE struct files_page page = {0};
    struct files_query q = {0};
    struct glob glob;
    const char *tenant, *conversation;

    if (job_read_owner(job, &tenant, &conversation, e) < 0 || read_query(job->request, &q, e) < 0 ||
        (pattern && glob_compile("glob", pattern, &glob, e) < 0) ||
        read_place(json_get_string(job->request, "after"), &place, e) < 0 ||
        sandbox_find(job->world->root, tenant, conversation, &sb, e) < 0)
        return NULL;
    q.glob = pattern ? &glob : NULL;
    q.hidden |= pattern && snapshot_is_hidden(pattern);
    q.after = buf_str(&place);
    job_note_reading(&sb, tenant, conversation);
    if (files_list(&sb, &q, &page, e) < 0)
        return NULL;
    json_t *result = page_new(&sb, &page);
    retention_notice_expiry(&sb, result);
    return result;
}

/* ---- changing ---- */

json_t *job_delete(struct job *job, struct err *e)
{
    bool recursive = json_get_bool(job->request, "recursive", 0);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    const struct sandbox_watch watch = {job_check_caller, job};
    struct job_target t;
    uint64_t deleted;

    if (job_open_target(job, &t, &sb, e) < 0)
        return NULL;
    job_note_use(&sb, t.tenant, t.conversation);
    int rc = files_delete(&sb, t.name, recursive, &watch, &deleted, e);
    unsaved_note(sb.root, sb.name);
    if (rc < 0)
        return NULL;
    return json_pack("{s:I}", "deleted", (json_int_t)deleted);
}

json_t *job_move(struct job *job, struct err *e)
{
    bool replace = json_get_bool(job->request, "replace", 0);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct job_target from, to;
    struct stat st;

    if (job_read_target(job, "from", "from", &from, e) < 0 ||
        job_read_target(job, "to", "to", &to, e) < 0 ||
        sandbox_find(job->world->root, from.tenant, from.conversation, &sb, e) < 0 ||
        files_move(&sb, from.name, to.name, replace, e) < 0)
        return NULL;
    job_note_use(&sb, from.tenant, from.conversation);
    return files_look(&sb, to.name, &st, e) < 0 ? NULL : row_new(&sb, to.name, &st);
}

/* ---- a conversation's end ---- */

/* Counts the files, and has them removed. If it does not come so far, the sweep of .staging does.
 */
json_t *job_delete_conversation(struct job *job, struct err *e)
{
    const char *tenant, *conversation;
    const char *staged = json_get_string(job->request, "staged");
    char trash[TRASH_NAME_LEN + 1];
    struct sandbox gone = {.root = job->world->root, .fd = -1};
    struct usage u = {0};

    if (job_read_owner(job, &tenant, &conversation, e) < 0)
        return NULL;
    if (!staged)
        return job_fail(e, ERR_INVALID, "staged is missing");
    AUTO_FD int dir = openat(gone.root->fd, STAGING_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD int fd = openat(dir, staged, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    gone.fd = fd;
    if ((fd >= 0 && usage_measure(&gone, NULL, &u, e) < 0) ||
        trash_take(gone.root, dir, staged, trash, e) < 0)
        return NULL;
    kept_runs_remove(gone.root, tenant, conversation, json_get_integer(job->request, "at", 0));
    return json_pack("{s:b, s:I, s:I}", "deleted", 1, "files", (json_int_t)u.files, "bytes",
                     (json_int_t)u.bytes);
}
