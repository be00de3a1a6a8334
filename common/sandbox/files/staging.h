/*
 * .staging: where files and folders are made before they are renamed into a sandbox, so that a
 * program never sees one half-done or with the wrong owner. No container can reach it.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#define STAGING_NAME_LEN 32

/* Something in .staging that is removed by staged_clear unless it has been moved out. */
struct staged {
    int dir_fd; /* of .staging */
    char name[STAGING_NAME_LEN + 1];
    int unlink_flags; /* AT_REMOVEDIR for a folder */
};

#define STAGED_INIT ((struct staged){.dir_fd = -1})
#define AUTO_STAGED AUTO(staged_clear)

/* A new empty file, mode 0600, owned by this process. Returns a descriptor for writing, or -1 with
 * errno. */
int staging_create_file(const struct sandbox_root *root, struct staged *out);

/* Gives a file that was opened without a name (O_TMPFILE) one. 0, or -1 with errno. */
int staging_name_file(const struct sandbox_root *root, int fd, struct staged *out);

/* A new empty folder, mode 0755. 0, or -1 with errno. */
int staging_create_folder(const struct sandbox_root *root, struct sandbox_owner owner,
                          struct staged *out);

enum staged_move {
    STAGED_MOVE_REPLACE, /* replaces what rename(2) replaces */
    STAGED_MOVE_NEW,     /* EEXIST; EINVAL or ENOSYS where the file system cannot promise that */
    STAGED_MOVE_FREE,    /* EEXIST as well as the file system can (beneath_rename_free) */
};

/* Renames it to name in to_fd. 0, or -1 with errno; it then stays staged. */
int staged_move(struct staged *s, int to_fd, const char *name, enum staged_move how);
void staged_clear(struct staged *s);

/* Removes what nothing has happened to for an hour before now (Unix seconds): leftovers of
 * processes that were killed. */
void staging_sweep(const struct sandbox_root *root, int64_t now);
/* The same for files of another folder of the root: those whose names are ours, not changed for
 * age_s seconds. */
void staging_sweep_files(const struct sandbox_root *root, const char *folder,
                         bool (*is_ours)(const char *name), int64_t age_s);
