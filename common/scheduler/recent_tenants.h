/*
 * Who else asked for runs lately: a tenant that is alone may have the whole engine to itself, one
 * that has recent_tenants leaves the others room to be served at once. Plain data; the clock is a
 * parameter. Private to common/broker.
 */
#ifndef SANDCGI_SCHEDULER_RECENT_TENANTS_H
#define SANDCGI_SCHEDULER_RECENT_TENANTS_H

#include <stdbool.h>
#include <stdint.h>

#define RECENT_TENANTS_MS 10000 /* who asked longer ago is recent_tenants no more */

/* All zero: nobody asked yet. */
struct recent_tenants {
    struct {
        char *tenant; /* owned; NULL: none */
        int64_t asked_ms;
    } latest[2]; /* of different tenants, the latest first */
};

void recent_tenants_clear(struct recent_tenants *c);

/* The tenant asks for a run. */
void recent_tenants_note(struct recent_tenants *c, const char *tenant, int64_t now_ms);

/* Has another tenant asked within RECENT_TENANTS_MS? */
bool recent_tenants_has_others(const struct recent_tenants *c, const char *tenant, int64_t now_ms);

#endif
