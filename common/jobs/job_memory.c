#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/base/purpose.h"
#include "common/rpc/json.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 2048 /* of a file of /proc */
#define COMM_MAX 64

struct tally {
    const struct job_world *world;
    uint64_t bytes[PURPOSE_COUNT];
};

/* ---- containers ---- */

static enum purpose purpose_of_container(const struct children *children, const char *run_id)
{
    for (const struct child *c = NULL; (c = children_next(children, c));) {
        if (strcmp(c->container_id, run_id) != 0)
            continue;
        return c->kind == CHILD_PSANDBOX   ? PURPOSE_SANDBOX
               : c->state == CHILD_RUNNING ? PURPOSE_RUN
                                           : PURPOSE_WAITING;
    }
    return PURPOSE_OTHER;
}

static void add_container(void *ctx, const char *run_id, uint64_t bytes)
{
    struct tally *t = ctx;

    t->bytes[purpose_of_container(t->world->children, run_id)] += bytes;
}

static void add_containers(struct tally *t)
{
    const struct broker_config *config = t->world->config;
    struct engine_address address = config->engine;
    struct err e = ERR_INIT;

    address.facts = t->world->runners->facts;
    struct engine *engine = docker_engine_new(&address, &e);
    if (!engine || engine->ops->memory(engine, config->instance, add_container, t, &e) < 0)
        log_debug("memory of containers: %s", e.text);
    if (engine)
        engine->ops->free(engine);
}

/* ---- processes ---- */

/* The beginning of /proc/PID/FILE; false: there is none, or we may not. */
static bool read_proc(int proc_fd, const char *pid, const char *file, char out[TEXT_MAX])
{
    char path[64];

    snprintf(path, sizeof path, "%.20s/%s", pid, file);
    AUTO_FD int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, TEXT_MAX - 1);
    out[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

/* What a process of this server is for, by "PID (NAME) STATE PPID PGRP …"; PURPOSE_COUNT: it is
 * another's. Supervisors that have outlived a broker have no parent of ours, but are of the group.
 */
static enum purpose purpose_of_stat(const char *stat)
{
    const char *name = strchr(stat, '('), *end = strrchr(stat, ')'), *group = end;
    char comm[COMM_MAX];
    uint64_t number;

    for (int blanks = 0; group && blanks < 3; blanks++)
        group = strchr(group + 1, ' ');
    if (!name || !group || parse_leading_u64(group + 1, &number) < 0 ||
        number != (uint64_t)getpgrp())
        return PURPOSE_COUNT;
    snprintf(comm, sizeof comm, "%.*s", (int)(end - name - 1), name + 1);
    return purpose_of_process(comm);
}

/* Shared pages count in parts, so that the sum is what all of them take. */
static uint64_t share_of(const char *rollup)
{
    static const char key[] = "\nPss:";
    const char *line = strstr(rollup, key);
    uint64_t kib;

    if (!line || parse_leading_u64(line + strlen(key) + strspn(line + strlen(key), " "), &kib) < 0)
        return 0;
    return kib * 1024;
}

static void add_processes(struct tally *t)
{
    AUTO_DIR DIR *proc = opendir("/proc");
    char text[TEXT_MAX];

    for (const struct dirent *entry; proc && (entry = readdir(proc));) {
        if (!isdigit((unsigned char)*entry->d_name) ||
            !read_proc(dirfd(proc), entry->d_name, "stat", text))
            continue;
        enum purpose purpose = purpose_of_stat(text);
        if (purpose != PURPOSE_COUNT && read_proc(dirfd(proc), entry->d_name, "smaps_rollup", text))
            t->bytes[purpose] += share_of(text);
    }
}

json_t *job_memory_new(const struct job_world *world)
{
    struct tally t = {.world = world};
    json_t *object = json_object();

    add_processes(&t);
    if (!*world->runners->engine_error)
        add_containers(&t);
    for (enum purpose p = 0; p < PURPOSE_COUNT; p++)
        if (t.bytes[p] > 0)
            json_object_set_new(object, purpose_name(p), json_integer((json_int_t)t.bytes[p]));
    return object;
}
