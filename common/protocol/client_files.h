/* Files of a conversation, uploads, archives, and the end of a conversation, for workers. */
#ifndef SANDCGI_PROTOCOL_CLIENT_FILES_H
#define SANDCGI_PROTOCOL_CLIENT_FILES_H

#include "common/protocol/client_call.h"

#include <sys/stat.h>

/* Stores size bytes of fd (from offset 0) as name; the answer is {name, size, url}. Without replace
 * ERR_EXISTS when something is there. */
json_t *broker_put_file(const struct broker_client *c, const char *tenant, const char *conversation,
                        const char *name, int fd, size_t size, bool replace, struct err *e);

/* Opens a file of a sandbox for reading; returns the descriptor, or -1. */
int broker_open_file(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *name, struct stat *out, struct err *e);

#define BROKER_LIST_MAX 1000 /* files of one page, names of one answer */

/*
 * One page of the files of a tenant's sandboxes: {"files":[{conversationId, name, size, modified
 * (Unix seconds)}], "next"?: …}. after is the "next" of the page before (checked: clients bring it
 * back), NULL: the first. The newest sandbox comes first, its files by name; an order that does not
 * change between pages. A page may be short and still have a next. New reference, or NULL.
 */
json_t *broker_list_files(const struct broker_client *c, const char *tenant, const json_t *after,
                          size_t max, struct err *e);

/*
 * Up to max names that begin with prefix, as an array of strings: of the tenant's conversations
 * (conversation NULL), the newest first, or of one conversation's files. New reference, or NULL.
 */
json_t *broker_names(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *prefix, size_t max, struct err *e);

/* One page of a folder. */
struct broker_listing {
    const char *conversation;
    const char *folder; /* relative; "": the sandbox itself */
    const char *glob;   /* NULL: everything; see base/glob.h */
    bool recursive;     /* what is in folders of the folder, too */
    const char *after;  /* the "next" of the page before (checked: clients bring it back) */
    size_t max;         /* 1..BROKER_LIST_MAX */
};

/*
 * {"files":[{name, type, size, modified, url}], "next"?: text, "incomplete"?: true}. name is the
 * whole relative name, repaired where it is not UTF-8; type is "file", "folder", "link" or "other"
 * (sockets, devices…); size and url are there for files only; modified is in Unix seconds. A folder
 * comes before what is in it, names in the order of their bytes: an order that does not change
 * between pages. A page may be short, even empty, and still have a next. incomplete: there is more
 * beneath that has too long or too deep a name to be asked for. ERR_NOT_FOUND when there is no such
 * folder, ERR_INVALID naming folder, glob or cursor. New reference, or NULL.
 */
json_t *broker_list_folder(const struct broker_client *c, const char *tenant,
                           const struct broker_listing *listing, struct err *e);

/*
 * Deletes a file, a link itself, or an empty folder; recursive: a folder with all that is in it.
 * {"deleted": N}, folders counted. ERR_NOT_FOUND; ERR_INVALID for a folder that is not empty
 * without recursive; ERR_LIMIT when there was too much for one call: the rest is still there.
 */
json_t *broker_delete_file(const struct broker_client *c, const char *tenant,
                           const char *conversation, const char *name, bool recursive,
                           struct err *e);

/*
 * Gives a file or folder another name in the same sandbox; folders on the way are made. Its row as
 * in a listing: {name, type, size?, modified, url?}. ERR_NOT_FOUND; ERR_EXISTS when something is
 * there and replace is false, or it cannot be replaced (a folder that is not empty, a folder by a
 * file); ERR_INVALID for a folder into itself, or a way that leads through something else.
 */
json_t *broker_move_file(const struct broker_client *c, const char *tenant,
                         const char *conversation, const char *from, const char *to, bool replace,
                         struct err *e);

/* ---- uploads ---- */

/*
 * A ticket for one file: {"url", "method":"PUT", "maxBytes", "expiresAt" (Unix seconds)}. size:
 * what the file must have, 0: not known yet. New reference, or NULL: ERR_INVALID (the name),
 * ERR_LIMIT (the size).
 */
json_t *broker_create_upload(const struct broker_client *c, const char *tenant,
                             const char *conversation, const char *filename, uint64_t size,
                             struct err *e);

/*
 * Is the ticket good for a body of size bytes? (UINT64_MAX: nobody knows yet.) 0, or -1: ERR_EXISTS
 * (it was used: a link whose signature is right and that has not expired has no other way to be
 * unknown), ERR_LIMIT, ERR_INVALID (the file was announced with another size).
 */
int broker_check_upload(const struct broker_client *c, const char *ticket, uint64_t size,
                        struct err *e);

/* An empty file for a body that the caller streams itself. It has no name: when nobody holds it any
 * more it is gone. The descriptor, or -1. */
int broker_stage_upload(const struct broker_client *c, const char *ticket, struct err *e);

/*
 * The whole body is there: moves it into the sandbox and uses the ticket up. It is the file called
 * nginx_name among those that nginx writes (NULL: none), or the one behind fd that
 * broker_stage_upload gave. {tenant, conversationId, name, size, url, filesExpireAt, notices} (the
 * last two where there is something to say), or NULL with what broker_check_upload says too; the
 * ticket is good for another try then, unless it was used.
 */
json_t *broker_finish_upload(const struct broker_client *c, const char *ticket,
                             const char *nginx_name, int fd, struct err *e);

/*
 * Fetches url by https into the sandbox: the same. filename NULL: the last part of the
 * URL's path. New reference, or NULL: ERR_INVALID (URL, filename), ERR_DENIED (fetching is switched
 * off; an address that is not fetched from), ERR_LIMIT (too large, too slow), ERR_NOT_FOUND (the
 * other server does not answer, or says no), ERR_BUSY. It takes up to five minutes.
 */
json_t *broker_import_url(const struct broker_client *c, const char *tenant,
                          const char *conversation, const char *url, const char *filename,
                          struct err *e);

/* ---- archives ---- */

/*
 * A link at which an archive of a conversation's folder ("": of all) can be fetched; format is a
 * name of sandbox/archive.h. {url, name, format, files, bytes, expiresAt}: how much it would hold
 * now. ERR_NOT_FOUND when there is nothing to pack, ERR_LIMIT when it is too much.
 */
json_t *broker_archive_link(const struct broker_client *c, const char *tenant,
                            const char *conversation, const char *folder, const char *format,
                            struct err *e);

/*
 * Makes the archive that a link's subject (sandbox/link.h) names and hands its bytes to write as
 * they come, a piece at a time. A failure before the first piece is the broker's word (NOT_FOUND,
 * LIMIT…); after it the bytes so far are no whole archive. When write fails, or cancel_fd hangs up,
 * the work ends: ERR_CANCELLED.
 */
int broker_pack(const struct broker_client *c, const char *subject,
                int (*write)(void *ctx, const char *data, size_t len), void *ctx, struct err *e);

struct broker_unpack_want {
    const char *tenant, *conversation;
    const char *archive; /* the name of a file in the sandbox; NULL: archive_fd is it */
    int archive_fd;      /* borrowed */
    const char *folder;  /* below which it goes; "": the sandbox itself */
    bool replace;        /* files of the same names? */
};

#define BROKER_UNPACK_NAMES_MAX 100

/* {files (how many), bytes, names: the first BROKER_UNPACK_NAMES_MAX of them, and filesExpireAt and
 * notices where there is something to say}; failures as sandbox/unpack.h says, and ERR_BUSY. */
json_t *broker_unpack(const struct broker_client *c, const struct broker_unpack_want *want,
                      struct err *e);

/*
 * Deletes a conversation's files, their download links and the kept results of its runs:
 * {"deleted":true,"files":N,"bytes":N}. They are out of everybody's sight when this returns.
 * ERR_BUSY: a program of it runs, or somebody uses it at this moment; ERR_NOT_FOUND: there is
 * nothing. New reference, or NULL.
 */
json_t *broker_delete_conversation(const struct broker_client *c, const char *tenant,
                                   const char *conversation, struct err *e);

#endif
