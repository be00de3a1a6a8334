/*
 * Opening names beneath a directory that a hostile program may be changing right now. Internal to
 * common/sandbox, where nothing else is said.
 *
 * Errors are errno values, since the callers tell kinds apart: ENOENT, ELOOP/ENOTDIR/EXDEV (a link
 * or a file on the way), EINVAL (a name that no way may follow).
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#define FILES_NAME_MAX      1024 /* bytes of a relative name */
#define FILES_COMPONENT_MAX 255
#define FILES_DEPTH_MAX     16

struct open_how;

/*
 * Opens the relative name beneath dir_fd with openat(2)'s flags; links are followed nowhere, "."
 * and ".." and empty components are refused. O_CLOEXEC and O_NOFOLLOW are added. Returns the
 * descriptor, or -1 with errno set. openat2(2) where the kernel has it, else component by
 * component.
 */
int beneath_open(int dir_fd, const char *name, int flags);

/*
 * Opens the folder name of at_fd, which is no link, for reading its entries; "." is at_fd itself
 * once more, from its beginning. Caller closes (AUTO_DIR); NULL with errno set. For the layers
 * above, too.
 */
DIR *beneath_open_dir(int at_fd, const char *name);

/*
 * Copies the first component of name into out (which holds at least 256 bytes) and returns the rest
 * behind the slash, NULL after the last one. With errno EINVAL out is "" when the component is
 * empty, ".", ".." or over 255 bytes.
 */
const char *beneath_component(const char *name, char *out);

/* Is it a relative name of at most FILES_NAME_MAX bytes and FILES_DEPTH_MAX components, each of
 * which beneath_component accepts? Any bytes else. */
bool beneath_name_fits(const char *name);

/* Is it one of the two entries that every directory has? */
bool beneath_is_dot(const char *name);

/*
 * Renames to a name that is free: EEXIST otherwise. Where the file system cannot promise that, it
 * is looked first, and only what a program puts there in between is replaced. 0, or -1 with errno.
 */
int beneath_rename_free(int from_fd, const char *from, int to_fd, const char *to);

/*
 * Exchanges two names, in one step where the file system can. Elsewhere a is missing for a moment,
 * and what b names has another name meanwhile. 0, or -1 with errno: nothing has changed.
 */
int beneath_exchange(int a_fd, const char *a, int b_fd, const char *b);

/* Is this errno a failure of the system itself? All others mean that the name leads to nothing we
 * would open. */
bool beneath_system_failed(int error);

/* Does this errno say that what had the name is gone, or became something else? */
bool beneath_has_changed(int error);

/* The system call. Weak: the tests of the way put one in its place that fails with ENOSYS. */
int beneath_openat2(int dir_fd, const char *name, const struct open_how *how, size_t size);
