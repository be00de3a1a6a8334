/*
 * Sandbox directories under SANDBOX_ROOT: one per (tenant, conversation), named by an HMAC nobody
 * can guess, mounted at /data in its containers and served by nginx under /files/<name>/. The
 * broker's processes open them; the rest of the program uses the types and limits of this folder,
 * links, and what needs no root (media, local).
 */
#ifndef SANDCGI_SANDBOX_SANDBOX_H
#define SANDCGI_SANDBOX_SANDBOX_H

#include "common/sandbox/sandbox_root.h"

#define SANDBOX_ID_MAX 256 /* bytes of a conversation id */

/*
 * Opens SANDBOX_ROOT (creating it, mode 0711; not its parents) and makes .staging, .runs,
 * .sandboxes, .state, .tickets and .trash (0700) and .pool (0711: a rootless engine has to pass
 * through it). host_path NULL or "" is path. ERR_INVALID with one line that says what to change: a
 * path that is relative, not a directory, not writable or writable by everybody, a colon in
 * host_path (the engine could not bind it), a secret under 32 characters, a user this account
 * cannot give files to. Strings are copied.
 */
int sandbox_root_open(struct sandbox_root *out, const char *path, const char *host_path,
                      const char *secret, const char *base_url, uid_t uid, gid_t gid,
                      struct err *e);
void sandbox_root_close(struct sandbox_root *root);

/* Valid UTF-8 without control characters (C0, DEL, C1): what ids and names from clients have to be.
 */
bool sandbox_text_ok(const char *s, size_t len);

#define AUTO_SANDBOX AUTO(sandbox_close)

/*
 * The name of a conversation's sandbox, whether that exists or not: hex of HMAC-SHA-256(secret,
 * len||tenant||len||conversation). tenant and conversation are checked: 1..SANDBOX_ID_MAX bytes,
 * sandbox_text_ok (ERR_INVALID naming conversationId).
 */
int sandbox_name(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 char out[SANDBOX_NAME_LEN + 1], struct err *e);

/*
 * The sandbox of a conversation, created when absent. While it is open, by whichever of our
 * processes, it is not taken away (sandbox_retire). Its owner (root->uid) and mode (0755) are
 * mended when a program changed the mode, or a crash left it half made. tenant and conversation are
 * checked as by sandbox_name. *out is to be closed with sandbox_close; it borrows root.
 */
int sandbox_open(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 struct sandbox *out, struct err *e);
/* The same for one that exists; ERR_NOT_FOUND otherwise, and nothing is made: the text says so when
 * its files have expired. */
int sandbox_find(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 struct sandbox *out, struct err *e);
/* The same by its name, 64 lower-case hex digits. */
int sandbox_find_named(const struct sandbox_root *root, const char *name, struct sandbox *out,
                       struct err *e);
void sandbox_close(struct sandbox *sb);

/* Does one of our processes have it open? For those who plan: it may be otherwise at once. */
bool sandbox_is_held(const struct sandbox_root *root, const char *name);

/*
 * Takes a sandbox away, in one step: it becomes a folder of .trash (trash.h), whose name is written
 * to out_trash. ERR_BUSY: somebody has it open; ERR_NOT_FOUND. Never waits.
 */
int sandbox_retire(const struct sandbox_root *root, const char *name, char out_trash[],
                   struct err *e);

/* Path of the directory on the engine's host. Caller frees. */
char *sandbox_host_path(const struct sandbox *sb);
/* "<base_url>/files/<name>": FILE_BASE_URL, without a trailing slash. Caller frees. */
char *sandbox_url(const struct sandbox *sb);
/* URL of one file, signed when root->url_ttl_s says so; the relative name's bytes are
 * percent-encoded except unreserved characters and '/'. Caller frees. */
char *sandbox_file_url(const struct sandbox *sb, const char *name);

#endif
