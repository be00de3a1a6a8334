#include "config.h"

#include "common/sandbox/files/files.h"

#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Names taken from a folder at a time, at least: each time reads the folder anew. */
#define CHUNK_MIN 256

/* The names of a folder that come next: the smallest of those behind a given one. */
struct chunk {
    char **names; /* room for 2 * max; sorted and at most max when it is done */
    size_t n, max;
    bool more; /* there are others behind them */
};

struct walk {
    const struct files_query *q;
    struct files_page *page;
    size_t steps;
    bool moved;                    /* something was dealt with: at names it */
    char at[FILES_NAME_MAX + 1];   /* below the folder */
    char path[FILES_NAME_MAX + 1]; /* of the folder being read, with its slash; "" at the top */
    size_t path_room;              /* bytes that path and a name in it may have */
    int depth_max;                 /* at this depth no folder is gone into */
    struct err *e;
};

enum verdict { FAILED = -1, GO_ON, PAGE_ENDS };

static enum verdict list_folder(struct walk *w, int fd, const char *behind, int depth);

/* ---- a folder's next names ---- */

static void chunk_clear(struct chunk *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->names[i]);
    free(c->names);
    *c = (struct chunk){0};
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts, and lets go of those beyond max. */
static void chunk_trim(struct chunk *c)
{
    if (c->n > 0)
        qsort(c->names, c->n, sizeof(*c->names), compare_names);
    while (c->n > c->max) {
        free(c->names[--c->n]);
        c->more = true;
    }
}

/* Is it before the largest that is kept? Once names were let go of, that stands at max - 1. */
static bool chunk_wants(const struct chunk *c, const char *name)
{
    return !c->more || strcmp(name, c->names[c->max - 1]) < 0;
}

static void chunk_add(struct chunk *c, const char *name)
{
    c->names[c->n++] = mem_strdup(name);
    if (c->n == 2 * c->max)
        chunk_trim(c);
}

static bool fits(const struct walk *w, const char *name)
{
    return strlen(w->path) + strlen(name) <= w->path_room;
}

/* The name below the folder that is listed; it fits. */
static void name_below(const struct walk *w, const char *name, char out[FILES_NAME_MAX + 1])
{
    size_t path_len = strlen(w->path), len = strlen(name);

    memcpy(out, w->path, path_len);
    memcpy(out + path_len, name, len + 1);
}

static bool matches(const struct walk *w, const char *name)
{
    char whole[FILES_NAME_MAX + 1];

    if (!w->q->glob)
        return true;
    name_below(w, name, whole);
    return glob_matches(w->q->glob, whole);
}

static bool is_left_out(const struct walk *w, const char *name)
{
    return !w->q->hidden && !w->q->folder[0] && !w->path[0] && snapshot_is_hidden(name);
}

/* Could it be a row, or hold some? */
static bool is_of_interest(struct walk *w, const struct dirent *entry)
{
    if (is_left_out(w, entry->d_name))
        return false;
    if (!fits(w, entry->d_name)) {
        w->page->incomplete = true;
        return false;
    }
    return (w->q->recursive && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)) ||
           matches(w, entry->d_name);
}

static enum verdict out_of_steps(struct walk *w)
{
    if (w->moved)
        return PAGE_ENDS;
    err_set(w->e, ERR_LIMIT, "a folder has more than %d entries: too many to list",
            FILES_LIST_STEPS);
    return FAILED;
}

/* Reads the folder from its beginning. */
static enum verdict chunk_read(struct walk *w, int fd, const char *behind, struct chunk *out)
{
    AUTO_DIR DIR *dir = beneath_open_dir(fd, ".");
    const struct dirent *entry;

    if (!dir) {
        err_errno(w->e, "a folder cannot be read");
        return FAILED;
    }
    out->names = mem_array(2 * out->max, sizeof(*out->names));
    while ((entry = readdir(dir))) {
        if (beneath_is_dot(entry->d_name))
            continue;
        if (++w->steps > FILES_LIST_STEPS)
            return out_of_steps(w);
        if (strcmp(entry->d_name, behind) > 0 && chunk_wants(out, entry->d_name) &&
            is_of_interest(w, entry))
            chunk_add(out, entry->d_name);
    }
    chunk_trim(out);
    return GO_ON;
}

/* ---- its entries ---- */

/* What cannot be opened as a folder (any more) holds nothing to list. */
static enum verdict descend(struct walk *w, int fd, const char *name, const char *behind, int depth)
{
    size_t len = strlen(w->path);

    if (depth >= w->depth_max || len + strlen(name) + 2 > w->path_room) {
        w->page->incomplete = true;
        return GO_ON;
    }
    AUTO_FD int below = openat(fd, name,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (below < 0 && beneath_system_failed(errno)) {
        err_errno(w->e, "a folder cannot be opened");
        return FAILED;
    }
    if (below < 0) {
        w->page->incomplete |= errno == EACCES;
        return GO_ON;
    }
    snprintf(w->path + len, sizeof(w->path) - len, "%s/", name);
    enum verdict v = list_folder(w, below, behind, depth + 1);
    w->path[len] = '\0';
    return v;
}

static void add_row(struct walk *w, const char *name, const struct stat *st)
{
    const char *folder = w->q->folder;

    w->page->rows[w->page->n++] = (struct files_row){
        .name = mem_printf("%s%s%s%s", folder, folder[0] ? "/" : "", w->path, name),
        .st = *st,
    };
}

static enum verdict list_entry(struct walk *w, int fd, const char *name, int depth)
{
    struct stat st;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        (!w->q->folder[0] && !w->path[0] && snapshot_is_program(name, &st)))
        return GO_ON;
    if (matches(w, name)) {
        if (w->page->n == w->q->max)
            return PAGE_ENDS;
        add_row(w, name, &st);
    }
    name_below(w, name, w->at);
    w->moved = true;
    return w->q->recursive && S_ISDIR(st.st_mode) ? descend(w, fd, name, "", depth) : GO_ON;
}

/* ---- a folder ---- */

/* The entries behind the name given. */
static enum verdict list_behind(struct walk *w, int fd, const char *name, int depth)
{
    char last[FILES_COMPONENT_MAX + 1];
    enum verdict v = GO_ON;
    bool more = true;

    snprintf(last, sizeof(last), "%s", name);
    while (v == GO_ON && more) {
        size_t wanted = w->q->max - w->page->n + 1;
        AUTO(chunk_clear) struct chunk c = {.max = wanted > CHUNK_MIN ? wanted : CHUNK_MIN};

        v = chunk_read(w, fd, last, &c);
        for (size_t i = 0; i < c.n && v == GO_ON; i++)
            /* A name is met twice when it is removed and made anew meanwhile. */
            if (i == 0 || strcmp(c.names[i], c.names[i - 1]) != 0)
                v = list_entry(w, fd, c.names[i], depth);
        more = c.more;
        if (more)
            snprintf(last, sizeof(last), "%s", c.names[c.n - 1]);
    }
    return v;
}

/* behind: the last name below this folder that was dealt with; "": none. depth counts folders. */
static enum verdict list_folder(struct walk *w, int fd, const char *behind, int depth)
{
    char first[FILES_COMPONENT_MAX + 1] = "";
    enum verdict v = GO_ON;

    if (behind[0]) {
        const char *rest = beneath_component(behind, first);
        if (w->q->recursive)
            v = descend(w, fd, first, rest ? rest : "", depth);
    }
    return v == GO_ON ? list_behind(w, fd, first, depth) : v;
}

static bool can_be_a_place(const char *after)
{
    char part[FILES_COMPONENT_MAX + 1];

    if (strlen(after) > FILES_NAME_MAX)
        return false;
    while (after) {
        after = beneath_component(after, part);
        if (!part[0])
            return false;
    }
    return true;
}

static int open_folder(const struct sandbox *sb, const char *folder, struct err *e)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
    int fd = folder[0] ? beneath_open(sb->fd, folder, flags) : openat(sb->fd, ".", flags);

    if (fd >= 0)
        return fd;
    if (beneath_system_failed(errno))
        return err_errno(e, "the folder cannot be opened");
    if (errno == EACCES)
        return err_set(e, ERR_DENIED, "the folder cannot be read: its mode forbids it");
    return err_set(e, ERR_NOT_FOUND, "there is no such folder");
}

/* What names below the folder may have, so that the whole can be asked for. */
static void set_bounds(struct walk *w, const char *folder)
{
    size_t len = folder[0] ? strlen(folder) + 1 : 0;
    int parts = folder[0] ? 1 : 0;

    for (const char *p = folder; *p; p++)
        parts += *p == '/';
    w->depth_max = FILES_DEPTH_MAX - 1 - parts;
    w->path_room = parts < FILES_DEPTH_MAX && len < FILES_NAME_MAX ? FILES_NAME_MAX - len : 0;
}

int files_list(const struct sandbox *sb, const struct files_query *q, struct files_page *out,
               struct err *e)
{
    AUTO_FILES_PAGE struct files_page page = {0};
    struct walk w = {.q = q, .page = &page, .e = e};

    set_bounds(&w, q->folder);
    if (q->after[0] && !can_be_a_place(q->after))
        return err_set(e, ERR_INVALID, "cursor is not where a page ended");
    AUTO_FD int fd = open_folder(sb, q->folder, e);
    if (fd < 0)
        return -1;
    page.rows = mem_array(q->max, sizeof(*page.rows));
    enum verdict v = list_folder(&w, fd, q->after, 0);
    if (v == FAILED)
        return -1;
    if (v == PAGE_ENDS)
        page.next = mem_strdup(w.moved ? w.at : q->after);
    *out = page;
    page = (struct files_page){0};
    return 0;
}

void files_page_clear(struct files_page *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->rows[i].name);
    free(p->rows);
    free(p->next);
    *p = (struct files_page){0};
}
