#include "config.h"

#include "common/sandbox/state/state.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/state/unsaved.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD_MAX   8192 /* bytes */
#define RECORD_DEPTH 4
#define DIR_FLAGS    (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

#define RECORD_NAME_LEN (SANDBOX_NAME_LEN + 6)
#define TENANT_PATH_LEN (sizeof(STATE_TENANTS_DIR) + 2 * CRYPTO_SHA256_LEN + 1)

static int make_dir(int root_fd, const char *name, struct err *e)
{
    if (mkdirat(root_fd, name, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "%s under SANDBOX_ROOT cannot be made", name);
    return 0;
}

static void record_name(const char *sandbox_dir, char out[RECORD_NAME_LEN])
{
    snprintf(out, RECORD_NAME_LEN, "%s.json", sandbox_dir);
}

/* Tenants' names are the operator's and may hold what no file name can: a digest stands for them.
 */
static int tenant_path(const char *tenant, char out[TENANT_PATH_LEN], struct err *e)
{
    uint8_t digest[CRYPTO_SHA256_LEN];
    char hex[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];

    if (crypto_sha256(tenant, strlen(tenant), digest, e) < 0)
        return -1;
    crypto_hex(digest, sizeof(digest), hex);
    snprintf(out, TENANT_PATH_LEN, STATE_TENANTS_DIR "/%s", hex);
    return 0;
}

/* ---- records ---- */

static json_t *load_record(int dir_fd, const char *sandbox_dir, struct err *e)
{
    char name[RECORD_NAME_LEN];
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);

    record_name(sandbox_dir, name);
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        err_set(e, ERR_NOT_FOUND, "the sandbox has no record");
        return NULL;
    }
    if (fdio_read_to_end(fd, &text, e) < 0)
        return NULL;
    return json_parse(buf_str(&text), text.len, RECORD_DEPTH, e);
}

static int decode(const json_t *record, struct state_record *out, struct err *e)
{
    const char *tenant = json_get_string(record, "tenant");
    const char *conversation = json_get_string(record, "conversationId");

    if (!tenant || !conversation)
        return err_set(e, ERR_NOT_FOUND, "the sandbox's record is damaged");
    *out = (struct state_record){
        .tenant = mem_strdup(tenant),
        .conversation = mem_strdup(conversation),
        .created = json_get_integer(record, "createdAt", 0),
        .last_used = json_get_integer(record, "lastUsedAt", 0),
    };
    return 0;
}

int state_read(const struct sandbox_root *root, const char *name, struct state_record *out,
               struct err *e)
{
    AUTO_FD int dir = openat(root->fd, STATE_DIR, DIR_FLAGS);
    json_auto_t *record = dir < 0 ? NULL : load_record(dir, name, e);

    if (dir < 0)
        return err_errno(e, "the sandboxes' records cannot be opened");
    if (!record)
        return -1;
    return decode(record, out, e);
}

void state_record_clear(struct state_record *r)
{
    free(r->tenant);
    free(r->conversation);
    *r = (struct state_record){0};
}

/* ---- writing them ---- */

int64_t state_fresh_s(const struct sandbox_root *root)
{
    int64_t part = root->bounds.ttl_s / 8;

    return root->bounds.ttl_s > 0 && part < STATE_FRESH_S ? part : STATE_FRESH_S;
}

static bool is_fresh(const struct sandbox_root *root, int dir_fd, const char *sandbox_dir)
{
    char name[RECORD_NAME_LEN];
    struct stat st;
    int64_t now = clock_unix_s();

    record_name(sandbox_dir, name);
    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtim.tv_sec <= now &&
           now - st.st_mtim.tv_sec < state_fresh_s(root);
}

/* Its time of making is the sandbox's place in the tenant's list: it is never written again. */
static int enlist(const struct sandbox *sb, const char *tenant, struct err *e)
{
    char path[TENANT_PATH_LEN];

    if (tenant_path(tenant, path, e) < 0 || make_dir(sb->root->fd, STATE_TENANTS_DIR, e) < 0 ||
        make_dir(sb->root->fd, path, e) < 0)
        return -1;
    AUTO_FD int dir = openat(sb->root->fd, path, DIR_FLAGS);
    if (dir < 0)
        return err_errno(e, "the tenant's list of sandboxes cannot be opened");
    AUTO_FD int fd = openat(dir, sb->name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "the sandbox cannot be put on the tenant's list");
    return 0;
}

static int64_t created_before(int dir_fd, const char *sandbox_dir, int64_t now)
{
    struct err e = ERR_INIT;
    json_auto_t *record = load_record(dir_fd, sandbox_dir, &e);

    return json_get_integer(record, "createdAt", now);
}

static int write_record(const struct sandbox *sb, int dir_fd, const json_t *record, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);
    AUTO_STAGED struct staged file = STAGED_INIT;
    char name[RECORD_NAME_LEN];

    if (json_write(record, &text) < 0)
        return err_set(e, ERR_LIMIT, "the sandbox's record is over %d bytes", RECORD_MAX);
    AUTO_FD int fd = staging_create_file(sb->root, &file);
    if (fd < 0)
        return err_errno(e, "the sandbox's record cannot be made");
    if (fdio_write_all(fd, text.data, text.len, e) < 0)
        return -1;
    record_name(sb->name, name);
    if (staged_move(&file, dir_fd, name, STAGED_MOVE_REPLACE) < 0)
        return err_errno(e, "the sandbox's record cannot be put in its place");
    return 0;
}

int state_note_use(const struct sandbox *sb, const char *tenant, const char *conversation,
                   struct err *e)
{
    AUTO_FD int dir = openat(sb->root->fd, STATE_DIR, DIR_FLAGS);
    int64_t now = clock_unix_s();

    if (dir < 0)
        return err_errno(e, "the sandboxes' records cannot be opened");
    if (is_fresh(sb->root, dir, sb->name))
        return 0;
    /* The list first: a record that is fresh must be on it. */
    if (enlist(sb, tenant, e) < 0)
        return -1;
    json_auto_t *record = json_pack(
        "{s:s, s:s, s:I, s:I}", "tenant", tenant, "conversationId", conversation, "createdAt",
        (json_int_t)created_before(dir, sb->name, now), "lastUsedAt", (json_int_t)now);
    if (write_record(sb, dir, record, e) < 0)
        return -1;
    unsaved_note(sb->root, sb->name); /* the store knows the time, too */
    return 0;
}

/* ---- the end of one ---- */

int64_t state_last_used(const struct sandbox_root *root, const char *name)
{
    char path[sizeof(STATE_DIR) + RECORD_NAME_LEN];
    struct stat sandbox_dir, record;

    snprintf(path, sizeof(path), STATE_DIR "/%s.json", name);
    if (fstatat(root->fd, name, &sandbox_dir, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (fstatat(root->fd, path, &record, AT_SYMLINK_NOFOLLOW) < 0)
        return sandbox_dir.st_ctim.tv_sec;
    return record.st_mtim.tv_sec;
}

void state_forget(const struct sandbox_root *root, const char *name)
{
    AUTO_STATE_RECORD struct state_record record = {0};
    char path[TENANT_PATH_LEN + 1 + RECORD_NAME_LEN];
    struct err e = ERR_INIT;

    if (state_read(root, name, &record, &e) == 0 && tenant_path(record.tenant, path, &e) == 0) {
        size_t len = strlen(path);

        snprintf(path + len, sizeof(path) - len, "/%s", name);
        unlinkat(root->fd, path, 0);
    }
    snprintf(path, sizeof(path), STATE_DIR "/%s.json", name);
    unlinkat(root->fd, path, 0);
    state_forget_size(root, name);
}

/* ---- a tenant's list ---- */

int state_sandbox_compare(const struct state_sandbox *a, const struct state_sandbox *b)
{
    if (a->created != b->created)
        return a->created > b->created ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare(const void *a, const void *b)
{
    return state_sandbox_compare(a, b);
}

static void read_list(DIR *dir, struct state_list *out)
{
    size_t cap = 0;
    struct stat st;

    for (const struct dirent *entry; out->n < STATE_SANDBOXES_MAX && (entry = readdir(dir));) {
        if (!state_name_ok(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (out->n == cap) {
            cap = cap ? 2 * cap : 64;
            out->items = mem_resize(out->items, cap, sizeof(*out->items));
        }
        struct state_sandbox *sandbox_dir = &out->items[out->n++];
        memcpy(sandbox_dir->name, entry->d_name, sizeof(sandbox_dir->name));
        sandbox_dir->created = st.st_mtim.tv_sec;
    }
    if (out->n > 0)
        qsort(out->items, out->n, sizeof(*out->items), compare);
}

int state_list(const struct sandbox_root *root, const char *tenant, struct state_list *out,
               struct err *e)
{
    char path[TENANT_PATH_LEN];

    *out = (struct state_list){0};
    if (tenant_path(tenant, path, e) < 0)
        return -1;
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, path);
    if (!dir && errno == ENOENT)
        return 0;
    if (!dir)
        return err_errno(e, "the tenant's sandboxes cannot be listed");
    read_list(dir, out);
    return 0;
}

void state_list_clear(struct state_list *l)
{
    free(l->items);
    *l = (struct state_list){0};
}

/* ---- notes: sizes and tombstones ---- */

#define NOTE_PATH_LEN (sizeof(STATE_SIZES_DIR) + 1 + SANDBOX_NAME_LEN + sizeof(".json"))
/* Two numbers, a blank between, a newline behind: each note replaces all of the one before. */
#define NOTE_NUMBER_LEN 20
#define NOTE_LEN        (2 * NOTE_NUMBER_LEN + 2)

static const char *note_path(const char *dir, const char *name, char out[NOTE_PATH_LEN])
{
    snprintf(out, NOTE_PATH_LEN, "%s/%s", dir, name);
    return out;
}

/* Makes the folder when it is missing. */
static int note_open(const struct sandbox_root *root, const char *dir, const char *name, int flags)
{
    char path[NOTE_PATH_LEN];

    note_path(dir, name, path);
    flags |= O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(root->fd, path, flags, 0600);
    if (fd < 0 && errno == ENOENT && mkdirat(root->fd, dir, 0700) == 0)
        fd = openat(root->fd, path, flags, 0600);
    return fd;
}

void state_note_size(const struct sandbox_root *root, const char *name, const struct usage *u)
{
    char text[NOTE_LEN + 1];
    AUTO_FD int fd = note_open(root, STATE_SIZES_DIR, name, O_WRONLY);

    snprintf(text, sizeof(text), "%020" PRIu64 " %020" PRIu64 "\n", u->bytes, u->files);
    /* A torn or missing note leads to another count. */
    if (fd >= 0 && pwrite(fd, text, NOTE_LEN, 0) != NOTE_LEN)
        state_forget_size(root, name);
}

void state_forget_size(const struct sandbox_root *root, const char *name)
{
    char path[NOTE_PATH_LEN];

    unlinkat(root->fd, note_path(STATE_SIZES_DIR, name, path), 0);
}

bool state_size(const struct sandbox_root *root, const char *name, struct usage *out)
{
    char path[NOTE_PATH_LEN], text[NOTE_LEN + 1] = "";

    *out = (struct usage){0};
    AUTO_FD int fd = openat(root->fd, note_path(STATE_SIZES_DIR, name, path),
                            O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || pread(fd, text, NOTE_LEN, 0) != NOTE_LEN)
        return false;
    text[NOTE_NUMBER_LEN] = text[NOTE_LEN - 1] = '\0';
    return parse_u64(text, 0, UINT64_MAX, &out->bytes) == 0 &&
           parse_u64(text + NOTE_NUMBER_LEN + 1, 0, UINT64_MAX, &out->files) == 0;
}

void state_mark_expired(const struct sandbox_root *root, const char *name)
{
    AUTO_FD int fd = note_open(root, STATE_GONE_DIR, name, O_WRONLY | O_TRUNC);

    if (fd >= 0)
        futimens(fd, NULL);
}

int64_t state_expired_at(const struct sandbox_root *root, const char *name)
{
    char path[NOTE_PATH_LEN];
    struct stat st;

    return fstatat(root->fd, note_path(STATE_GONE_DIR, name, path), &st, AT_SYMLINK_NOFOLLOW) == 0
               ? st.st_mtim.tv_sec
               : 0;
}

int64_t state_take_expired(const struct sandbox_root *root, const char *name)
{
    char path[NOTE_PATH_LEN];
    int64_t when = state_expired_at(root, name);

    if (when > 0)
        unlinkat(root->fd, note_path(STATE_GONE_DIR, name, path), 0);
    return when;
}

/* ---- tidying ---- */

static void forget_tomb(const struct sandbox_root *root, const char *name, int64_t now)
{
    if (state_expired_at(root, name) < now - STATE_GONE_S)
        (void)state_take_expired(root, name);
}

static void forget_missing(const struct sandbox_root *root, const char *name, int64_t now)
{
    (void)now;
    if (faccessat(root->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        state_forget(root, name);
}

static void note_each(const struct sandbox_root *root, const char *dir, const char *suffix,
                      void (*look)(const struct sandbox_root *, const char *, int64_t), int64_t now)
{
    char name[SANDBOX_NAME_LEN + 1];
    AUTO_DIR DIR *d = beneath_open_dir(root->fd, dir);

    for (const struct dirent *entry; d && (entry = readdir(d));) {
        snprintf(name, sizeof(name), "%.64s", entry->d_name);
        if (state_name_ok(name) && strcmp(entry->d_name + SANDBOX_NAME_LEN, suffix) == 0)
            look(root, name, now);
    }
}

void state_tidy(const struct sandbox_root *root, int64_t now_unix)
{
    note_each(root, STATE_GONE_DIR, "", forget_tomb, now_unix);
    note_each(root, STATE_SIZES_DIR, "", forget_missing, now_unix);
    note_each(root, STATE_DIR, ".json", forget_missing, now_unix);
}
