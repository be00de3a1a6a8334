#include "config.h"

#include "fcgi/oauth/server/attempts.h"

#include "common/rpc/json.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define FREE_TRIES    4
#define WAIT_MAX_S    900
#define FORGET_S      3600
#define ADDRESSES_MAX 256
#define ALL           "*" /* the tries of all addresses in this minute */
#define MINUTE_S      60
#define MINUTE_MAX    30

static json_int_t number(const json_t *attempts, const char *address, const char *name)
{
    return json_get_integer(json_object_get(attempts, address), name, 0);
}

static void note(json_t *attempts, const char *address, json_int_t n, int64_t now)
{
    json_object_set_new(attempts, address,
                        json_pack("{s:I, s:I}", "n", n, "last", (json_int_t)now));
}

/* Drops what is old, and the oldest when there are too many. */
static void sweep(json_t *attempts, int64_t now)
{
    const char *address, *oldest = NULL;
    json_t *entry;
    void *next;

    json_object_foreach_safe(attempts, next, address,
                             entry) if (json_get_integer(entry, "last", 0) + FORGET_S < now)
        json_object_del(attempts, address);
    if (json_object_size(attempts) < ADDRESSES_MAX)
        return;
    json_object_foreach(attempts, address,
                        entry) if (!oldest || number(attempts, address, "last") <
                                                  number(attempts, oldest, "last"))
        oldest = address;
    json_object_del(attempts, oldest);
}

static int64_t wait_after(json_int_t n)
{
    int64_t wait = 1;

    if (n < FREE_TRIES)
        return 0;
    for (; n > FREE_TRIES && wait < WAIT_MAX_S; n--)
        wait *= 2;
    return wait < WAIT_MAX_S ? wait : WAIT_MAX_S;
}

/* What counts as one: an IPv4 address, or a network of 64 bits, which one subscriber has. */
static void network_of(const char *address, char out[INET6_ADDRSTRLEN])
{
    struct in6_addr v6;

    snprintf(out, INET6_ADDRSTRLEN, "%s", address);
    if (inet_pton(AF_INET6, address, &v6) != 1)
        return;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
        inet_ntop(AF_INET, v6.s6_addr + 12, out, INET6_ADDRSTRLEN);
        return;
    }
    memset(v6.s6_addr + 8, 0, 8);
    inet_ntop(AF_INET6, &v6, out, INET6_ADDRSTRLEN);
}

int64_t attempts_begin(json_t *attempts, const char *client, int64_t now)
{
    char address[INET6_ADDRSTRLEN];

    network_of(client, address);
    json_int_t n = number(attempts, address, "n"), all = number(attempts, ALL, "n");
    int64_t minute = number(attempts, ALL, "last"), wait;

    if (minute + MINUTE_S <= now || minute > now) {
        minute = now;
        all = 0;
    }
    wait = number(attempts, address, "last") + wait_after(n) - now;
    if (n >= FREE_TRIES && wait > 0)
        return wait < WAIT_MAX_S ? wait : WAIT_MAX_S; /* the clock may have gone back */
    if (all >= MINUTE_MAX)
        return minute + MINUTE_S - now;
    sweep(attempts, now);
    note(attempts, address, n + 1, now);
    note(attempts, ALL, all + 1, minute);
    return 0;
}

void attempts_forget(json_t *attempts, const char *client)
{
    char address[INET6_ADDRSTRLEN];

    network_of(client, address);
    json_object_del(attempts, address);
    note(attempts, ALL, number(attempts, ALL, "n") - 1, number(attempts, ALL, "last"));
}
