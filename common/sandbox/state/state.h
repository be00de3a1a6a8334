/*
 * What is known of a sandbox beside its files: one record per sandbox in .state/<name>.json (.state
 * is made by sandbox_root_open, the rest when it is needed), and one empty file per sandbox in
 * .state/tenants/<tenant's digest>/, so that a tenant's sandboxes are found without looking at
 * everybody's. Only the broker writes and reads them; no container can reach them.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#include <stdint.h>

#define STATE_TENANTS_DIR ".state/tenants"
#define STATE_SIZES_DIR   ".state/sizes"
#define STATE_GONE_DIR    ".state/gone"

#define STATE_FRESH_S       60     /* a record says "last used" to within this (state_fresh_s) */
#define STATE_SANDBOXES_MAX 100000 /* sandboxes of one tenant that a listing looks at */

/* Notes that the sandbox of (tenant, conversation) is used now; makes its record when there is
 * none. */
int state_note_use(const struct sandbox *sb, const char *tenant, const char *conversation,
                   struct err *e);

struct state_record {
    char *tenant;
    char *conversation;
    int64_t created; /* Unix seconds, as is the next */
    int64_t last_used;
};

#define AUTO_STATE_RECORD AUTO(state_record_clear)

/* The record of the sandbox of that name; ERR_NOT_FOUND when there is none or it makes no sense. */
int state_read(const struct sandbox_root *root, const char *name, struct state_record *out,
               struct err *e);
void state_record_clear(struct state_record *r);

struct state_sandbox {
    char name[SANDBOX_NAME_LEN + 1];
    int64_t created;
};

struct state_list {
    struct state_sandbox *items; /* newest first, those of one second by name */
    size_t n;
};

#define AUTO_STATE_LIST AUTO(state_list_clear)

/* The sandboxes of a tenant; empty when it has none. */
int state_list(const struct sandbox_root *root, const char *tenant, struct state_list *out,
               struct err *e);
void state_list_clear(struct state_list *l);

/* The order of the list: < 0 when a comes before b. */
int state_sandbox_compare(const struct state_sandbox *a, const struct state_sandbox *b);

/* To within how many seconds last uses are known: less where files expire soon. */
int64_t state_fresh_s(const struct sandbox_root *root);

/* When the sandbox was last used (Unix seconds): the record's own time, or the directory's when it
 * has no record; -1: there is no such sandbox. */
int64_t state_last_used(const struct sandbox_root *root, const char *name);

/* Whatever is known of a sandbox that is no more. */
void state_forget(const struct sandbox_root *root, const char *name);

/* ---- what it takes: .state/sizes/<name> ---- */

/* Notes a size that was just counted, and forgets it after a change that was not counted. */
void state_note_size(const struct sandbox_root *root, const char *name, const struct usage *u);
void state_forget_size(const struct sandbox_root *root, const char *name);
/* false: unknown. */
bool state_size(const struct sandbox_root *root, const char *name, struct usage *out);

/* ---- tombstone .state/gone/<name>, empty: tells the next caller that the files expired ---- */

#define STATE_GONE_S (30 * 86400) /* how long that is remembered */

void state_mark_expired(const struct sandbox_root *root, const char *name);
/* When they went, in Unix seconds; 0: they did not. */
int64_t state_expired_at(const struct sandbox_root *root, const char *name);
/* The same; from now on they did not. */
int64_t state_take_expired(const struct sandbox_root *root, const char *name);
/* Forgets what was long ago, and notes and records of sandboxes that are not there. */
void state_tidy(const struct sandbox_root *root, int64_t now_unix);
