#include "config.h"

#include "common/store/save.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/files/owner.h"
#include "common/sandbox/state/state.h"
#include "common/store/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define READ_TRIES 3     /* of a file that changes meanwhile */
#define USE_OLD_S  86400 /* so much the store may lag with the time of the last use */

struct saving {
    const struct saver *s;
    const char *name;
    struct sandbox sb; /* without a lock: its deletion does not wait for us */
    struct manifest old, now;
    enum record_state record;
    const struct manifest_entry **old_index;
    const char **old_sums; /* contents that the store has; none of them when it was emptied */
    size_t n_old_sums;
    bool differs; /* from the record */
    struct save_sum *sum;
};

/* ---- what is there ---- */

static int read_target(const struct saving *w, struct manifest_entry *entry)
{
    char target[MANIFEST_TARGET_MAX + 1];
    const char *slash = strrchr(entry->name, '/');
    AUTO_FREE char *above = mem_strndup(entry->name, slash ? (size_t)(slash - entry->name) : 0);
    AUTO_FD int dir = slash ? beneath_open(w->sb.fd, above, O_PATH | O_DIRECTORY) : -1;

    if (slash && dir < 0)
        return -1;
    ssize_t n = readlinkat(slash ? dir : w->sb.fd, slash ? slash + 1 : entry->name, target,
                           sizeof target);
    if (n <= 0 || n > MANIFEST_TARGET_MAX)
        return -1;
    entry->target = mem_strndup(target, (size_t)n);
    return 0;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void set_attributes(struct manifest_entry *entry, const struct stat *st)
{
    entry->mode = st->st_mode & 0777;
    entry->mtime = save_time(st->st_mtim);
    entry->size = (uint64_t)st->st_size;
    entry->ino = st->st_ino;
    entry->ctime_ns = clock_ns_of(st->st_ctim);
}

/* The content of before: it is known to be the same, or the one of now cannot be had. */
static void take_content(struct manifest_entry *entry, const struct manifest_entry *old)
{
    entry->size = old->size;
    entry->bytes = old->bytes;
    memcpy(entry->sum, old->sum, sizeof entry->sum);
    free(entry->extents);
    entry->n_extents = old->n_extents;
    entry->extents = mem_array(old->n_extents + 1, sizeof *entry->extents);
    if (old->n_extents > 0)
        memcpy(entry->extents, old->extents, old->n_extents * sizeof *entry->extents);
}

static const struct manifest_entry *old_entry(const struct saving *w, const char *name)
{
    return manifest_find(w->old_index, w->old.n, name);
}

static void add_file(struct saving *w, struct manifest_entry *entry, const struct stat *st)
{
    const struct manifest_entry *old = old_entry(w, entry->name);

    set_attributes(entry, st);
    if (old && old->type == MANIFEST_FILE && old->ino == entry->ino &&
        old->ctime_ns == entry->ctime_ns && old->size == entry->size)
        take_content(entry, old);
    w->differs |= !old || !entry->sum[0];
}

static void add_folder(struct saving *w, struct manifest_entry *entry, const struct stat *st)
{
    const struct manifest_entry *old = old_entry(w, entry->name);

    entry->mode = st->st_mode & 0777;
    entry->mtime = save_time(st->st_mtim);
    w->differs |= !old || old->type != MANIFEST_FOLDER || old->mode != entry->mode ||
                  !same_time(old->mtime, entry->mtime);
}

/* false: it is left out. */
static bool read_row(struct saving *w, const struct files_row *row, struct manifest_entry *entry)
{
    entry->name = mem_strdup(row->name);
    if (S_ISDIR(row->st.st_mode)) {
        entry->type = MANIFEST_FOLDER;
        add_folder(w, entry, &row->st);
        return true;
    }
    if (S_ISREG(row->st.st_mode)) {
        entry->type = MANIFEST_FILE;
        add_file(w, entry, &row->st);
        return true;
    }
    entry->type = MANIFEST_LINK;
    if (!S_ISLNK(row->st.st_mode) || read_target(w, entry) < 0)
        return false;
    const struct manifest_entry *old = old_entry(w, entry->name);
    w->differs |= !old || old->type != MANIFEST_LINK || strcmp(old->target, entry->target) != 0;
    return true;
}

/* An entry stands in the manifest when all of it is known. */
static void take_row(struct saving *w, const struct files_row *row)
{
    const size_t max = w->s->entries_max ? w->s->entries_max : MANIFEST_ENTRIES_MAX;
    struct manifest_entry entry = {.name = NULL};

    if (w->now.n < max && read_row(w, row, &entry)) {
        *manifest_add(&w->now) = entry;
        return;
    }
    manifest_entry_clear(&entry);
    w->sum->left_out++;
}

static int list_page(struct saving *w, const char *after, char **out_next, struct err *e)
{
    const struct files_query q = {
        .folder = "", .recursive = true, .hidden = true, .after = after, .max = FILES_LIST_MAX};
    AUTO_FILES_PAGE struct files_page page = {0};

    if (files_list(&w->sb, &q, &page, e) < 0)
        return -1;
    for (size_t i = 0; i < page.n; i++)
        take_row(w, &page.rows[i]);
    w->sum->left_out += page.incomplete;
    *out_next = TAKE_PTR(page.next);
    return 0;
}

static int list_all(struct saving *w, struct err *e)
{
    AUTO_FREE char *after = mem_strdup("");
    int rc = 0;

    while (rc == 0 && after) {
        AUTO_FREE char *next = NULL;
        rc = list_page(w, after, &next, e);
        free(after);
        after = TAKE_PTR(next);
    }
    w->differs |= w->now.n != w->old.n;
    return rc;
}

/* ---- sending ---- */

static bool store_has(const struct saving *w, const char *sum)
{
    return manifest_has_sum(w->old_sums, w->n_old_sums, sum);
}

/* 1: it has changed meanwhile. */
static int send_open_file(struct saving *w, struct manifest_entry *entry, int fd, struct err *e)
{
    AUTO_PAYLOAD struct payload c = {.fd = fd};
    char key[STORE_KEY_MAX];

    free(entry->extents);
    entry->extents = payload_extents(fd, entry->size, &entry->n_extents, &entry->bytes, e);
    if (!entry->extents)
        return -1;
    if (entry->bytes > SAVE_FILE_MAX)
        return err_set(e, ERR_LIMIT, "it is over %llu bytes", SAVE_FILE_MAX);
    c.extents = entry->extents;
    c.n_extents = entry->n_extents;
    c.size = entry->bytes;
    if (payload_sum(&c, e) < 0)
        return c.changed ? 1 : -1;
    memcpy(entry->sum, c.sum, sizeof entry->sum);
    if (entry->bytes == 0 || store_has(w, c.sum)) /* a file without data is no object */
        return 0;
    store_key(w->name, c.sum, key);
    if (store_put(w->s->store, key, &c, e) < 0)
        return c.changed ? 1 : -1;
    w->sum->files++;
    w->sum->bytes += entry->bytes;
    return 0;
}

/* 1: it cannot be had as one. */
static int send_file(struct saving *w, struct manifest_entry *entry, struct err *e)
{
    struct err why = ERR_INIT;
    struct stat st;
    int rc = 1;

    for (int i = 0; i < READ_TRIES && rc == 1; i++) {
        AUTO_FD int fd = files_open(&w->sb, entry->name, &st, &why);
        if (fd < 0)
            return 1;
        set_attributes(entry, &st);
        rc = send_open_file(w, entry, fd, &why);
    }
    if (rc < 0 && why.kind != ERR_UNAVAILABLE)
        rc = 1;
    if (rc < 0)
        *e = why;
    return rc;
}

/* What could not be sent keeps its state of before, or is left out. */
static bool keep_old(struct saving *w, struct manifest_entry *entry)
{
    const struct manifest_entry *old = old_entry(w, entry->name);
    struct stat st;

    if (!old || old->type != MANIFEST_FILE || !store_has(w, old->sum) ||
        files_look(&w->sb, entry->name, &st, NULL) < 0) {
        w->sum->left_out++;
        return false;
    }
    take_content(entry, old);
    entry->ino = 0; /* it is read again the next time */
    w->sum->changed++;
    return true;
}

static int send_all(struct saving *w, struct err *e)
{
    size_t kept = 0;
    int rc = 0;

    for (size_t i = 0; i < w->now.n; i++) {
        struct manifest_entry *entry = &w->now.entries[i];
        bool good = rc >= 0;

        if (good && entry->type == MANIFEST_FILE && !(entry->sum[0] && store_has(w, entry->sum))) {
            rc = send_file(w, entry, e);
            good = rc == 0 || (rc == 1 && keep_old(w, entry));
        }
        if (good)
            w->now.entries[kept++] = *entry;
        else
            manifest_entry_clear(entry);
    }
    w->now.n = kept;
    return rc < 0 ? -1 : 0;
}

/* ---- the store's side ---- */

/* The head of the manifest in the store; generation 0: there is none. */
static int remote_head(const struct saving *w, struct manifest *out, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(MANIFEST_HEAD_MAX);
    char key[STORE_KEY_MAX];

    *out = (struct manifest){0};
    store_key(w->name, STORE_MANIFEST, key);
    if (store_get_first(w->s->store, key, &text, e) < 0)
        return e->kind == ERR_NOT_FOUND ? 0 : -1;
    return manifest_parse_head(text.data, text.len, out, e);
}

/* Has another node written what we do not know? */
static bool is_foreign(const struct saving *w, const struct manifest *remote)
{
    return remote->generation > 0 && w->record != RECORD_NONE &&
           (w->record == RECORD_STALE || remote->generation > w->old.generation ||
            (remote->generation == w->old.generation && strcmp(remote->node, w->old.node) != 0)) &&
           (w->record == RECORD_STALE || strcmp(remote->node, w->s->node) != 0);
}

static void remove_object(const struct saving *w, const char *object)
{
    struct err why = ERR_INIT;
    char key[STORE_KEY_MAX];

    store_key(w->name, object, key);
    if (store_remove(w->s->store, key, &why) < 0)
        log_info("what is no longer used stays in the store: %s", why.text);
}

/* Contents of the record that no file has any more. */
static void remove_unused(const struct saving *w)
{
    size_t n;
    AUTO_FREE const char **used = manifest_sums(&w->now, &n);

    for (size_t i = 0; i < w->n_old_sums; i++)
        if (!manifest_has_sum(used, n, w->old_sums[i]))
            remove_object(w, w->old_sums[i]);
}

static int put_manifest(struct saving *w, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(MANIFEST_MAX);
    char key[STORE_KEY_MAX];

    if (manifest_write(&w->now, false, &text) < 0)
        return err_set(e, ERR_LIMIT, "the record of a conversation is over %u bytes", MANIFEST_MAX);
    store_key(w->name, STORE_MANIFEST, key);
    return store_put_text(w->s->store, key, &text, e);
}

/* ---- the two ways ---- */

/* Leaves another node's state alone. Removes the manifest first: without it no reader begins. */
static int remove_conversation(struct saving *w, struct err *e)
{
    AUTO_MANIFEST struct manifest remote = {0};
    char key[STORE_KEY_MAX];

    w->sum->outcome = SAVE_REMOVED;
    if (remote_head(w, &remote, e) < 0)
        return -1;
    if (w->record == RECORD_KEPT && !is_foreign(w, &remote)) {
        store_key(w->name, STORE_MANIFEST, key);
        if (store_remove(w->s->store, key, e) < 0)
            return -1;
        for (size_t i = 0; i < w->n_old_sums; i++) {
            store_key(w->name, w->old_sums[i], key);
            if (store_remove(w->s->store, key, e) < 0)
                return -1;
        }
    }
    save_record_remove(w->s->root, w->name);
    return 0;
}

/* Is it up to date without a question? */
static bool is_saved(const struct saving *w)
{
    return w->record == RECORD_KEPT && !w->differs && strcmp(w->old.node, w->s->node) == 0 &&
           w->now.last_used - w->old.last_used < USE_OLD_S;
}

static bool is_still_there(const struct saving *w)
{
    struct stat ours, now;

    return fstat(w->sb.fd, &ours) == 0 &&
           fstatat(w->s->root->fd, w->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == now.st_ino && ours.st_dev == now.st_dev;
}

/* The whole state goes: what the store had is not there, or not what we know of. */
static void forget_old_sums(struct saving *w)
{
    free(w->old_sums);
    w->old_sums = mem_array(1, sizeof *w->old_sums);
    w->n_old_sums = 0;
}

static int send_state(struct saving *w, struct err *e)
{
    AUTO_MANIFEST struct manifest remote = {0};

    if (remote_head(w, &remote, e) < 0)
        return -1;
    if (is_foreign(w, &remote)) {
        w->sum->outcome = SAVE_STALE;
        return save_record_write(w->s->root, w->name, NULL, false, e);
    }
    if (remote.generation != w->old.generation)
        forget_old_sums(w);
    w->now.generation = 1 + (remote.generation > w->old.generation ? remote.generation
                                                                   : w->old.generation);
    if (send_all(w, e) < 0)
        return -1;
    if (!is_still_there(w)) {
        w->sum->outcome = SAVE_MOVED;
        return 0;
    }
    if (put_manifest(w, e) < 0 || save_record_write(w->s->root, w->name, &w->now, false, e) < 0)
        return -1;
    remove_unused(w);
    w->sum->outcome = SAVE_SENT;
    return 0;
}

static int save_files(struct saving *w, struct err *e)
{
    AUTO_STATE_RECORD struct state_record known = {0};
    struct err why = ERR_INIT;

    if (state_read(w->s->root, w->name, &known, &why) < 0) {
        w->sum->outcome = SAVE_UNKNOWN;
        return 0;
    }
    w->now.node = mem_strdup(w->s->node);
    w->now.tenant = TAKE_PTR(known.tenant);
    w->now.conversation = TAKE_PTR(known.conversation);
    w->now.last_used = known.last_used;
    if (list_all(w, e) < 0)
        return -1;
    if (is_saved(w)) {
        w->sum->outcome = SAVE_SAME;
        return 0;
    }
    return send_state(w, e);
}

static void saving_clear(struct saving *w)
{
    auto_close_fd(&w->sb.fd);
    manifest_clear(&w->old);
    manifest_clear(&w->now);
    free(w->old_index);
    free(w->old_sums);
}

int save_conversation(const struct saver *s, const char *name, struct save_sum *out, struct err *e)
{
    struct saving w __attribute__((cleanup(saving_clear))) = {
        .s = s, .name = name, .sb = {.root = s->root, .fd = -1}, .sum = out};

    *out = (struct save_sum){0};
    memcpy(w.sb.name, name, sizeof w.sb.name);
    w.record = save_record_read(s->root, name, &w.old);
    w.old_index = manifest_index(&w.old);
    w.old_sums = manifest_sums(&w.old, &w.n_old_sums);
    w.sb.fd = owner_open_dir(s->root->fd, name);
    if (w.sb.fd < 0 && errno == ENOENT)
        return remove_conversation(&w, e);
    if (w.sb.fd < 0)
        return err_errno(e, "the sandbox's directory cannot be opened");
    return save_files(&w, e);
}
