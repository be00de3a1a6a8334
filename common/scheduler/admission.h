/*
 * Which run may go now: places per server, tenant and conversation, and a queue that is fair
 * between tenants (each in turn, first come first served within one). Plain data; time comes in as
 * a parameter; tickets are opaque pointers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct admission_limits {
    size_t server;       /* running at once */
    size_t tenant;       /* of one tenant, at most its share of server; 0: its share; that of server
                            or more: all */
    size_t conversation; /* of one conversation; 0: no other limit */
    size_t queue;        /* waiting, of one tenant its share */
    /* The tenant's programs that take no place, but count in admission_want.most; NULL: none. */
    size_t (*elsewhere)(const void *ctx, const char *tenant);
    /* Is there memory for one more? NULL: yes. */
    bool (*has_memory)(const void *ctx);
    const void *ctx;
};

struct admission_want {
    const char *tenant;
    const char *sandbox_dir; /* the sandbox's name */
    bool background;
    size_t most; /* running at once, of this tenant; 0: no other limit */
    int64_t now_ms;
    void *ticket; /* of the queued run; not NULL */
};

#define ADMISSION_RECENT_MS 10000   /* for so long a tenant counts as active after it asked */
#define ADMISSION_KNOWN_MS  3600000 /* for so long the last place of few is kept free for it */

enum admission_answer { ADMISSION_GO, ADMISSION_WAIT, ADMISSION_BUSY };

struct admission;

struct admission *admission_new(const struct admission_limits *limits);
void admission_free(struct admission *a);

/*
 * GO: the place is taken (give it back with admission_release). WAIT: *out_position is from 1.
 * Places and queue leave room for other tenants (share.h). BUSY: *out_retry_ms is estimated from
 * how fast places came free lately, *out_position is how many wait. Both are 0 where they mean
 * nothing.
 */
enum admission_answer admission_ask(struct admission *a, const struct admission_want *want,
                                    size_t *out_position, int64_t *out_retry_ms);

/* A run is over. Then, and when a program elsewhere is over, call admission_next until NULL: each
 * ticket returned has a place now. */
void admission_release(struct admission *a, const char *tenant, const char *sandbox_dir,
                       bool background, int64_t now_ms);
void *admission_next(struct admission *a);

/* Its caller has left, or its time is over. */
void admission_forget(struct admission *a, const void *ticket);

/* A run that goes on from a broker of before takes its place without asking. */
void admission_adopt(struct admission *a, const char *tenant, const char *sandbox_dir,
                     bool background);

/* Has another tenant asked within ADMISSION_RECENT_MS? A tenant that is alone may have all starts.
 */
bool admission_contended(const struct admission *a, const char *tenant, int64_t now_ms);

size_t admission_running(const struct admission *a);
size_t admission_waiting(const struct admission *a);
/* The tenant's, those elsewhere included. */
size_t admission_running_of(const struct admission *a, const char *tenant);
/* Of the tenant's runs in the background: how many run or wait. */
size_t admission_background(const struct admission *a, const char *tenant);
/* When a run that is refused now should be tried again. */
int64_t admission_retry_ms(const struct admission *a);
