/*
 * The audit log: what changes the server or what it keeps is one line "audit=ACT" of the server's
 * log. A command that an administrator types sends its line to the server that runs. Runs have
 * theirs, too (awaited_run.c).
 */
#pragma once

#include "common/base/log.h"

#include <jansson.h>
#include <sys/types.h>

enum audit_act {
    AUDIT_RUN,
    AUDIT_START,
    AUDIT_START_REFUSED,
    AUDIT_RELOAD,
    AUDIT_RELOAD_REFUSED,
    AUDIT_RESTART,
    AUDIT_RESTART_REFUSED,
    AUDIT_STOP,
    AUDIT_DRAIN,
    AUDIT_TAKE_OVER,
    AUDIT_TOKEN_ADD,
    AUDIT_TOKEN_REVOKE,
    AUDIT_OAUTH_PASSPHRASE,
    AUDIT_OAUTH_CODE,
    AUDIT_OAUTH_REVOKE,
    AUDIT_BACKUP,
    AUDIT_RESTORE,
    AUDIT_PURGE,
    AUDIT_NODES,
    AUDIT_ACTS
};

/* "token-add" */
const char *audit_name(enum audit_act act);

/* A line of this process's log; at level error for an act that was refused. fields: at most
 * AUDIT_FIELDS. pid and uid: who asked for it, the sender of a signal; pid 0: not known. */
#define AUDIT_FIELDS 7
void audit_log(enum audit_act act, const struct log_field *fields, size_t n, pid_t pid, uid_t uid,
               const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Where a command's line goes: to the server that listens at broker, else into the file, else to
 * syslog, and where there is none of these to standard error. */
struct audit_place {
    const char *broker, *log_file; /* NULL or "": none */
    bool json;
};

/* Who types the command: before it gives up its account. */
void audit_note_user(void);
void audit_tell(const struct audit_place *place, enum audit_act act, const struct log_field *fields,
                size_t n, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* In the server: writes the line of a request OP_AUDIT, whose sender is pid and uid. */
int audit_take(const json_t *head, pid_t pid, uid_t uid, struct err *e);
