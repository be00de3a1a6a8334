/*
 * Making a tree that comes from outside, in a folder that no program can reach yet: files, folders
 * and links in any names, each below a folder that was made before it. Nothing that is there is
 * followed or replaced, so that no order of names leads out of the folder.
 */
#pragma once

#include "common/base/err.h"
#include "common/sandbox/sandbox_root.h"

#include <sys/types.h>
#include <time.h>

struct plant_attributes {
    mode_t mode; /* permissions alone: 0777 */
    struct timespec mtime;
};

struct plant_folder;

struct plant {
    int dir_fd;                 /* of the folder; owned; -1: none */
    struct sandbox_owner owner; /* of what is made */
    const char *from;           /* what it comes from, in error texts: "the backup" */
    struct plant_folder *folders;
    size_t n_folders;
};

/* Names have passed beneath_name_fits. ERR_INVALID: the folder of the name is missing, or the name
 * is there already; ERR_IO. */
int plant_folder(struct plant *p, const char *name, const struct plant_attributes *is,
                 struct err *e);
int plant_link(struct plant *p, const char *name, const char *target, struct err *e);
/* Returns a descriptor for writing the content. */
int plant_file(const struct plant *p, const char *name, struct err *e);
/* The file that fd is open on is whole: it gets its owner, mode and time. */
int plant_finish_file(const struct plant *p, int fd, const struct plant_attributes *is,
                      struct err *e);

/* All is there: folders get their owners, modes and times. Closes dir_fd, also after a failure. */
int plant_finish(struct plant *p, struct err *e);
/* Closes it without that. */
void plant_clear(struct plant *p);
