/* Files, uploads, archives and the deletion of a conversation, for workers. Results are new
 * references, or NULL. */
#pragma once

#include "common/protocol/client_call.h"

#include <sys/stat.h>

/* Stores size bytes of fd, from offset 0: {name, size, url}. ERR_EXISTS without replace. */
json_t *broker_put_file(const struct broker_client *c, const char *conversation, const char *name,
                        int fd, size_t size, bool replace, struct err *e);

/* Opens a file of a sandbox for reading; returns the descriptor, or -1. */
int broker_open_file(const struct broker_client *c, const char *conversation, const char *name,
                     struct stat *out, struct err *e);

/* The same; *out_url is its link, which the caller frees; NULL: it has none. */
int broker_open_linked(const struct broker_client *c, const char *conversation, const char *name,
                       struct stat *out, char **out_url, struct err *e);

#define BROKER_URI_MAX 32768

/* The same for a request's URI (file_link.h), whatever its bytes. ERR_NOT_FOUND, ERR_DENIED: as
 * file_url_parse says, or there is no such file. */
int broker_open_url(const struct broker_client *c, const char *uri, struct stat *out,
                    struct err *e);

#define BROKER_LIST_MAX   1000 /* files of one page, names of one answer */
#define BROKER_LISTED_MAX 64   /* conversations of one list */

/*
 * One page of the files of these conversations, an array of up to BROKER_LISTED_MAX:
 * {"files":[{conversationId, name, size, modified (Unix seconds)}], "next"?: …}; the newest sandbox
 * first, its files by name. after is the "next" of the page before (it is checked), NULL: the first
 * page. A short page may have a next.
 */
json_t *broker_list_files(const struct broker_client *c, const json_t *conversations,
                          const json_t *after, size_t max, struct err *e);

/* Up to max names of the conversation's files that begin with prefix, an array of strings. */
json_t *broker_names(const struct broker_client *c, const char *conversation, const char *prefix,
                     size_t max, struct err *e);

/* One page of a folder. */
struct broker_listing {
    const char *conversation;
    const char *folder; /* relative; "": the sandbox itself */
    const char *glob;   /* NULL: everything; see base/glob.h */
    bool recursive;     /* what is in folders of the folder, too */
    bool
        hidden; /* what begins with a dot at the sandbox's top, too; a glob that does asks for it */
    const char *after; /* the "next" of the page before (it is checked) */
    size_t max;        /* 1..BROKER_LIST_MAX */
};

/*
 * {"files":[{name, type, size, modified, url}], "next"?: text, "incomplete"?: true}. name is the
 * whole relative name, repaired to UTF-8; type is "file", "folder", "link" or "other"; size and url
 * are of files only; modified is in Unix seconds. A folder comes before its content, names are in
 * the order of their bytes. A short or empty page may have a next. incomplete: names below that are
 * too long or too deep are left out. ERR_NOT_FOUND: no such folder; ERR_INVALID names folder, glob
 * or cursor.
 */
json_t *broker_list_folder(const struct broker_client *c, const struct broker_listing *listing,
                           struct err *e);

/* Deletes a file, a link itself, or a folder (recursive: with its content): {"deleted": N}, folders
 * counted. ERR_NOT_FOUND; ERR_INVALID: a folder that is not empty; ERR_LIMIT: too much for one
 * call, the rest is left. */
json_t *broker_delete_file(const struct broker_client *c, const char *conversation,
                           const char *name, bool recursive, struct err *e);

/* Renames a file or folder in its sandbox; missing folders of the new path are made. Answers its
 * row of a listing. ERR_NOT_FOUND; ERR_EXISTS without replace, or when the target cannot be
 * replaced; ERR_INVALID for a folder into itself, or a path through a file. */
json_t *broker_move_file(const struct broker_client *c, const char *conversation, const char *from,
                         const char *to, bool replace, struct err *e);

/* ---- uploads ---- */

/* A ticket for one file of size bytes (0: unknown): {"url", "method":"PUT", "maxBytes", "expiresAt"
 * (Unix seconds)}. ERR_INVALID: the name; ERR_LIMIT: the size. */
json_t *broker_create_upload(const struct broker_client *c, const char *conversation,
                             const char *filename, uint64_t size, struct err *e);

/* Checks the ticket for a body of size bytes (UINT64_MAX: unknown): {"tenant"}. ERR_EXISTS: the
 * ticket was used; ERR_LIMIT; ERR_INVALID: the file was announced with another size. */
json_t *broker_check_upload(const struct broker_client *c, const char *ticket, uint64_t size,
                            struct err *e);
/* The same, and the body has its room as long as the socket is open that is returned (room.h); -1.
 * begun: it was on its way already when the broker was restarted. */
int broker_hold_upload(const struct broker_client *c, const char *ticket, uint64_t size, bool begun,
                       struct err *e);

/* A file without a name, for a body that the caller streams itself. The descriptor, or -1. */
int broker_stage_upload(const struct broker_client *c, const char *ticket, struct err *e);

/* Moves the whole body into the sandbox and uses the ticket up. The body is the file nginx_name of
 * nginx's upload directory (NULL: none), or fd of broker_stage_upload. {tenant, conversationId,
 * name, size, url, filesExpireAt?, notices?}; fails as broker_check_upload. */
json_t *broker_finish_upload(const struct broker_client *c, const char *ticket,
                             const char *nginx_name, int fd, struct err *e);

/* Fetches url by https into the sandbox; the same answer. filename NULL: the last part of the URL's
 * path. ERR_INVALID; ERR_DENIED: switched off, or a private address; ERR_LIMIT: too large or too
 * slow; ERR_NOT_FOUND: the other server fails; ERR_BUSY. */
json_t *broker_import_url(const struct broker_client *c, const char *conversation, const char *url,
                          const char *filename, struct err *e);

/* ---- archives ---- */

/* A link to an archive of a conversation's folder ("": all); format is a name of archive.h: {url,
 * name, format, files, bytes, expiresAt}. ERR_NOT_FOUND: nothing to pack; ERR_LIMIT: too much. */
json_t *broker_archive_link(const struct broker_client *c, const char *conversation,
                            const char *folder, const char *format, struct err *e);

/* Makes the archive that a link's subject names and passes its bytes to write as they come. After a
 * failure the bytes so far are no whole archive. ERR_CANCELLED: write failed, or cancel_fd hung up.
 */
int broker_pack(const struct broker_client *c, const char *subject,
                int (*write)(void *ctx, const char *data, size_t len), void *ctx, struct err *e);

struct broker_unpack_want {
    const char *conversation;
    const char *archive; /* the name of a file in the sandbox; NULL: archive_fd */
    int archive_fd;      /* borrowed */
    const char *folder;  /* the target; "": the sandbox itself */
    bool replace;        /* files of the same names */
};

#define BROKER_UNPACK_NAMES_MAX 100

/* {files (their number), bytes, names: the first BROKER_UNPACK_NAMES_MAX, filesExpireAt?,
 * notices?}; fails as archive.h says, and with ERR_BUSY. */
json_t *broker_unpack(const struct broker_client *c, const struct broker_unpack_want *want,
                      struct err *e);

/* Deletes a conversation's files, their links and the kept results of its runs at once: {"deleted":
 * true,"files":N,"bytes":N}. ERR_BUSY: it is in use; ERR_NOT_FOUND: there is nothing. */
json_t *broker_delete_conversation(const struct broker_client *c, const char *conversation,
                                   struct err *e);

/* For a process of the broker's account: exchanges a conversation's files with the folder of that
 * name in .staging. ERR_BUSY: it is in use; ERR_NOT_FOUND: there are none. */
int broker_exchange_conversation(const struct broker_client *c, const char *conversation,
                                 const char *staged, struct err *e);
