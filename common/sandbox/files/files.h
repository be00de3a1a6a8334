/*
 * Files inside a sandbox, by their names. The tree is hostile: a program may have made links, FIFOs
 * or devices and may be changing it now. Everything is opened beneath the sandbox's descriptor
 * (beneath.h), regular files only, never by path.
 */
#pragma once

#include "common/base/glob.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Checks a client's relative name: 1..FILES_NAME_MAX bytes of UTF-8 without NULs, not absolute, at
 * most FILES_DEPTH_MAX components of 1..FILES_COMPONENT_MAX bytes, none "." or "..". The same
 * written with percent signs ("%2e%2e", "%2f", "%00") is refused too: a program that decodes it
 * twice would misread it. Backslashes, newlines and other control characters are ordinary bytes:
 * programs make such names, and the output of a name cleans it (content_clean_name, err_set).
 * ERR_INVALID; field is put in front ("filename"). len is given since JSON strings may hold NULs.
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
 * are fewer) at name, creating missing folders (owned by the sandbox's user, 0755) and replacing
 * an existing file or link (never following one); without replace ERR_EXISTS when anything is
 * there. The content is written in .staging (owner and mode 0644 set there by descriptor), then
 * renamed in: readers see the old or the new file. ERR_IO on a full disk, with nothing left behind;
 * ERR_INVALID when a folder of the name is not a directory, or name is one. name has passed
 * files_check_name.
 */
int files_put(const struct sandbox *sb, const char *name, int from_fd, uint64_t size, bool replace,
              struct err *e);

struct staged;

/* The same with a staged file, on which fd is open. It gets the sandbox's user and mode 0644, and
 * is moved; after a failure it stays staged. */
int files_put_staged(const struct sandbox *sb, const char *name, struct staged *file, int fd,
                     struct err *e);

/* Makes the folder name and those above it that are missing. */
int files_make_folder(const struct sandbox *sb, const char *name, struct err *e);

/*
 * Renames from to to, whatever it is, following no link; missing folders are made as by files_put.
 * ERR_NOT_FOUND; ERR_EXISTS when something is at to and replace is false, or it cannot be replaced
 * (a folder that is not empty, one by a file, a file by a folder); ERR_INVALID when a folder would
 * move into itself, or to lies below something else than folders. Both names have passed
 * files_check_name.
 */
int files_move(const struct sandbox *sb, const char *from, const char *to, bool replace,
               struct err *e);

#define FILES_DELETE_MAX 1000000 /* files and folders of one call */

/*
 * Deletes what name is: a file, a link itself (never what it leads to), an empty folder; with
 * recursive a folder and everything in it, however deep. *out_deleted counts what is gone, also
 * after a failure: ERR_NOT_FOUND; ERR_INVALID for a folder that is not empty without recursive;
 * ERR_LIMIT after FILES_DELETE_MAX, or when a program fills the folder as fast; ERR_DENIED when
 * a folder's mode forbids it; the error of watch (NULL: none). Files that a program moves out of
 * the folder meanwhile may be deleted, too.
 */
int files_delete(const struct sandbox *sb, const char *name, bool recursive,
                 const struct sandbox_watch *watch, uint64_t *out_deleted, struct err *e);

/* What is at name, links not followed; ERR_NOT_FOUND when nothing is. */
int files_look(const struct sandbox *sb, const char *name, struct stat *out, struct err *e);

/*
 * Lets the web server read a file that only its owner may read (mode 0600 in a folder of mode 0700,
 * as temporary files are): adds the read bits to a regular file and the search bits to its folders.
 * Does nothing for other types, or when the owner is another account.
 */
void files_share(const struct sandbox *sb, const char *name);

/* ---- what is in a folder, page by page (files_list.c) ---- */

#define FILES_LIST_MAX   1000    /* rows of one page */
#define FILES_LIST_STEPS 1000000 /* directory entries one page looks at */

struct files_query {
    const char *folder;      /* relative, passes files_check_name; "": the sandbox itself */
    const struct glob *glob; /* of the names below folder; NULL: all */
    bool recursive;
    bool hidden;       /* also what snapshot_is_hidden */
    const char *after; /* next of the page before; "": the first */
    size_t max;        /* 1..FILES_LIST_MAX */
};

struct files_row {
    char *name; /* relative to the sandbox, raw bytes as on disk */
    struct stat st;
};

struct files_page {
    struct files_row *rows;
    size_t n;
    char *next;      /* below the folder, raw bytes; NULL: there is no more */
    bool incomplete; /* some is passed over: too deep or too long a name for files_check_name, or in
                        a folder that cannot be read */
};

#define AUTO_FILES_PAGE AUTO(files_page_clear)

/*
 * Lists everything but "." and ".." and what is hidden, following no link: a folder before its
 * content, names in the order of their bytes. A page begins behind a name, which need not exist, so
 * that the order holds while files come and go. ERR_INVALID when after cannot be a name;
 * ERR_NOT_FOUND when there is no such folder; ERR_LIMIT when one folder holds more than
 * FILES_LIST_STEPS entries. Otherwise a page that looked at so many ends early, with next.
 */
int files_list(const struct sandbox *sb, const struct files_query *q, struct files_page *out,
               struct err *e);
void files_page_clear(struct files_page *p);
