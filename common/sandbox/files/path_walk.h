/*
 * The way to a name: the folder that holds its last part, reached from the sandbox by going down
 * only. Internal to common/sandbox; errors are errno values as in beneath.h.
 */
#ifndef SANDCGI_SANDBOX_FILES_PATH_WALK_H
#define SANDCGI_SANDBOX_FILES_PATH_WALK_H

#include "common/sandbox/files/beneath.h"
#include "common/sandbox/sandbox_root.h"

/* A folder that was made on the walk. */
struct files_made {
    int parent_fd;
    char name[FILES_COMPONENT_MAX + 1];
};

struct path_walk {
    int fd; /* of the folder, O_PATH */
    char last[FILES_COMPONENT_MAX + 1];
    struct files_made made[FILES_DEPTH_MAX];
    int n_made;
};

#define PATH_WALK_INIT                                                                             \
    {                                                                                              \
        .fd = -1                                                                                   \
    }
#define AUTO_PATH_WALK AUTO(path_walk_clear)

/* Goes there; with make the folders that are missing are made (owned by the sandbox's uid, 0755).
 * 0, or -1 with errno. Clear *out in either case. */
int path_walk_go(const struct sandbox *sb, const char *name, bool make, struct path_walk *out);
/* The folders that were made stay; otherwise clear takes them back as far as they are empty. */
void path_walk_keep(struct path_walk *w);
void path_walk_clear(struct path_walk *w); /* errno is kept */

#endif
