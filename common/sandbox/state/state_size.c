#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_LEN (sizeof(STATE_SIZES_DIR) + 1 + SANDBOX_NAME_LEN + sizeof(".json"))
/* Two numbers, a blank between, a newline behind: each note replaces all of the one before. */
#define NUMBER_LEN 20
#define NOTE_LEN   (2 * NUMBER_LEN + 2)

static const char *path_of(const char *dir, const char *name, char out[PATH_LEN])
{
    snprintf(out, PATH_LEN, "%s/%s", dir, name);
    return out;
}

/* Makes the folder when it is missing. */
static int open_note(const struct sandbox_root *root, const char *dir, const char *name, int flags)
{
    char path[PATH_LEN];

    path_of(dir, name, path);
    flags |= O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(root->fd, path, flags, 0600);
    if (fd < 0 && errno == ENOENT && mkdirat(root->fd, dir, 0700) == 0)
        fd = openat(root->fd, path, flags, 0600);
    return fd;
}

void state_note_size(const struct sandbox_root *root, const char *name, const struct usage *u)
{
    char text[NOTE_LEN + 1];
    AUTO_FD int fd = open_note(root, STATE_SIZES_DIR, name, O_WRONLY);

    snprintf(text, sizeof(text), "%020" PRIu64 " %020" PRIu64 "\n", u->bytes, u->files);
    /* One that is torn or missing makes somebody count. */
    if (fd >= 0 && pwrite(fd, text, NOTE_LEN, 0) != NOTE_LEN)
        state_forget_size(root, name);
}

void state_forget_size(const struct sandbox_root *root, const char *name)
{
    char path[PATH_LEN];

    unlinkat(root->fd, path_of(STATE_SIZES_DIR, name, path), 0);
}

bool state_size(const struct sandbox_root *root, const char *name, struct usage *out)
{
    char path[PATH_LEN], text[NOTE_LEN + 1] = "";

    *out = (struct usage){0};
    AUTO_FD int fd = openat(root->fd, path_of(STATE_SIZES_DIR, name, path),
                            O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || pread(fd, text, NOTE_LEN, 0) != NOTE_LEN)
        return false;
    text[NUMBER_LEN] = text[NOTE_LEN - 1] = '\0';
    return parse_u64(text, 0, UINT64_MAX, &out->bytes) == 0 &&
           parse_u64(text + NUMBER_LEN + 1, 0, UINT64_MAX, &out->files) == 0;
}

void state_mark_expired(const struct sandbox_root *root, const char *name)
{
    AUTO_FD int fd = open_note(root, STATE_GONE_DIR, name, O_WRONLY | O_TRUNC);

    if (fd >= 0)
        futimens(fd, NULL);
}

int64_t state_expired_at(const struct sandbox_root *root, const char *name)
{
    char path[PATH_LEN];
    struct stat st;

    return fstatat(root->fd, path_of(STATE_GONE_DIR, name, path), &st, AT_SYMLINK_NOFOLLOW) == 0
               ? st.st_mtim.tv_sec
               : 0;
}

int64_t state_take_expired(const struct sandbox_root *root, const char *name)
{
    char path[PATH_LEN];
    int64_t when = state_expired_at(root, name);

    if (when > 0)
        unlinkat(root->fd, path_of(STATE_GONE_DIR, name, path), 0);
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

static void each_note(const struct sandbox_root *root, const char *dir, const char *suffix,
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
    each_note(root, STATE_GONE_DIR, "", forget_tomb, now_unix);
    each_note(root, STATE_SIZES_DIR, "", forget_missing, now_unix);
    each_note(root, STATE_DIR, ".json", forget_missing, now_unix);
}
