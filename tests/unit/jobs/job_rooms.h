/*
 * The main process's side of a job's room: the real one, in a thread, while a job is at work. What
 * is on its way besides is the test's.
 */
#pragma once

#include "tests/unit/unit.h"

#include "common/broker/rooms.h"
#include "common/jobs/job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct job_rooms {
    struct loop loop;
    struct rooms rooms;
    atomic_bool over;
    pthread_t thread;
};

static inline void job_rooms_open(struct job_rooms *j, const struct sandbox_root *root)
{
    struct err e = ERR_INIT;

    *j = (struct job_rooms){.loop = LOOP_INIT};
    assert_int_equal(loop_init(&j->loop, j, &e), 0);
    j->rooms = (struct rooms){.loop = &j->loop, .root = root};
}

static inline void job_rooms_close(struct job_rooms *j)
{
    rooms_clear(&j->rooms);
    loop_clear(&j->loop);
}

/* What has come until now. */
static inline void job_rooms_settle(struct job_rooms *j)
{
    struct err e = ERR_INIT;

    while (loop_wait(&j->loop, deadline_in_ms(0), NULL, &e) > 0)
        ;
}

static inline void *job_rooms_serve(void *ctx)
{
    struct job_rooms *j = ctx;
    struct err e = ERR_INIT;

    while (!atomic_load(&j->over))
        loop_wait(&j->loop, deadline_in_ms(1), NULL, &e);
    return NULL;
}

/* job_main; the socket of its room is closed as by the end of its process. */
static inline void job_rooms_run(struct job_rooms *j, const struct job_world *world,
                                 struct job_call call)
{
    struct err e = ERR_INIT;

    job_rooms_settle(j);
    call.room_fd = op_brings_content(op_of(call.head)) ? rooms_open(&j->rooms, &e) : -1;
    atomic_store(&j->over, false);
    assert_int_equal(pthread_create(&j->thread, NULL, job_rooms_serve, j), 0);
    job_main(world, &call);
    atomic_store(&j->over, true);
    pthread_join(j->thread, NULL);
    job_rooms_settle(j);
}
