#include "config.h"

#include "fcgi/tokens/token_table.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/remedy.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_TRIES 1000 /* while the tokens change */

/* Shared. version is odd while the rest changes. */
struct shared {
    _Atomic unsigned version;
    size_t n;
    struct token items[TOKENS_MAX + 1];
};

/* What tells a changed file. */
struct file_mark {
    dev_t dev;
    ino_t ino;
    off_t size;
    int64_t changed_ns;
};

struct token_table {
    struct shared *shared;
    int fd; /* of its memory, until it is confined */
    char *path;
    struct token own; /* MCP_API_TOKEN; tenant "": none */
    struct file_mark mark;
};

/* ---- the file ---- */

void token_list_clear(struct token_list *list)
{
    free(list->items);
    *list = (struct token_list){0};
}

int token_list_add(struct token_list *list, const struct token *token, struct err *e)
{
    if (list->n == TOKENS_MAX)
        return err_set(e, ERR_LIMIT, "there are more than %d tokens", TOKENS_MAX);
    if ((list->n & (list->n - 1)) == 0) /* full: a power of two, or empty */
        list->items = mem_resize(list->items, list->n ? 2 * list->n : 1, sizeof *list->items);
    list->items[list->n++] = *token;
    return 0;
}

int token_list_read(const char *path, struct token_list *out, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(TOKENS_FILE_MAX);
    struct token token;
    unsigned number = 0;
    int rc = 0;

    *out = (struct token_list){0};
    if (fdio_read_file(path, &text, e) < 0)
        return e && e->kind == ERR_NOT_FOUND
                   ? err_set(e, ERR_NOT_FOUND, "%s does not exist; %s makes it", path,
                             remedy(REMEDY_TOKEN))
                   : -1;
    char *rest = text.data;
    for (char *line; rc >= 0 && rest && (line = strsep(&rest, "\n"));) {
        number++;
        rc = token_row_parse(line, &token, e);
        if (rc > 0)
            rc = token_list_add(out, &token, e);
    }
    if (text.len > 0)
        explicit_bzero(text.data, text.len);
    if (rc >= 0)
        return 0;
    token_list_clear(out);
    return err_wrap(e, "%s, line %u", path, number);
}

static struct file_mark mark_of(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return (struct file_mark){0};
    return (struct file_mark){st.st_dev, st.st_ino, st.st_size, clock_ns_of(st.st_mtim)};
}

static bool same_mark(const struct file_mark *a, const struct file_mark *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->changed_ns == b->changed_ns;
}

/* ---- the table ---- */

/* The mark is taken first: a file that changes meanwhile is read once more. */
static int table_load(struct token_table *t, struct err *e)
{
    struct token_list list = {0};
    struct shared *s = t->shared;

    t->mark = mark_of(t->path);
    if (*t->path && token_list_read(t->path, &list, e) < 0)
        return -1;
    atomic_fetch_add(&s->version, 1);
    s->n = list.n;
    if (list.n > 0)
        memcpy(s->items, list.items, list.n * sizeof *list.items);
    if (*t->own.tenant)
        s->items[s->n++] = t->own;
    atomic_fetch_add(&s->version, 1);
    token_list_clear(&list);
    return 0;
}

/* Sealed: nobody maps it for writing again. */
static int share_memory(struct token_table *t, struct err *e)
{
    t->fd = memfd_create("tokens", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (t->fd < 0 || ftruncate(t->fd, sizeof *t->shared) < 0)
        return err_errno(e, "memory for tokens");
    void *memory = mmap(NULL, sizeof *t->shared, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (memory == MAP_FAILED)
        return err_errno(e, "memory for tokens");
    t->shared = memory;
    fcntl(t->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
    return 0;
}

struct token_table *token_table_new(const char *path, const char *api_token, struct err *e)
{
    struct token_table *t = mem_alloc(sizeof *t);

    t->path = mem_strdup(path);
    if (*api_token && token_read(api_token, &t->own)) {
        snprintf(t->own.tenant, sizeof t->own.tenant, "default");
        t->own.scopes = SCOPE_ALL;
    }
    if (share_memory(t, e) == 0 && table_load(t, e) == 0)
        return t;
    token_table_free(t);
    return NULL;
}

void token_table_free(struct token_table *t)
{
    if (!t)
        return;
    if (t->shared)
        munmap(t->shared, sizeof *t->shared);
    auto_close_fd(&t->fd);
    free(t->path);
    explicit_bzero(t, sizeof *t);
    free(t);
}

void token_table_look(struct token_table *t)
{
    const struct file_mark now = mark_of(t->path);
    struct err e = ERR_INIT;

    if (!*t->path || same_mark(&now, &t->mark))
        return;
    if (table_load(t, &e) < 0)
        log_error("SANDCGI_TOKENS_FILE: %s; the tokens stay as they were", e.text);
    else
        log_info("SANDCGI_TOKENS_FILE has changed: %zu tokens", t->shared->n);
}

int token_table_confine(struct token_table *t, struct err *e)
{
    void *memory = mmap(NULL, sizeof *t->shared, PROT_READ, MAP_SHARED, t->fd, 0);

    if (memory == MAP_FAILED)
        return err_errno(e, "memory for tokens");
    munmap(t->shared, sizeof *t->shared);
    auto_close_fd(&t->fd);
    t->shared = memory;
    explicit_bzero(&t->own, sizeof t->own);
    return 0;
}

/* ---- looking a token up ---- */

static bool is_same(const struct token *known, const struct token *sent)
{
    return known->own == sent->own && (known->own || strcmp(known->id, sent->id) == 0) &&
           crypto_equal(known->digest, sizeof known->digest, sent->digest, sizeof sent->digest);
}

static bool scan(const struct shared *s, const struct token *sent, struct token *out)
{
    size_t n = s->n <= TOKENS_MAX + 1 ? s->n : 0;
    bool found = false;

    for (size_t i = 0; i < n && !found; i++)
        if ((found = is_same(&s->items[i], sent)))
            *out = s->items[i];
    return found;
}

enum token_verdict token_table_find(const struct token_table *t, const char *text,
                                    struct token *out)
{
    struct token sent;

    if (!t || !token_read(text, &sent))
        return TOKEN_UNKNOWN;
    for (int i = 0; i < READ_TRIES; i++) {
        unsigned version = atomic_load(&t->shared->version);
        bool found = version % 2 == 0 && scan(t->shared, &sent, out);

        atomic_thread_fence(memory_order_acquire);
        if (version % 2 == 0 && atomic_load(&t->shared->version) == version)
            return !found                                              ? TOKEN_UNKNOWN
                   : out->expires_s && out->expires_s < clock_unix_s() ? TOKEN_EXPIRED
                                                                       : TOKEN_GOOD;
        sched_yield();
    }
    return TOKEN_UNKNOWN;
}
