#include "config.h"

#include "tests/bench/load.h"

#include "common/base/clock.h"
#include "tests/bench/wire.h"

#include <poll.h>

struct lane {
    struct wire wire;
    int64_t sent_us;
};

static void send_next(const struct load *l, struct lane *lane)
{
    lane->sent_us = clock_mono_us();
    wire_send(&lane->wire, l->request->data, l->request->len);
}

/* Takes what has arrived; true when the reply is complete. */
static bool take_reply(struct lane *lane, struct samples *times)
{
    struct wire_reply reply;

    if (!wire_receive(&lane->wire))
        bench_die("the server closed a kept-alive connection");
    size_t total = wire_parse(buf_str(&lane->wire.in), lane->wire.in.len, &reply);
    if (!total)
        return false;
    if (reply.status != 200)
        bench_die("the server answers %d under load", reply.status);
    buf_drop_front(&lane->wire.in, total);
    samples_add(times, (double)(clock_mono_us() - lane->sent_us) / 1000.0);
    return true;
}

double load_run(const struct load *l, struct samples *times)
{
    struct lane lanes[LOAD_CONNECTIONS_MAX];
    struct pollfd polls[LOAD_CONNECTIONS_MAX];
    int n = l->connections, open = n;
    size_t before = times->n;

    for (int i = 0; i < n; i++)
        wire_open(&lanes[i].wire, l->address);
    int64_t began = clock_mono_us(), until = began + (int64_t)l->duration_ms * 1000;
    for (int i = 0; i < n; i++) {
        polls[i] = (struct pollfd){.fd = lanes[i].wire.fd, .events = POLLIN};
        send_next(l, &lanes[i]);
    }
    while (open > 0) {
        if (poll(polls, (nfds_t)n, 10000) == 0)
            bench_die("no reply for 10 s");
        for (int i = 0; i < n; i++) {
            if (!polls[i].revents || !take_reply(&lanes[i], times))
                continue;
            if (clock_mono_us() < until) {
                send_next(l, &lanes[i]);
            } else {
                polls[i].fd = -1;
                open--;
            }
        }
    }
    double seconds = (double)(clock_mono_us() - began) / 1e6;
    for (int i = 0; i < n; i++)
        wire_close(&lanes[i].wire);
    return (double)(times->n - before) / seconds;
}
