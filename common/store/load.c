#include "config.h"

#include "common/store/load.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/sandbox/files/owner.h"
#include "common/sandbox/files/plant.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/unsaved.h"
#include "common/store/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES       3           /* while another node saves it */
#define EXPIRED_S   (2 * 86400) /* on top of the TTL: the store may lag with the time of last use */
#define DIR_OF_ROOT (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct loading {
    const struct saver *s;
    const char *name;
    struct manifest there; /* in the store */
    bool here;             /* the conversation has a directory here */
    struct staged folder;
    struct plant tree;
    struct load_sum *sum;
};

/* ---- what the store has ---- */

static int read_manifest(struct loading *l, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(MANIFEST_MAX);
    char key[STORE_KEY_MAX], name[SANDBOX_NAME_LEN + 1];

    manifest_clear(&l->there);
    store_key(l->name, STORE_MANIFEST, key);
    if (store_get_text(l->s->store, key, &text, e) < 0 ||
        manifest_parse(text.data, text.len, &l->there, e) < 0)
        return -1;
    if (sandbox_name(l->s->root, l->there.tenant, l->there.conversation, name, e) < 0)
        return -1;
    if (strcmp(name, l->name) != 0)
        return err_set(e, ERR_INVALID,
                       "the record in the store is of another conversation, or was written with "
                       "another FILE_SECRET");
    return 0;
}

/* Is what the store has newer than what is here? */
static bool is_newer(const struct loading *l)
{
    AUTO_MANIFEST struct manifest known = {0};

    switch (save_record_read(l->s->root, l->name, &known)) {
    case RECORD_STALE:
        return true;
    case RECORD_KEPT:
        return l->there.generation > known.generation && strcmp(l->there.node, l->s->node) != 0;
    case RECORD_NONE:
        break;
    }
    return false;
}

static bool is_expired(const struct loading *l)
{
    const int64_t ttl_s = l->s->root->bounds.ttl_s;

    return ttl_s > 0 && l->there.last_used + ttl_s + EXPIRED_S < clock_unix_s();
}

static int check_bounds(const struct loading *l, struct err *e)
{
    const struct sandbox_bounds *b = &l->s->root->bounds;
    const struct usage takes = manifest_usage(&l->there);

    if (b->bytes > 0 && takes.bytes > b->bytes)
        return err_set(e, ERR_LIMIT,
                       "the conversation's files in the store have %" PRIu64
                       " bytes, more than SANDBOX_QUOTA of this server",
                       takes.bytes);
    if (b->files > 0 && takes.files > b->files)
        return err_set(e, ERR_LIMIT,
                       "the conversation has %" PRIu64
                       " files and folders in the store, more than SANDBOX_FILES of this server",
                       takes.files);
    return quota_check_disk(l->s->root->fd, b, takes.bytes, e);
}

/* ---- making the tree ---- */

static int fill_file(struct loading *l, const struct manifest_entry *entry, int fd, struct err *e)
{
    AUTO_PAYLOAD struct payload c = {
        .fd = fd, .extents = entry->extents, .n_extents = entry->n_extents, .size = entry->bytes};
    char key[STORE_KEY_MAX];

    if (ftruncate(fd, (off_t)entry->size) < 0)
        return err_errno(e, "a file cannot be written");
    if (entry->bytes == 0)
        return 0;
    memcpy(c.sum, entry->sum, sizeof c.sum);
    store_key(l->name, entry->sum, key);
    return store_get(l->s->store, key, &c, e) < 0 ? -1 : payload_check(&c, e);
}

static int make_file(struct loading *l, struct manifest_entry *entry,
                     const struct plant_attributes *is, struct err *e)
{
    AUTO_FD int fd = plant_file(&l->tree, entry->name, e);
    struct stat st;

    if (fd < 0 || fill_file(l, entry, fd, e) < 0 || plant_finish_file(&l->tree, fd, is, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_errno(e, "a file cannot be examined");
    entry->ino = st.st_ino;
    entry->ctime_ns = clock_ns_of(st.st_ctim);
    l->sum->files++;
    l->sum->bytes += entry->bytes;
    return 0;
}

static int make_entry(struct loading *l, struct manifest_entry *entry, struct err *e)
{
    const struct plant_attributes is = {entry->mode, entry->mtime};

    switch (entry->type) {
    case MANIFEST_FOLDER:
        return plant_folder(&l->tree, entry->name, &is, e);
    case MANIFEST_LINK:
        return plant_link(&l->tree, entry->name, entry->target, e);
    default:
        return make_file(l, entry, &is, e);
    }
}

static int make_tree(struct loading *l, struct err *e)
{
    l->tree = (struct plant){.dir_fd = -1, .owner = owner_new(l->s->root), .from = "the store"};
    if (staging_create_folder(l->s->root, l->tree.owner, &l->folder) < 0)
        return err_errno(e, "a conversation's directory cannot be made");
    l->tree.dir_fd = openat(l->folder.dir_fd, l->folder.name, DIR_OF_ROOT);
    if (l->tree.dir_fd < 0)
        return err_errno(e, "a conversation's directory cannot be opened");
    for (size_t i = 0; i < l->there.n; i++)
        if (make_entry(l, &l->there.entries[i], e) < 0)
            return -1;
    return plant_finish(&l->tree, e);
}

static void drop_tree(struct loading *l)
{
    char trash[TRASH_NAME_LEN + 1];
    struct err ignored = ERR_INIT;

    plant_clear(&l->tree);
    if (!l->folder.name[0])
        return;
    (void)trash_take(l->s->root, l->folder.dir_fd, l->folder.name, trash, &ignored);
    l->folder.name[0] = '\0';
    trash_empty(l->s->root);
}

/* ---- putting it in its place ---- */

/* The record comes first: a directory without one would count as newer than the store. */
static int put_in_place(struct loading *l, struct err *e)
{
    const struct sandbox_root *root = l->s->root;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    if (save_record_write(root, l->name, &l->there, false, e) < 0)
        return -1;
    if (staged_move(&l->folder, root->fd, l->name, STAGED_MOVE_FREE) < 0)
        return err_errno(e, "the conversation's directory cannot be put in its place");
    l->sum->outcome = LOAD_PLACED;
    (void)state_take_expired(root, l->name);
    if (sandbox_find_named(root, l->name, &sb, e) < 0 ||
        state_note_use(&sb, l->there.tenant, l->there.conversation, e) < 0)
        return -1;
    unsaved_note(root, l->name); /* the store is told that it is here now */
    return 0;
}

static int leave_staged(struct loading *l, struct err *e)
{
    if (save_record_write(l->s->root, l->name, &l->there, true, e) < 0)
        return -1;
    memcpy(l->sum->staged, l->folder.name, sizeof l->sum->staged);
    l->folder.name[0] = '\0';
    l->sum->outcome = LOAD_STAGED;
    return 0;
}

/* With its record the saver removes it, as one that was deleted here. */
static int let_expire(struct loading *l, struct err *e)
{
    l->sum->outcome = LOAD_EXPIRED;
    if (save_record_write(l->s->root, l->name, &l->there, false, e) < 0)
        return -1;
    state_mark_expired(l->s->root, l->name);
    unsaved_note(l->s->root, l->name);
    return 0;
}

static int load_once(struct loading *l, struct err *e)
{
    if (read_manifest(l, e) < 0) {
        if (e->kind != ERR_NOT_FOUND)
            return -1;
        l->sum->outcome = l->here ? LOAD_SAME : LOAD_NONE;
        return 0;
    }
    if (l->here && !is_newer(l)) {
        l->sum->outcome = LOAD_SAME;
        return 0;
    }
    if (!l->here && is_expired(l))
        return let_expire(l, e);
    if (check_bounds(l, e) < 0 || make_tree(l, e) < 0)
        return -1;
    return l->here ? leave_staged(l, e) : put_in_place(l, e);
}

int load_conversation(const struct saver *s, const char *name, struct load_sum *out, struct err *e)
{
    struct loading l = {
        .s = s, .name = name, .folder = STAGED_INIT, .tree = {.dir_fd = -1}, .sum = out};
    int rc = -1;

    l.here = faccessat(s->root->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    for (int i = 0; i < TRIES && rc < 0; i++) {
        *out = (struct load_sum){.outcome = LOAD_NONE};
        rc = load_once(&l, e);
        drop_tree(&l);
        staged_clear(&l.folder);
        /* A content that is not there: another node has saved a newer state meanwhile. */
        if (rc < 0 && e->kind != ERR_NOT_FOUND)
            break;
    }
    manifest_clear(&l.there);
    if (rc < 0 && e->kind == ERR_NOT_FOUND)
        return err_set(e, ERR_PROTOCOL, "a file of the conversation is missing in the store");
    return rc;
}
