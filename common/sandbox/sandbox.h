/*
 * Sandbox directories under SANDBOX_ROOT: one per (tenant, conversation), named by an HMAC that
 * cannot be guessed, mounted at /data in its containers and served by nginx under URLs of
 * file_link.h. Only the broker's processes open them.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#include <jansson.h>
#include <sys/stat.h>

#define SANDBOX_ID_MAX 256 /* bytes of a conversation id */

/*
 * Opens SANDBOX_ROOT (creating it; not its parents) and makes .staging, .runs, .sandboxes, .state,
 * .tickets and .trash (0700) and .pool (0711: a rootless engine has to pass through it). The root
 * is closed to all accounts but its owner's and the group web_gid, the web server's (0: none),
 * which passes through it without listing it. host_path NULL or "" is path. ERR_INVALID with one
 * line that says what to change: a path that is relative, not a directory, not writable or writable
 * by all users, a root that this account cannot close, a host_path that the engine cannot bind, a
 * secret under 32 characters, a user that this account cannot give files to. Strings are copied.
 */
int sandbox_root_open(struct sandbox_root *out, const char *path, const char *host_path,
                      const char *secret, const char *base_url, uid_t uid, gid_t gid, gid_t web_gid,
                      struct err *e);
void sandbox_root_close(struct sandbox_root *root);

/* Is a SANDBOX_ROOT still closed as sandbox_root_open has left it? ERR_REFUSED with one line that
 * says what is wrong. */
int sandbox_root_check_access(const char *path, const struct stat *st, gid_t web_gid,
                              struct err *e);

/* Does a SANDBOX_ROOT belong to root or to the account that the server has made its own folders in
 * it with? ERR_REFUSED as above. What cannot be looked at is no error. */
int sandbox_root_check_owner(const char *path, struct err *e);

/*
 * After a change of FILE_SECRET: links made with the one before are valid until then (Unix seconds;
 * the past: they are not). Directories keep the names that they have: the first secret that was
 * replaced goes to .state/name-secret, and names are derived from it from then on.
 */
int sandbox_root_keep_old(struct sandbox_root *root, const char *old_secret, int64_t until,
                          struct err *e);

/* Is it valid UTF-8 without control characters (C0, DEL, C1), as clients' ids and names must be? */
bool sandbox_text_ok(const char *s, size_t len);

#define AUTO_SANDBOX AUTO(sandbox_close)

/*
 * The name of a conversation's sandbox, which need not exist: hex of HMAC-SHA-256(name_secret,
 * len||tenant||len||conversation). tenant and conversation are checked: 1..SANDBOX_ID_MAX bytes,
 * sandbox_text_ok (ERR_INVALID naming conversationId).
 */
int sandbox_name(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 char out[SANDBOX_NAME_LEN + 1], struct err *e);
/* The same of the members "tenant" and "conversationId"; ERR_INVALID when one is missing. */
int sandbox_name_of(const struct sandbox_root *root, const json_t *head,
                    char out[SANDBOX_NAME_LEN + 1], struct err *e);

/*
 * The sandbox of a conversation, created when absent. While a process of the server has it open,
 * sandbox_retire refuses it. Its mode (0755) is repaired after a change by a program. A tree with
 * another owner than the setting's is given to one of its own, unless it is in use. tenant and
 * conversation are checked as by sandbox_name. *out is closed with sandbox_close; it borrows root.
 */
int sandbox_open(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 struct sandbox *out, struct err *e);
/* The same by its name, 64 lower-case hex digits; its conversation is the tenant's. */
int sandbox_open_named(const struct sandbox_root *root, const char *name, const char *tenant,
                       struct sandbox *out, struct err *e);
/* As sandbox_open for one that exists; ERR_NOT_FOUND otherwise (the text says when its files have
 * expired). */
int sandbox_find(const struct sandbox_root *root, const char *tenant, const char *conversation,
                 struct sandbox *out, struct err *e);
/* The same by its name. */
int sandbox_find_named(const struct sandbox_root *root, const char *name, struct sandbox *out,
                       struct err *e);
void sandbox_close(struct sandbox *sb);

/* Does a process of the server have it open? A hint: the answer can change at once. */
bool sandbox_is_held(const struct sandbox_root *root, const char *name);

/* Moves a sandbox to TRASH_DIR or STAGING_DIR (tree.h); its name there is written to out. ERR_BUSY:
 * it is open; ERR_NOT_FOUND. Never waits. */
int sandbox_retire(const struct sandbox_root *root, const char *name, const char *to, char out[],
                   struct err *e);

/* Exchanges a sandbox's directory with the folder of that name in .staging. ERR_BUSY: it is open;
 * ERR_NOT_FOUND; ERR_INVALID: no name that .staging has. Never waits. */
int sandbox_exchange(const struct sandbox_root *root, const char *name, const char *staged,
                     struct err *e);

/* Path of the directory on the engine's host. Caller frees. */
char *sandbox_host_path(const struct sandbox *sb);
#define SANDBOX_URL_PATH_LEN (SANDBOX_NAME_LEN + 1 + FILE_TOKEN_LEN)

/* "<name>/<token>" (file_link.h): only the broker and those who were given a URL know it. Caller
 * frees. */
char *sandbox_url_path(const struct sandbox *sb);
/* The sandbox that a path with this beginning names. ERR_NOT_FOUND: none, or a wrong token. The
 * name alone: it need not exist. */
int sandbox_name_of_url_path(const struct sandbox_root *root, const char *path,
                             char out[SANDBOX_NAME_LEN + 1], struct err *e);
int sandbox_find_url_path(const struct sandbox_root *root, const char *path, struct sandbox *out,
                          struct err *e);
/* A base_url for a client on this machine without a web server: files' URLs are their paths, and
 * there are no other links. */
#define SANDBOX_LOCAL_URLS "file:"
bool sandbox_links_are_local(const struct sandbox_root *root);
/* "<base_url>/files/<name>/<token>": FILE_BASE_URL, without a trailing slash. Caller frees. */
char *sandbox_url(const struct sandbox *sb);
/* URL of one file, signed when root->url_ttl_s is set; the relative name's bytes are
 * percent-encoded except unreserved characters and '/'. Caller frees. */
char *sandbox_file_url(const struct sandbox *sb, const char *name);
