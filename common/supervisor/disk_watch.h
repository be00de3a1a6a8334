/*
 * Watches what the programs of a sandbox take on the disk, while they run. At least every
 * DISK_LOOK_MS it looks at what the file system has left; the faster that falls, the sooner again.
 * When it fell by what the sandbox may still take, a child process counts the sandbox's files and
 * what its programs hold (held.h).
 */
#pragma once

#include "common/sandbox/snapshot.h"
#include "common/supervisor/side_process.h"

#define DISK_LOOK_MS  500
#define DISK_LEAST_MS 20 /* between looks, and before the first */

struct disk_watch {
    struct loop *loop;             /* borrowed, as the next */
    const struct sandbox *sandbox; /* NULL: it does not watch */
    struct snapshot then;          /* the last count that was within the bounds; without items */
    struct usage free;             /* the most that the disk had since */
    uint64_t left;                 /* bytes that it had at the last look, */
    int64_t looked_ms;             /* and when that was */
    struct deadline next;          /* look */
    bool count;                    /* the next look counts in any case */
    bool unexplained;              /* so the last count was (see note_unexplained) */
    bool unseen;                   /* it was logged that no process is seen */
    struct side_process counter;
    int64_t began_ms; /* its count */
    struct err over;  /* what was too much at the last count; ERR_NONE: nothing */
};

/* before: the files when the programs begin. */
void disk_watch_begin(struct disk_watch *w, struct loop *loop, const struct sandbox *sandbox,
                      const struct snapshot *before);
/* Looks when that is due. Returns when to call it again. */
struct deadline disk_watch_tick(struct disk_watch *w);
/* Something is done about what was too much: it counts again at the next look. */
void disk_watch_again(struct disk_watch *w);
/* When to look again: room bytes may still go; so many were lost in the time since the last look.
 */
int64_t disk_watch_pause_ms(uint64_t room, uint64_t lost, int64_t took_ms);
/* Idempotent, and for a watch of zeros, too. */
void disk_watch_end(struct disk_watch *w);
