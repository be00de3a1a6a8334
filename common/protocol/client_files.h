/* The worker's side of the broker's operations on the files of one sandbox; see client.h. */
#ifndef SANDCGI_PROTOCOL_CLIENT_FILES_H
#define SANDCGI_PROTOCOL_CLIENT_FILES_H

#include "common/protocol/client_runs.h"

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

#endif
