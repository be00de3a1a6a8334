/* Of which addresses does this container's network let packets pass? For the server's own test of
 * its network. */
#include "runners/common/entry.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_PORT  9 /* nothing listens there: a host that is reached says so */
#define TARGETS_MAX 32
#define PROBE_MS    9000
#define RESEND_MS   1100 /* the kernel sends one address six refusals at once, then one a second */
#define QUIET_MAX   3    /* rounds without an answer: what is silent by then stays so */

/* What became of a packet. */
static const char prohibited[] = "prohibited";   /* a firewall said that it is not allowed */
static const char answered[] = "answered";       /* it arrived */
static const char unreachable[] = "unreachable"; /* something else came back */
static const char silent[] = "silent";
static const char no_route[] = "none"; /* it could not be sent */

struct target {
    const char *name; /* as in the arguments */
    char address[INET6_ADDRSTRLEN + IF_NAMESIZE];
    int fd;
    const char *word;
};

struct targets {
    struct target items[TARGETS_MAX];
    size_t n;
};

/* "10.0.0.1", "fe80::1%eth0"; returns the length of *out, 0: it is no address. */
static socklen_t address_parse(const char *text, struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (void *)out;
    struct sockaddr_in6 *v6 = (void *)out;
    size_t len = strcspn(text, "%");
    char bare[INET6_ADDRSTRLEN];

    memset(out, 0, sizeof(*out));
    snprintf(bare, sizeof(bare), "%.*s", (int)len, text);
    if (inet_pton(AF_INET, bare, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(PROBE_PORT);
        return sizeof(*v4);
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(PROBE_PORT);
    v6->sin6_scope_id = text[len] ? if_nametoindex(text + len + 1) : 0;
    return inet_pton(AF_INET6, bare, &v6->sin6_addr) == 1 ? sizeof(*v6) : 0;
}

static void target_open(struct target *t)
{
    struct sockaddr_storage to;
    socklen_t len = address_parse(t->address, &to);
    bool v4 = to.ss_family == AF_INET;
    int on = 1;

    t->fd = -1;
    t->word = no_route;
    if (len == 0)
        return;
    t->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->fd >= 0 && connect(t->fd, (struct sockaddr *)&to, len) == 0 &&
        setsockopt(t->fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVERR : IPV6_RECVERR, &on,
                   sizeof(on)) == 0)
        t->word = silent;
}

static void target_add(struct targets *all, const char *name, const char *address)
{
    struct target *t = &all->items[all->n];

    if (all->n == TARGETS_MAX)
        return;
    *t = (struct target){.name = name};
    snprintf(t->address, sizeof(t->address), "%s", address);
    target_open(t);
    all->n++;
}

/* Does it belong to a network of this container? Then no rule of routed packets sees it. */
static bool on_own_link(const struct sockaddr_in *to)
{
    struct ifaddrs *list;
    bool found = false;

    if (to->sin_family != AF_INET || getifaddrs(&list) != 0)
        return false;
    for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
        const struct sockaddr_in *own = (const void *)a->ifa_addr;
        const struct sockaddr_in *mask = (const void *)a->ifa_netmask;

        found |= own && mask && own->sin_family == AF_INET &&
                 ((own->sin_addr.s_addr ^ to->sin_addr.s_addr) & mask->sin_addr.s_addr) == 0;
    }
    freeifaddrs(list);
    return found;
}

/* The 8 hex digits at p; what is less is 0. */
static uint32_t hex32(const char *p)
{
    uint32_t value = 0;

    for (int i = 0; i < 8; i++) {
        if (!isxdigit((unsigned char)p[i]))
            return 0;
        value = value << 4 | (uint32_t)(p[i] <= '9' ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
    }
    return value;
}

/* The default route's, or "-", to which there is no route. */
static void gateway_add(struct targets *all, const char *name)
{
    char line[256], address[INET_ADDRSTRLEN] = "-";
    FILE *routes = fopen("/proc/net/route", "re");

    while (routes && fgets(line, sizeof(line), routes)) { /* interface, destination, gateway, … */
        const char *to = strstr(line, "\t00000000\t");
        uint32_t through = to ? hex32(to + 10) : 0;

        if (through != 0)
            inet_ntop(AF_INET, &through, address, sizeof(address));
    }
    if (routes)
        fclose(routes);
    target_add(all, name, address);
}

static const char *word_of(const struct sock_extended_err *why)
{
    bool v4 = why->ee_origin == SO_EE_ORIGIN_ICMP && why->ee_type == 3;
    bool v6 = why->ee_origin == SO_EE_ORIGIN_ICMP6 && why->ee_type == 1;

    if (why->ee_origin == SO_EE_ORIGIN_LOCAL) /* no neighbour answers, perhaps not yet */
        return silent;
    if ((v4 && why->ee_code == 13) || (v6 && why->ee_code == 1))
        return prohibited;
    return (v4 && why->ee_code == 3) || (v6 && why->ee_code == 4) ? answered : unreachable;
}

/* No packet to the container's own network is routed. When no container there has the address, the
 * engine's firewall is not asked: that says nothing about its rules. */
static const char *word_of_link(const struct target *t, const char *word)
{
    struct sockaddr_storage to;

    return word == unreachable && strcmp(t->name, "gateway") != 0 &&
                   address_parse(t->address, &to) > 0 && on_own_link((const void *)&to)
               ? no_route
               : word;
}

static void target_read(struct target *t)
{
    union {
        char room[512];
        struct cmsghdr align;
    } control;
    char data[64];
    struct iovec io = {.iov_base = data, .iov_len = sizeof(data)};
    struct msghdr m = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};

    if (recvmsg(t->fd, &m, MSG_ERRQUEUE) < 0) {
        if (recv(t->fd, data, sizeof(data), 0) >= 0)
            t->word = answered;
        return;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            t->word = word_of_link(
                t, word_of((const struct sock_extended_err *)(const void *)CMSG_DATA(c)));
}

/* Sends to all that are silent, and takes in what comes back until at_ms. How many are silent. */
static size_t round_of(struct targets *all, int64_t at_ms)
{
    struct pollfd p[TARGETS_MAX];

    for (size_t i = 0; i < all->n; i++)
        if (all->items[i].word == silent)
            (void)!send(all->items[i].fd, "?", 1, 0); /* what fails is read below */
    for (;;) {
        size_t n_silent = 0;

        for (size_t i = 0; i < all->n; i++) {
            bool waits = all->items[i].word == silent;

            p[i] = (struct pollfd){.fd = waits ? all->items[i].fd : -1, .events = POLLIN};
            n_silent += waits;
        }
        if (n_silent == 0 || clock_ms() >= at_ms)
            return n_silent;
        poll(p, all->n, poll_timeout(at_ms));
        for (size_t i = 0; i < all->n; i++)
            if (p[i].revents)
                target_read(&all->items[i]);
    }
}

/* Without targets: this container's own addresses. */
static int print_own(void)
{
    char text[INET6_ADDRSTRLEN];
    struct ifaddrs *list;

    if (getifaddrs(&list) != 0) {
        entry_error(errno, "addresses");
        return 1;
    }
    for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
        const struct sockaddr_in *v4 = (const void *)a->ifa_addr;
        const struct sockaddr_in6 *v6 = (const void *)a->ifa_addr;

        if (!a->ifa_addr || a->ifa_flags & IFF_LOOPBACK)
            continue;
        if (v4->sin_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)))
            printf("%s\n", text);
        else if (v6->sin6_family == AF_INET6 &&
                 inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)))
            printf("%s%s%s\n", text, v6->sin6_scope_id ? "%" : "",
                   v6->sin6_scope_id ? a->ifa_name : "");
    }
    freeifaddrs(list);
    return 0;
}

int probe_main(int n, char *const *names)
{
    struct targets all = {.n = 0};
    int64_t end_ms = clock_ms() + PROBE_MS;
    size_t n_silent = TARGETS_MAX + 1;

    if (n == 0)
        return print_own();
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], "gateway") == 0)
            gateway_add(&all, names[i]);
        else
            target_add(&all, names[i], names[i]);
    for (int quiet = 0; quiet < QUIET_MAX && n_silent > 0 && clock_ms() < end_ms;) {
        size_t before = n_silent;

        n_silent = round_of(&all, clock_ms() + RESEND_MS);
        quiet = n_silent < before ? 0 : quiet + 1;
    }
    for (size_t i = 0; i < all.n; i++)
        printf("%s %s %s\n", all.items[i].name, all.items[i].word, all.items[i].address);
    return 0;
}
