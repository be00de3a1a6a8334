/*
 * Files inside a sandbox: the one module that turns a name into a descriptor. The tree is hostile:
 * a program may have planted links, FIFOs or devices and may be changing it right now. Everything
 * is opened beneath the sandbox's descriptor (openat2, RESOLVE_BENEATH|NO_SYMLINKS|NO_MAGICLINKS;
 * component by component with O_NOFOLLOW where the kernel lacks it), regular files only, never by
 * path.
 */
#ifndef SANDCGI_SANDBOX_FILES_FILES_H
#define SANDCGI_SANDBOX_FILES_FILES_H

#include "common/sandbox/files/beneath.h"
#include "common/sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Checks a client's relative name: 1..FILES_NAME_MAX bytes of UTF-8 without NULs, not absolute, at
 * most FILES_DEPTH_MAX components of 1..FILES_COMPONENT_MAX bytes, none "." or "..". The same
 * written with percent signs ("%2e%2e", "%2f", "%00") is refused too: such a name is an attempt, or
 * would be misread by the next program that decodes it twice. Backslashes, newlines and other
 * control characters are ordinary bytes: programs make such names, and whoever shows a name cleans
 * it (content_clean_name, err_set). ERR_INVALID; field is put in front ("filename"). len is given
 * since JSON strings may hold NULs.
 */
int files_check_name(const char *field, const char *name, size_t len, struct err *e);

/*
 * Opens a regular file for reading; ERR_NOT_FOUND for anything else (absent, behind a link, a
 * folder, a FIFO…), ERR_IO when the system fails. name may be any bytes a listing gave. Returns the
 * descriptor, and its fstat in *out.
 */
int files_open(const struct sandbox *sb, const char *name, struct stat *out, struct err *e);

/*
 * Puts the content of from_fd (read from its current offset, exactly size bytes; ERR_IO when there
 * are fewer) at name, creating folders on the way (owned by the sandbox's uid, 0755) and replacing
 * an existing file or link (never following one); without replace ERR_EXISTS when anything is
 * there. The content is written in .staging (owner and mode 0644 set there by descriptor), then
 * renamed in: readers see the old or the new file. ERR_IO on a full disk, with nothing left behind;
 * ERR_INVALID when a component of the way is not a directory, or name is one. name is one that
 * files_check_name passed.
 */
int files_put(const struct sandbox *sb, const char *name, int from_fd, uint64_t size, bool replace,
              struct err *e);

struct staged;

/*
 * The same with a content that is there already: the staged file, fd is open on it. It becomes the
 * sandbox's user's, mode 0644, and moves; after a failure it stays staged.
 */
int files_put_staged(const struct sandbox *sb, const char *name, struct staged *file, int fd,
                     struct err *e);

/*
 * Renames from to to, whatever it is, following nothing; folders on the way are made as by
 * files_put. ERR_NOT_FOUND; ERR_EXISTS when something is at to and replace is false, or it cannot
 * be replaced (a folder that is not empty, one by a file, a file by a folder); ERR_INVALID when a
 * folder would move into itself, or the way leads through something else than folders. Both names
 * are ones that files_check_name passed.
 */
int files_move(const struct sandbox *sb, const char *from, const char *to, bool replace,
               struct err *e);

#define FILES_DELETE_MAX 1000000 /* files and folders of one call */

/*
 * Deletes what name is: a file, a link itself (never what it leads to), an empty folder; with
 * recursive a folder and everything in it, however deep. *out_deleted counts what is gone, also
 * after a failure: ERR_NOT_FOUND; ERR_INVALID for a folder that is not empty without recursive;
 * ERR_LIMIT after FILES_DELETE_MAX, or when a program fills the folder as fast; ERR_DENIED when
 * a folder's mode forbids it; what watch says (NULL: none). What a program moves out of the folder
 * meanwhile may be deleted, too.
 */
int files_delete(const struct sandbox *sb, const char *name, bool recursive,
                 const struct sandbox_watch *watch, uint64_t *out_deleted, struct err *e);

/* What is at name, links not followed; ERR_NOT_FOUND when nothing is. */
int files_look(const struct sandbox *sb, const char *name, struct stat *out, struct err *e);

/*
 * Lets the web server read a file that a program made for itself only (mode 0600, in a folder of
 * mode 0700, as temporary files are): adds the read bits to a regular file and the search bits to
 * the folders on its walk. Does nothing for whatever else the name leads to, and nothing when the
 * owner is somebody else's account.
 */
void files_share(const struct sandbox *sb, const char *name);

#endif
