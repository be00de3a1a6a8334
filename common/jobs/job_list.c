/* The files of a tenant's conversations, page by page, and names for completion. */
#include "config.h"

#include "common/jobs/job.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/snapshot.h"
#include "common/sandbox/state/state.h"

#include <string.h>

/* The cost of one page; it ends early there. */
#define ENTRIES_PER_PAGE 50000

struct page {
    struct job *job;
    const char *tenant;
    struct state_sandbox from; /* where it begins; "" = with the first sandbox */
    const char *from_name;     /* in that sandbox: behind this file; "" = with the first */
    size_t max;
    char listed[BROKER_LISTED_MAX][SANDBOX_NAME_LEN + 1]; /* the sandboxes to be listed */
    size_t n_listed;
    json_t *files;
    json_t *next; /* NULL: there is no more */
    size_t entries;
};

/* Sets conversation's sandbox and record; false for one that is gone or not this tenant's. */
static bool open_listed(const struct job_world *world, const char *tenant, const char *sandbox_dir,
                        struct sandbox *sb, struct state_record *record)
{
    struct err e = ERR_INIT;

    return state_read(world->root, sandbox_dir, record, &e) == 0 &&
           strcmp(record->tenant, tenant) == 0 &&
           sandbox_find_named(world->root, sandbox_dir, sb, &e) == 0;
}

/* Names that a client cannot use in a call are left out. */
static bool can_be_opened(const char *name)
{
    return files_check_name("name", name, strlen(name), NULL) == 0;
}

static void stop_at(struct page *p, const struct state_sandbox *sandbox_dir, const char *name)
{
    p->next = json_pack("{s:I, s:s, s:s}", "createdAt", (json_int_t)sandbox_dir->created, "sandbox",
                        sandbox_dir->name, "name", name);
}

static void add_files(struct page *p, const struct state_sandbox *sandbox_dir,
                      const struct snapshot *files, const char *conversation, const char *behind)
{
    const char *last = behind;

    for (size_t i = 0; i < files->n; i++) {
        const struct snapshot_entry *file = &files->items[i];

        if (strcmp(file->name, behind) <= 0 || !can_be_opened(file->name))
            continue;
        if (json_array_size(p->files) >= p->max) {
            stop_at(p, sandbox_dir, last);
            return;
        }
        json_array_append_new(p->files,
                              json_pack("{s:s, s:s, s:I, s:I}", "conversationId", conversation,
                                        "name", file->name, "size", (json_int_t)file->size,
                                        "modified", (json_int_t)file->mtime.tv_sec));
        last = file->name;
    }
}

static int add_sandbox(struct page *p, const struct state_sandbox *sandbox_dir, struct err *e)
{
    const char *behind = strcmp(sandbox_dir->name, p->from.name) == 0 ? p->from_name : "";
    AUTO_STATE_RECORD struct state_record record = {0};
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_SNAPSHOT struct snapshot files = {0};

    if (job_check_caller(p->job, e) < 0)
        return -1;
    if (!open_listed(p->job->world, p->tenant, sandbox_dir->name, &sb, &record))
        return 0;
    if (snapshot_take(&sb, &files, e) < 0)
        return -1;
    p->entries += files.n;
    add_files(p, sandbox_dir, &files, record.conversation, behind);
    return 0;
}

static bool is_listed(const struct page *p, const char *sandbox_dir)
{
    for (size_t i = 0; i < p->n_listed; i++)
        if (strcmp(p->listed[i], sandbox_dir) == 0)
            return true;
    return false;
}

static int fill(struct page *p, struct err *e)
{
    AUTO_STATE_LIST struct state_list sandboxes = {0};

    if (state_list(p->job->world->root, p->tenant, &sandboxes, e) < 0)
        return -1;
    for (size_t i = 0; i < sandboxes.n && !p->next; i++) {
        const struct state_sandbox *sandbox_dir = &sandboxes.items[i];

        if (!is_listed(p, sandbox_dir->name) ||
            (p->from.name[0] && state_sandbox_compare(sandbox_dir, &p->from) < 0))
            continue;
        if (json_array_size(p->files) >= p->max || p->entries >= ENTRIES_PER_PAGE)
            stop_at(p, sandbox_dir, "");
        else if (add_sandbox(p, sandbox_dir, e) < 0)
            return -1;
    }
    return 0;
}

/* The cursor comes from the client: it is only a place in the client's own list. */
static int read_after(const json_t *after, struct page *p, struct err *e)
{
    const char *name = json_get_string(after, "name");
    const char *sandbox_dir = json_get_string(after, "sandbox");

    p->from_name = "";
    if (!after)
        return 0;
    if (!name || strlen(name) > FILES_NAME_MAX || !sandbox_dir || !state_name_ok(sandbox_dir) ||
        !json_is_integer(json_object_get(after, "createdAt")))
        return err_set(e, ERR_INVALID, "that is not where a page ended");
    memcpy(p->from.name, sandbox_dir, sizeof(p->from.name));
    p->from.created = json_get_integer(after, "createdAt", 0);
    p->from_name = name;
    return 0;
}

static int read_max(const json_t *request, size_t *out, struct err *e)
{
    json_int_t max = json_get_integer(request, "max", 0);

    if (max < 1 || max > BROKER_LIST_MAX)
        return err_set(e, ERR_INVALID, "max must be from 1 to %d", BROKER_LIST_MAX);
    *out = (size_t)max;
    return 0;
}

/* Conversations without files are passed over. */
static int read_conversations(const json_t *conversations, struct page *p, struct err *e)
{
    const struct sandbox_root *root = p->job->world->root;
    const json_t *one;

    if (!json_is_array(conversations) || json_array_size(conversations) > BROKER_LISTED_MAX)
        return err_set(e, ERR_INVALID, "list: conversations must be an array of at most %d",
                       BROKER_LISTED_MAX);
    for (size_t i = 0; (one = json_array_get(conversations, i)); i++) {
        AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
        struct err none = ERR_INIT;

        if (json_is_string(one) &&
            sandbox_find(root, p->tenant, json_string_value(one), &sb, &none) == 0)
            memcpy(p->listed[p->n_listed++], sb.name, sizeof p->listed[0]);
    }
    return 0;
}

json_t *job_list(struct job *job, struct err *e)
{
    const json_t *request = job->request;
    struct page p = {.job = job, .tenant = json_get_string(request, "tenant")};

    if (!p.tenant)
        return job_fail(e, ERR_INVALID, "list: the tenant is missing");
    if (read_max(request, &p.max, e) < 0 ||
        read_after(json_object_get(request, "after"), &p, e) < 0 ||
        read_conversations(json_object_get(request, "conversations"), &p, e) < 0)
        return NULL;
    p.files = json_array();
    if (fill(&p, e) < 0) {
        json_decref(p.files);
        json_decref(p.next);
        return NULL;
    }
    json_t *result = json_pack("{s:o}", "files", p.files);
    if (p.next)
        json_object_set_new(result, "next", p.next);
    return result;
}

/* ---- names ---- */

struct names {
    const char *prefix;
    size_t max;
    json_t *list;
};

static void add_name(struct names *n, const char *name)
{
    if (json_array_size(n->list) < n->max && strncmp(name, n->prefix, strlen(n->prefix)) == 0)
        json_array_append_new(n->list, json_string(name));
}

static int file_names(const struct job_world *world, const char *tenant, const char *conversation,
                      struct names *out, struct err *e)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_SNAPSHOT struct snapshot files = {0};

    if (sandbox_find(world->root, tenant, conversation, &sb, e) < 0 ||
        (snapshot_is_hidden(out->prefix) ? snapshot_take_all : snapshot_take)(&sb, &files, e) < 0)
        return -1;
    for (size_t i = 0; i < files.n; i++)
        if (can_be_opened(files.items[i].name))
            add_name(out, files.items[i].name);
    return 0;
}

json_t *job_names(struct job *job, struct err *e)
{
    const json_t *request = job->request;
    const char *tenant = json_get_string(request, "tenant");
    const char *conversation = json_get_string(request, "conversationId");
    struct names names = {.prefix = json_get_string(request, "prefix")};

    if (!tenant || !conversation || !names.prefix)
        return job_fail(e, ERR_INVALID, "names: tenant, conversationId or prefix is missing");
    if (read_max(request, &names.max, e) < 0)
        return NULL;
    names.list = json_array();
    if (file_names(job->world, tenant, conversation, &names, e) < 0) {
        json_decref(names.list);
        return NULL;
    }
    return names.list;
}
