/*
 * What is in a folder of a sandbox, page by page. Any number of entries costs a page bounded memory
 * and bounded time; where a page begins is a name, so that the order holds while files come and go.
 */
#ifndef SANDCGI_SANDBOX_FILES_FILES_LIST_H
#define SANDCGI_SANDBOX_FILES_FILES_LIST_H

#include "common/base/glob.h"
#include "common/sandbox/files/files.h"

#define FILES_LIST_MAX   1000    /* rows of one page */
#define FILES_LIST_STEPS 1000000 /* directory entries one page looks at */

struct files_query {
    const char *folder;      /* relative, passes files_check_name; "": the sandbox itself */
    const struct glob *glob; /* of the names below folder; NULL: all */
    bool recursive;
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

#define FILES_PAGE_INIT                                                                            \
    {                                                                                              \
        0                                                                                          \
    }
#define AUTO_FILES_PAGE AUTO(files_page_clear)

/*
 * Lists everything but "." and "..", following nothing: a folder before what is in it, names in the
 * order of their bytes. after is taken for a name whatever it is (ERR_INVALID when it could not be
 * one). ERR_NOT_FOUND when there is no such folder; ERR_LIMIT when a folder on the way holds more
 * than FILES_LIST_STEPS. Otherwise a page that looked at so many ends early, with next.
 */
int files_list(const struct sandbox *sb, const struct files_query *q, struct files_page *out,
               struct err *e);
void files_page_clear(struct files_page *p);

#endif
