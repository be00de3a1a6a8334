/*
 * Sandbox directories under SANDBOX_ROOT: one per (tenant, conversation), named by an HMAC nobody
 * can guess, mounted at /data in its containers and served by nginx under /files/<name>/. Only the
 * broker uses this module.
 */
#ifndef SANDCGI_SANDBOX_SANDBOX_H
#define SANDCGI_SANDBOX_SANDBOX_H

#include "common/base/auto.h"
#include "common/base/err.h"

#include <sys/types.h>

#define SANDBOX_NAME_LEN 64
#define SANDBOX_ID_MAX   256 /* bytes of a conversation id */

/* The tree and what is needed to name things in it; one per process. */
struct sandbox_root {
    int fd;          /* of SANDBOX_ROOT */
    char *path;      /* as this process sees it */
    char *host_path; /* as the engine's host sees it */
    char *secret;    /* FILE_SECRET */
    char *base_url;  /* PUBLIC_BASE_URL without a trailing slash */
    uid_t uid;       /* owner of sandboxes: the user inside the containers */
    gid_t gid;
};

/*
 * Opens SANDBOX_ROOT (creating it, mode 0711) and makes .staging and .runs (0700). ERR_INVALID with
 * one line that says what to change when it is not a directory, or not writable. Strings are
 * copied.
 */
int sandbox_root_open(struct sandbox_root *out, const char *path, const char *host_path,
                      const char *secret, const char *base_url, uid_t uid, gid_t gid,
                      struct err *e);
void sandbox_root_close(struct sandbox_root *root);

struct sandbox {
    const struct sandbox_root *root; /* borrowed */
    char name[SANDBOX_NAME_LEN + 1];
    int fd; /* O_PATH|O_DIRECTORY is not enough for reading: a real directory descriptor */
};

#define SANDBOX_INIT                                                                               \
    {                                                                                              \
        .fd = -1                                                                                   \
    }
#define AUTO_SANDBOX AUTO(sandbox_close)

/*
 * The sandbox of a conversation, created when absent (mode 0755, owned by root->uid). tenant and
 * conversation are checked: 1..SANDBOX_ID_MAX bytes, valid UTF-8, no control characters
 * (ERR_INVALID naming conversationId). Name = hex of HMAC-SHA-256(secret,
 * len||tenant||len||conversation).
 */
int sandbox_open(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 struct sandbox *out, struct err *e);
void sandbox_close(struct sandbox *sb);

/* Path of the directory on the engine's host. Caller frees. */
char *sandbox_host_path(const struct sandbox *sb);
/* "<base_url>/files/<name>": FILE_BASE_URL, without a trailing slash. Caller frees. */
char *sandbox_url(const struct sandbox *sb);
/* URL of one file; the relative name's bytes are percent-encoded except unreserved characters and
 * '/'. Caller frees. */
char *sandbox_file_url(const struct sandbox *sb, const char *name);

#endif
