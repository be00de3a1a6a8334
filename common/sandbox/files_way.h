/*
 * The way to a name: the folder that holds its last part, reached from the sandbox by going down
 * only. Internal to common/sandbox; errors are errno values as in beneath.h.
 */
#ifndef SANDCGI_SANDBOX_FILES_WAY_H
#define SANDCGI_SANDBOX_FILES_WAY_H

#include "common/sandbox/files.h"

/* A folder that was made on the way. */
struct files_made {
    int parent_fd;
    char name[FILES_COMPONENT_MAX + 1];
};

struct files_way {
    int fd; /* of the folder, O_PATH */
    char last[FILES_COMPONENT_MAX + 1];
    struct files_made made[FILES_DEPTH_MAX];
    int n_made;
};

#define FILES_WAY_INIT                                                                             \
    {                                                                                              \
        .fd = -1                                                                                   \
    }
#define AUTO_FILES_WAY AUTO(files_way_clear)

/* Goes there; with make the folders that are missing are made (owned by the sandbox's uid, 0755).
 * 0, or -1 with errno. Clear *out in either case. */
int files_way_go(const struct sandbox *sb, const char *name, bool make, struct files_way *out);
/* The folders that were made stay; otherwise clear takes them back as far as they are empty. */
void files_way_keep(struct files_way *w);
void files_way_clear(struct files_way *w); /* errno is kept */

#endif
