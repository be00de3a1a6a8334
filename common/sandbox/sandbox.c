#include "config.h"

#include "common/sandbox/sandbox.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/utf8.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/owner.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/sizes.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/user_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* A directory is locked alone for a moment (sandbox_retire, take_over); a program can lock it for
 * ever. */
#define HOLD_TRIES 50
#define DIR_FLAGS  (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define OPEN_TRIES 8 /* openings of a sandbox that is retired each time */

bool sandbox_text_ok(const char *s, size_t len)
{
    if (!utf8_valid(s, len))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == 0x7f)
            return false;
        /* U+0080..U+009F; the text is valid, so a second byte is there. */
        if (c == 0xc2 && (unsigned char)s[i + 1] < 0xa0)
            return false;
    }
    return true;
}

static int check_id(const char *what, const char *id, struct err *e)
{
    size_t len = strlen(id);

    if (len == 0 || len > SANDBOX_ID_MAX)
        return err_set(e, ERR_INVALID, "%s must be 1 to %d bytes long", what, SANDBOX_ID_MAX);
    if (!sandbox_text_ok(id, len))
        return err_set(e, ERR_INVALID, "%s must be UTF-8 text without control characters", what);
    return 0;
}

int sandbox_name(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 char out[SANDBOX_NAME_LEN + 1], struct err *e)
{
    const struct crypto_part parts[] = {
        {tenant, strlen(tenant)},
        {conversation, strlen(conversation)},
    };
    uint8_t mac[CRYPTO_SHA256_LEN];

    if (check_id("tenant", tenant, e) < 0 || check_id("conversationId", conversation, e) < 0)
        return -1;
    if (crypto_hmac(root->name_secret, strlen(root->name_secret), parts, ARRAY_LEN(parts), mac, e) <
        0)
        return -1;
    crypto_hex(mac, sizeof(mac), out);
    return 0;
}

int sandbox_name_of(const struct sandbox_root *root, const json_t *head,
                    char out[SANDBOX_NAME_LEN + 1], struct err *e)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *conversation = json_get_string(head, "conversationId");

    if (!tenant || !conversation)
        return err_set(e, ERR_INVALID, "tenant or conversation is missing");
    return sandbox_name(root, tenant, conversation, out, e);
}

/* LOCK_SH marks the directory as in use for the server's other processes. Without locks in the file
 * system the broker's own records have to do. */
static bool lock_dir(int fd, int how)
{
    for (int i = 0; i < HOLD_TRIES; i++) {
        if (flock(fd, how | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

/* Gives a tree with another owner to one of its own, unless it is in use: the programs of a
 * container that still runs would lose their files. It then keeps its owner for now. */
static int take_over(const struct sandbox_root *root, int fd, struct stat *st, struct err *e)
{
    if (lock_dir(fd, LOCK_EX)) {
        log_info("the files of a conversation get another owner than %u", st->st_uid);
        if (owner_give_tree(fd, owner_new(root), e) < 0 || fstat(fd, st) < 0)
            return -1;
    }
    if (st->st_uid == 0)
        return err_set(e, ERR_BUSY, "the conversation's directory belongs to root; try again");
    return 0;
}

/* Locks the directory, and repairs its owner, its user's quota, and its mode after a program's
 * chmod. */
static int prepare_dir(const struct sandbox_root *root, int fd, struct stat *st, struct err *e)
{
    if (fstat(fd, st) < 0)
        return err_errno(e, "the sandbox's directory cannot be examined");
    if (!owner_is_right(root, st) && take_over(root, fd, st, e) < 0)
        return -1;
    lock_dir(fd, LOCK_SH);
    user_quota_set(root, st->st_uid);
    if ((st->st_mode & 07777) != SANDBOX_MODE && fchmod(fd, SANDBOX_MODE) < 0)
        return err_errno(e, "the mode of the sandbox's directory cannot be set");
    return 0;
}

static int sandbox_missing(const struct sandbox *sb, struct err *e)
{
    if (state_expired_at(sb->root, sb->name) > 0)
        return err_set(e, ERR_NOT_FOUND,
                       "the files of this conversation have expired and were removed");
    return err_set(e, ERR_NOT_FOUND, "there is no such sandbox");
}

/* Opens the directory that sb names; sb->fd is -1. One that was retired before it was locked is
 * missing. */
static int sandbox_enter(struct sandbox *sb, struct sandbox *out, struct err *e)
{
    AUTO_FD int fd = owner_open_dir(sb->root->fd, sb->name);
    struct stat st, now;

    if (fd < 0 && errno == ENOENT)
        return sandbox_missing(sb, e);
    if (fd < 0)
        return err_errno(e, "the sandbox's directory cannot be opened");
    if (prepare_dir(sb->root, fd, &st, e) < 0)
        return -1;
    if (fstatat(sb->root->fd, sb->name, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_ino != st.st_ino ||
        now.st_dev != st.st_dev)
        return sandbox_missing(sb, e);
    sb->owner = (struct sandbox_owner){st.st_uid, st.st_gid};
    sb->fd = TAKE_FD(fd);
    *out = *sb;
    return 0;
}

/* Makes the directory that sb names, by renaming in one with the right owner, unless it is there.
 * A new conversation looks at the reserve before it takes an inode. */
static int make_dir(struct sandbox *sb, struct err *e)
{
    AUTO_STAGED struct staged folder = STAGED_INIT;

    if (quota_check_disk(sb->root->fd, &sb->root->bounds, 0, e) < 0)
        return -1;
    sb->made = staging_create_folder(sb->root, owner_new(sb->root), &folder) == 0 &&
               staged_move(&folder, sb->root->fd, sb->name, STAGED_MOVE_FREE) == 0;
    if (!sb->made && errno != EEXIST)
        return err_errno(e, "the sandbox's directory cannot be made");
    return 0;
}

static int set_name(struct sandbox *sb, const char *name, struct err *e)
{
    if (!state_name_ok(name))
        return err_set(e, ERR_INVALID, "that is no sandbox's name");
    memcpy(sb->name, name, sizeof sb->name);
    return 0;
}

int sandbox_open(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 struct sandbox *out, struct err *e)
{
    char name[SANDBOX_NAME_LEN + 1];

    if (sandbox_name(root, tenant, conversation, name, e) < 0)
        return -1;
    return sandbox_open_named(root, name, tenant, out, e);
}

int sandbox_open_named(const struct sandbox_root *root, const char *name, const char *tenant,
                       struct sandbox *out, struct err *e)
{
    struct sandbox sb = {.root = root, .fd = -1};

    if (set_name(&sb, name, e) < 0)
        return -1;
    sizes_count_others(&sb, tenant);
    for (int i = 0; i < OPEN_TRIES; i++) {
        if (sandbox_enter(&sb, out, e) == 0)
            return 0;
        if (e->kind != ERR_NOT_FOUND || make_dir(&sb, e) < 0)
            return -1;
    }
    return err_set(e, ERR_BUSY, "the conversation is being deleted; try again");
}

int sandbox_find(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 struct sandbox *out, struct err *e)
{
    struct sandbox sb = {.root = root, .fd = -1};

    if (sandbox_name(root, tenant, conversation, sb.name, e) < 0)
        return -1;
    return sandbox_enter(&sb, out, e);
}

int sandbox_find_named(const struct sandbox_root *root, const char *name, struct sandbox *out,
                       struct err *e)
{
    struct sandbox sb = {.root = root, .fd = -1};

    if (set_name(&sb, name, e) < 0)
        return -1;
    return sandbox_enter(&sb, out, e);
}

void sandbox_close(struct sandbox *sb)
{
    auto_close_fd(&sb->fd);
}

bool sandbox_is_held(const struct sandbox_root *root, const char *name)
{
    AUTO_FD int fd = owner_open_dir(root->fd, name);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Opens a sandbox's directory that no process of the server has open. */
static int open_unused(const struct sandbox_root *root, const char *name, struct err *e)
{
    AUTO_FD int fd = owner_open_dir(root->fd, name);

    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "there is no such sandbox");
    if (fd < 0)
        return err_errno(e, "the sandbox's directory cannot be opened");
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return err_set(e, ERR_BUSY, "the conversation's files are in use; try again in a moment");
    return TAKE_FD(fd);
}

int sandbox_exchange(const struct sandbox_root *root, const char *name, const char *staged,
                     struct err *e)
{
    AUTO_FD int fd = open_unused(root, name, e);
    AUTO_FD int staging = openat(root->fd, STAGING_DIR, DIR_FLAGS);

    if (fd < 0)
        return -1;
    if (strspn(staged, "0123456789abcdef") != STAGING_NAME_LEN || staged[STAGING_NAME_LEN])
        return err_set(e, ERR_INVALID, "that is no name of SANDBOX_ROOT/" STAGING_DIR);
    if (staging < 0 || beneath_exchange(root->fd, name, staging, staged) < 0)
        return err_errno(e, "the sandbox's directory cannot be exchanged");
    state_forget_size(root, name);
    return 0;
}

int sandbox_retire(const struct sandbox_root *root, const char *name, const char *to, char out[],
                   struct err *e)
{
    AUTO_FD int fd = open_unused(root, name, e);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_errno(e, "the sandbox's directory cannot be examined");
    if (tree_take(root, root->fd, name, to, out, e) < 0)
        return -1;
    user_quota_drop(root, st.st_uid);
    return 0;
}

char *sandbox_host_path(const struct sandbox *sb)
{
    return mem_printf("%s/%s", sb->root->host_path, sb->name);
}

char *sandbox_url_path(const struct sandbox *sb)
{
    char token[FILE_TOKEN_LEN + 1];

    file_token(&sb->root->file_keys.now, sb->name, token);
    return mem_printf("%s/%s", sb->name, token);
}

int sandbox_name_of_url_path(const struct sandbox_root *root, const char *path,
                             char out[SANDBOX_NAME_LEN + 1], struct err *e)
{
    char token[FILE_TOKEN_LEN + 1] = "";

    memset(out, 0, SANDBOX_NAME_LEN + 1);
    if (strnlen(path, SANDBOX_URL_PATH_LEN) == SANDBOX_URL_PATH_LEN) {
        memcpy(out, path, SANDBOX_NAME_LEN);
        memcpy(token, path + SANDBOX_NAME_LEN + 1, FILE_TOKEN_LEN);
    }
    if (!file_token_is(&root->file_keys, out, token, clock_unix_s()) || !state_name_ok(out))
        return err_set(e, ERR_NOT_FOUND, "there is no such sandbox");
    return 0;
}

int sandbox_find_url_path(const struct sandbox_root *root, const char *path, struct sandbox *out,
                          struct err *e)
{
    char name[SANDBOX_NAME_LEN + 1];

    if (sandbox_name_of_url_path(root, path, name, e) < 0)
        return -1;
    return sandbox_find_named(root, name, out, e);
}

bool sandbox_links_are_local(const struct sandbox_root *root)
{
    return strcmp(root->base_url, SANDBOX_LOCAL_URLS) == 0;
}

char *sandbox_url(const struct sandbox *sb)
{
    AUTO_BUF struct buf folder = BUF_INIT(3 * strlen(sb->root->path));
    AUTO_FREE char *path = sandbox_url_path(sb);

    if (!sandbox_links_are_local(sb->root))
        return mem_printf("%s/files/%s", sb->root->base_url, path);
    link_encode(sb->root->path, &folder);
    return mem_printf(SANDBOX_LOCAL_URLS "//%s/%s", buf_str(&folder), sb->name);
}

char *sandbox_file_url(const struct sandbox *sb, const char *name)
{
    const struct sandbox_root *root = sb->root;
    AUTO_BUF struct buf encoded = BUF_INIT(3 * strlen(name));
    char token[FILE_TOKEN_LEN + 1];

    link_encode(name, &encoded);
    if (root->url_ttl_s == 0 || sandbox_links_are_local(root)) {
        AUTO_FREE char *folder = sandbox_url(sb);
        return mem_printf("%s/%s", folder, buf_str(&encoded));
    }
    int64_t expires = clock_unix_s() + root->url_ttl_s;
    AUTO_FREE char *text = mem_printf("%" PRId64 " %s/%s", expires, sb->name, name);
    file_token(&root->file_keys.now, text, token);
    return mem_printf("%s/files/%s/%s?expires=%" PRId64 "&sig=%s", root->base_url, sb->name,
                      buf_str(&encoded), expires, token);
}
