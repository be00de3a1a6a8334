/*
 * Types of the sandbox directories, and the names of the directories beside them in SANDBOX_ROOT.
 * Functions are in sandbox.h.
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/err.h"
#include "common/base/tenants.h"
#include "common/sandbox/links/file_link.h"
#include "common/sandbox/links/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* Directories of SANDBOX_ROOT; no container can reach them, but its own in WARM_DIR. */
#define STAGING_DIR  ".staging"
#define STATE_DIR    ".state"
#define TICKET_DIR   ".tickets"
#define TRASH_DIR    ".trash"
#define WARM_DIR     ".pool"
#define SESSIONS_DIR ".sessions" /* the workers' */

#define SANDBOX_NAME_LEN 64

/* 64 lower-case hex digits: what every sandbox's name is. */
static inline bool state_name_ok(const char *name)
{
    return strspn(name, "0123456789abcdef") == SANDBOX_NAME_LEN && !name[SANDBOX_NAME_LEN];
}

/* What conversations may keep, and for how long. 0: no bound. */
struct sandbox_bounds {
    int64_t ttl_s;          /* of a conversation's files, from their last use on */
    uint64_t total_bytes;   /* of all conversations together */
    uint64_t total_percent; /* the same as a share of the file system; made total_bytes when
                               SANDBOX_ROOT is open */
    uint64_t results;       /* bytes of the kept results of one tenant's runs */
    uint64_t bytes, files;  /* of one conversation (quota.h) */
    uint64_t reserve;       /* bytes of the file system that stay free, */
    uint64_t reserve_files; /* and inodes */
};

/* What a sandbox takes on the disk (quota.h). */
struct usage {
    uint64_t bytes;
    uint64_t files; /* every name: folders, links and devices, too */
    bool partial;   /* there is more: folders too deep, or counting ended at a bound */
};

/* What a sandbox takes, and what its file system has left, at one moment. */
struct disk_mark {
    struct usage used, free; /* UINT64_MAX of free: unknown */
};

/* Called between the steps of long work; check: -1 with *e ends it. */
struct sandbox_watch {
    int (*check)(void *ctx, struct err *e);
    void *ctx;
};

/* The user that programs run as, and that owns their files. */
struct sandbox_owner {
    uid_t uid;
    gid_t gid;
};

/* SANDBOX_ROOT and what is needed to name things in it; one per process. */
struct sandbox_root {
    int fd;
    char *path;                 /* as this process sees it */
    char *host_path;            /* as the engine's host sees it */
    char *name_secret;          /* what directories' names are derived from (sandbox.h) */
    char *base_url;             /* PUBLIC_BASE_URL without a trailing slash */
    struct sandbox_owner owner; /* of all sandboxes; uid 0: each has one of its own, */
    uid_t first_uid, last_uid;  /* out of these */
    bool user_quotas;           /* the kernel holds the bounds of each (user_quota.h) */
    struct link_keys link_keys;
    struct file_keys file_keys;
    int64_t url_ttl_s; /* how long a file's URL is valid; 0 (the default): as long as the file is
                          there, and unsigned */
    struct sandbox_bounds bounds;  /* default: none */
    const struct tenants *tenants; /* limits of each (bytes); borrowed, NULL: none */
};

/* Bytes of other contents on their way (scheduler/room_books.h). */
struct coming {
    uint64_t conversation; /* to the sandbox */
    uint64_t tenant;       /* to all of its tenant's */
    uint64_t disk;         /* of all tenants, as far as the disk does not have them yet */
};

struct sandbox {
    const struct sandbox_root *root; /* borrowed */
    char name[SANDBOX_NAME_LEN + 1];
    struct sandbox_owner owner;
    int fd;                /* not O_PATH: the directory can be read */
    bool made;             /* this opening made it */
    uint64_t tenant_bytes; /* limit of all its tenant's conversations; 0: none, */
    uint64_t others_bytes; /* and what the others of them take (state/sizes.h) */
    struct coming coming;  /* zeros: none, or it is not asked for */
};

#define SANDBOX_INIT ((struct sandbox){.fd = -1})
