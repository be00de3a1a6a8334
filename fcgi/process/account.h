/* Accounts of the system: who the workers are, and becoming them. */
#ifndef SANDCGI_FCGI_PROCESS_ACCOUNT_H
#define SANDCGI_FCGI_PROCESS_ACCOUNT_H

#include "common/base/err.h"

#include <sys/types.h>

struct account {
    uid_t uid;
    gid_t gid;
};

/* The workers' account: SANDCGI_USER when we are root (required, never root itself), else our own.
 */
int account_of_workers(const char *user, struct account *out, struct err *e);

/* The group's number; "" = our own group. */
int account_group(const char *name, gid_t *out, struct err *e);

/* Gives up root for good, with all groups and any way back (no_new_privs); the process ends with
 * its parent. Without root only the latter two. */
int account_become(const struct account *account, struct err *e);

#endif
