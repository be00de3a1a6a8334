#include "config.h"

#include "common/broker/warm_pool.h"

#include "common/base/log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CPU_CHECK_MS     500
#define CPU_PRESSURE_MAX 10 /* percent of the time that some task waited for a CPU */

/* ---- is the machine idle? ---- */

/* The whole number at the front of text; returns what follows it, NULL when there is none. */
static const char *take_number(const char *text, uint64_t *out)
{
    size_t len = strspn(text, "0123456789");

    *out = 0;
    if (len == 0 || len > 18)
        return NULL;
    for (size_t i = 0; i < len; i++)
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    return text + len;
}

int cpu_idle_by_pressure(struct cpu_pressure *cpu, const char *pressure, int64_t now_ms)
{
    static const char start[] = "some ", name[] = " total=";
    const char *total = strncmp(pressure, start, sizeof(start) - 1) == 0 ? strstr(pressure, name)
                                                                         : NULL;
    uint64_t stalled_us;

    if (!total || !take_number(total + sizeof(name) - 1, &stalled_us))
        return -1;
    const uint64_t since_us = stalled_us - cpu->stalled_us;
    const int64_t passed_ms = now_ms - cpu->checked_ms;
    const bool first = !cpu->checked || stalled_us < cpu->stalled_us || passed_ms <= 0;
    cpu->stalled_us = stalled_us;
    if (first)
        return 0;
    return since_us / 10 < (uint64_t)passed_ms * CPU_PRESSURE_MAX;
}

int cpu_idle_by_stat(struct cpu_pressure *cpu, const char *stat)
{
    uint64_t ticks[8] = {0}; /* user nice system idle iowait irq softirq steal */
    uint64_t busy = 0, total = 0;

    if (strncmp(stat, "cpu ", 4) != 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(ticks); i++) {
        stat += strcspn(stat, " \n");
        stat += strspn(stat, " ");
        if (!take_number(stat, &ticks[i]))
            return -1;
        total += ticks[i];
        busy += i == 3 || i == 4 ? 0 : ticks[i];
    }
    const uint64_t busy_since = busy - cpu->busy, since = total - cpu->total;
    const bool first = cpu->total == 0;
    cpu->busy = busy;
    cpu->total = total;
    if (first || since == 0 || busy_since > since)
        return -1;
    return busy_since * 2 < since;
}

/* The beginning of a file of the kernel's; false when it cannot be read. */
static bool read_front(const char *path, char *out, size_t size)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    if (n <= 0)
        return false;
    out[n] = '\0';
    return true;
}

bool cpu_pressure_is_idle(struct cpu_pressure *cpu, int64_t now_ms)
{
    char text[512];
    int answer = -1;

    if (cpu->checked && now_ms - cpu->checked_ms < CPU_CHECK_MS)
        return cpu->idle;
    if (read_front("/proc/pressure/cpu", text, sizeof(text)))
        answer = cpu_idle_by_pressure(cpu, text, now_ms);
    if (answer < 0 && read_front("/proc/stat", text, sizeof(text)))
        answer = cpu_idle_by_stat(cpu, text);
    cpu->checked = true;
    cpu->checked_ms = now_ms;
    cpu->idle = answer > 0;
    return cpu->idle;
}

/* ---- actions of the pool ---- */

static void start_failed(struct warm_pool *w, const struct pool_action *action, const struct err *e)
{
    log_error("cannot start a warm container: %s", e->text);
    pool_note_failed_start(w->pool, action->runner->language, clock_mono_ms());
}

static void start_on_warm_dir(struct warm_pool *w, const struct pool_action *action)
{
    const struct sandbox_root *root = w->spawner->root;
    char name[WARM_DIR_NAME_LEN + 1];
    const struct supervisor_start wanted = {.runner = action->runner,
                                            .reuse = pool_reuses(w->pool, action->runner),
                                            .warm_dir = name,
                                            .call = {.connection = -1}};
    struct err e = ERR_INIT;

    if (warm_dir_make(root, name, &e) < 0) {
        start_failed(w, action, &e);
    } else if (!spawn_supervisor(w->spawner, CHILD_SUPERVISOR, &wanted, &e)) {
        start_failed(w, action, &e);
        warm_dir_remove(root, name);
    }
}

static void start_on_sandbox(struct warm_pool *w, const struct pool_action *action)
{
    const struct supervisor_start wanted = {
        .runner = action->runner,
        .reuse = pool_reuses(w->pool, action->runner),
        .call = {.connection = -1, .sandbox_dir = action->sandbox_dir}};
    struct err e = ERR_INIT;

    if (faccessat(w->spawner->root->fd, action->sandbox_dir, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        pool_forget_sandbox(w->pool, action->sandbox_dir);
    else if (!spawn_supervisor(w->spawner, CHILD_SUPERVISOR, &wanted, &e))
        start_failed(w, action, &e);
}

void warm_pool_tick(struct warm_pool *w, size_t queued)
{
    const struct spawner *s = w->spawner;
    int64_t now_ms = clock_mono_ms(), at_ms = -1;
    const struct pool_now now = {
        .now_ms = now_ms,
        .engine_ok = !*s->runners->engine_error,
        .machine_idle = cpu_pressure_is_idle(&w->cpu, now_ms),
        .waiting_callers = queued,
    };
    struct pool_action action;
    struct err e = ERR_INIT;
    bool started = false;

    while (!started && pool_next(w->pool, s->children, &now, &action, &at_ms)) {
        switch (action.what) {
        case POOL_START_ON_WARM_DIR:
            start_on_warm_dir(w, &action);
            started = true;
            break;
        case POOL_START_ON_SANDBOX:
            start_on_sandbox(w, &action);
            started = true;
            break;
        case POOL_PRELOAD:
            action.child->preload_asked = true;
            if (child_io_tell(action.child, action.fast ? "preload_fast" : "preload", &e) < 0)
                log_debug("a warm container is gone: %s", e.text);
            break;
        case POOL_END:
            child_io_release(s->io, action.child);
            break;
        }
    }
    /* A start takes a moment: callers come before the next one. */
    w->due = started     ? deadline_in_ms(0)
             : at_ms < 0 ? DEADLINE_NEVER
                         : (struct deadline){.at_ms = at_ms};
}

void warm_pool_release(struct warm_pool *w, const char *sandbox_dir)
{
    const struct spawner *s = w->spawner;

    for (struct child *c = NULL; (c = children_next(s->children, c));)
        if (child_is_warm(c) && (!sandbox_dir || strcmp(c->sandbox_dir, sandbox_dir) == 0))
            child_io_release(s->io, c);
    if (sandbox_dir)
        pool_forget_sandbox(w->pool, sandbox_dir);
}
