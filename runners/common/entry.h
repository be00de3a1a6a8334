/*
 * The entry program of our runner images: PID 1 of a container, between the server's attach stream
 * and the program.
 *
 * It speaks sandbox.protocol=1 (runners/README.md): an envelope on its stdin says what to run,
 * frames on its stdout carry what the program prints, a report as the last frame says how it ended.
 * Its stderr carries only its own failures.
 *
 * It is also compiled without configure (runners/build.sh), so there is no config.h and nothing of
 * common/ in here; it is linked statically, since it has to run in any image. One process, no
 * threads, memory that does not grow with output.
 */
#ifndef SANDCGI_RUNNERS_ENTRY_H
#define SANDCGI_RUNNERS_ENTRY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Exit status when the entry program itself failed; its reason is one line on stderr, and no report
 * is sent. */
#define ENTRY_FAILED 125

/* Bounds of one envelope; the server's own limits are lower. */
#define ENVELOPE_MAX       (64u << 20) /* all payloads together */
#define ENVELOPE_ITEMS_MAX 4096        /* arguments plus environment entries */
#define ENVELOPE_TEXT_MAX  (4u << 20)  /* bytes of arguments plus environment */

/* Payload bytes of one frame on our stdout. */
#define FRAME_MAX 65536

/* envelope.c: what to run. Strings are owned by the envelope, which lives as long as the process.
 */
struct envelope {
    int input_fd;     /* the program's stdin: a memfd at offset 0, or -1 for none */
    uint64_t hard_ms; /* 'T', 0 = none; counted from read_at_ms */
    int64_t read_at_ms;
    char **args; /* n_args + NULL */
    size_t n_args;
    char **env; /* NAME=value, n_env */
    size_t n_env;
};

enum envelope_end { ENVELOPE_GO, ENVELOPE_GONE, ENVELOPE_BAD };

/*
 * Reads records from fd up to 'G'. The code goes straight into the file script (created, mode
 * 0600), the input into a memfd, so a large one is never held here. GONE: the server hung up first.
 * BAD: the reason has been said (entry_say).
 */
enum envelope_end envelope_read(struct envelope *v, int fd, const char *script);

/* child.c: the program. */
struct child {
    pid_t pid;
    int out_fd; /* read ends; non-blocking, close-on-exec */
    int err_fd;
};

/*
 * Starts argv[0] (searched in PATH) in cwd with our environment plus env ("NAME=value", may
 * replace), in a session of its own, with default signals, no descriptors but 0-2, no core file,
 * and first in line when memory runs out. Returns 0, or -1 when it could not be started; the reason
 * has been said.
 */
int child_start(struct child *c, char *const *argv, char *const *env, size_t n_env, int input_fd,
                const char *cwd);

/* Makes orphans ours to reap, also where we are not PID 1. */
void child_adopt_orphans(void);
/* SIGKILL to every process of the container but ourselves. Never touches what is not our
 * descendant. */
void child_kill_all(void);
/* The same, until nobody is left: for an end without a report. Gives up at until_ms on clock_ms. */
void child_bury_all(int64_t until_ms);

/* relay.c: from start to the last byte of output. */
struct ending {
    int status;     /* wait status of the program */
    bool timed_out; /* we killed it at 'T' */
};

enum relay_end { RELAY_ENDED, RELAY_GONE };

/*
 * Passes output on until the program has ended, everything else in the container is dead and
 * reaped, and the pipes are empty. GONE: the server hung up (or nobody reads any more); everything
 * has been killed. signal_fd reads SIGCHLD, SIGTERM and SIGINT; hard_at_ms on clock_ms, 0 = never.
 */
enum relay_end relay_run(struct child *c, int signal_fd, int64_t hard_at_ms, struct ending *out);

/* Writes one whole frame, waiting for the reader and watching for its end; false when the server is
 * gone. */
bool frame_send(char tag, const void *data, size_t len);

/* report.c: sends the 'R' frame; every child must have been reaped. Returns the exit status that
 * stands for the ending. */
int report_send(const struct ending *e);

/* entry.c */
int64_t clock_ms(void);
/* One line on stderr: "entry: …"; with errno's text behind it when err is not 0. */
void entry_say(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes all of data to a file or memfd; false with errno set. */
bool write_all(int fd, const void *data, size_t len);

#endif
