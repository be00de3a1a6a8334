/*
 * Who else asked for runs lately: a tenant that is alone may have the whole engine to itself, one
 * that has company leaves the others room to be served at once. Plain data; the clock is a
 * parameter. Private to common/broker.
 */
#ifndef SANDCGI_BROKER_COMPANY_H
#define SANDCGI_BROKER_COMPANY_H

#include <stdbool.h>
#include <stdint.h>

#define COMPANY_MS 10000 /* who asked longer ago is company no more */

/* All zero: nobody asked yet. */
struct company {
    struct {
        char *tenant; /* owned; NULL: none */
        int64_t asked_ms;
    } latest[2]; /* of different tenants, the latest first */
};

void company_clear(struct company *c);

/* The tenant asks for a run. */
void company_note(struct company *c, const char *tenant, int64_t now_ms);

/* Has another tenant asked within COMPANY_MS? */
bool company_has_others(const struct company *c, const char *tenant, int64_t now_ms);

#endif
