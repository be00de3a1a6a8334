/*
 * The store: objects with a name and content, in a directory or in a bucket of S3, behind the files
 * of this machine (README.md here). It is used by the saver and by the processes that read back,
 * never on a run's way.
 *
 *   sandcgi-store            which store it is
 *   <name>/manifest          a conversation's state: names, attributes and sums (manifest.h)
 *   <name>/<sum>             the content of its files with that SHA-256
 *
 * <name> is the sandbox's, 64 hex digits. No name that a program has chosen is part of a key.
 */
#pragma once

#include "common/store/payload.h"

#define STORE_MANIFEST "manifest"
#define STORE_MARK     "sandcgi-store"
#define STORE_KEY_MAX  160 /* bytes of a key, with its NUL */

struct store;
struct store_settings;

/* What a kind of store can do. Each call ends within a bounded time where the kernel lets it. */
struct store_ops {
    /* Puts an object, in one step: readers see the old one, none or the new one. It has reached the
     * disk, or the server. c->sum is known; c->changed: the content is no longer what it says. */
    int (*put)(struct store *s, const char *key, struct payload *c, struct err *e);
    /* ERR_NOT_FOUND: there is no such object. The caller checks the content. */
    int (*get)(struct store *s, const char *key, struct payload *c, struct err *e);
    /* No error when it is not there. */
    int (*remove)(struct store *s, const char *key, struct err *e);
    void (*free)(struct store *s);
};

struct store {
    const struct store_ops *ops;
};

#define AUTO_STORE AUTO(store_free)

/* *s may be NULL. */
void store_free(struct store **s);

/* "<name>/<object>"; name "": "<object>". */
void store_key(const char *name, const char *object, char out[STORE_KEY_MAX]);
/* The operations. ERR_UNAVAILABLE: the store does not do it now; other errors are those above, or
 * of the content. */
int store_put(struct store *s, const char *key, struct payload *c, struct err *e);
int store_get(struct store *s, const char *key, struct payload *c, struct err *e);
int store_remove(struct store *s, const char *key, struct err *e);
/* The same with texts; ERR_PROTOCOL when one in the store is over out's max. */
int store_put_text(struct store *s, const char *key, struct buf *text, struct err *e);
int store_get_text(struct store *s, const char *key, struct buf *out, struct err *e);
/* Its first bytes, as many as out takes. */
int store_get_first(struct store *s, const char *key, struct buf *out, struct err *e);

/* The kinds. path is absolute; the directory is there. */
struct store *store_folder_new(const char *path, struct err *e);
struct store *store_s3_new(const struct store_settings *s, struct err *e);
/* ERR_INVALID names the setting. */
int store_s3_check(const struct store_settings *s, struct err *e);

#define STORE_S3 "s3://"
