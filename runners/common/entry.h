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
#ifndef SANDCGI_RUNNERS_COMMON_ENTRY_H
#define SANDCGI_RUNNERS_COMMON_ENTRY_H

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
#define NAMES_MAX          1024        /* bytes of 'P' */

/* Payload bytes of one frame on our stdout. */
#define FRAME_MAX 65536

/* After SIGKILL the rest must be gone; a process stuck in the kernel does not keep the answer
 * waiting. */
#define DEATH_MS 2000

/* The socket of a waiting interpreter (ahead.c). */
#define HOOK_FD 3

/* Between the words of a list on the command line. */
#define LIST_BREAKS ", "

/* options.c: the command line. Strings are those of argv. */
struct options {
    const char *cwd;      /* -C */
    const char *script;   /* where the code goes */
    char *const *command; /* PROGRAM and its fixed arguments, ended by NULL */
    bool ahead;           /* -a: start the interpreter before the program is known */
    bool place;           /* -p: the script is there from the beginning, empty */
    const char *counts;   /* -e: variables that count before an interpreter starts, or NULL */
    const char *object;   /* -l: a shared object for the waiting interpreter, or NULL */
    const char *starters; /* -s: words of programs that all variables count for, or NULL */
    const char *files;    /* -w: files of cwd that count before an interpreter starts, or NULL */
    char *option;         /* -o: a first argument that only the waiting interpreter gets, or NULL */
    char *extra;          /* -x: a variable that only the waiting interpreter gets, or NULL */
};

/* False when it makes no sense; that has been said. */
bool options_parse(struct options *o, int argc, char **argv);
/* Whether the word is in a list like "A,B_* C", in which "B_*" stands for all that start so. */
bool options_list_has(const char *list, const char *word, size_t len);

/* input.c: the program's standard input, filled before the program starts, or while it waits. */
struct input {
    int fill_fd; /* what is written here … */
    int fd;      /* … is read from here, from the beginning: the program's descriptor 0 */
};

/* False when there is no memory for it; that has been said. */
bool input_open(struct input *in);

/* envelope.c: what to run. Strings are owned by the envelope, which lives as long as the process.
 */
struct envelope {
    bool begun;       /* records of a program have come */
    uint64_t hard_ms; /* 'T', 0 = none; counted from went_at_ms, the moment of 'G' */
    int64_t went_at_ms;
    char **args; /* n_args + NULL */
    size_t n_args;
    char **env; /* NAME=value, n_env */
    size_t n_env;
};

enum envelope_end { ENVELOPE_GO, ENVELOPE_GONE, ENVELOPE_BAD };

/* Where an envelope comes from, and where its large parts go. */
struct envelope_way {
    int fd;
    const char *script; /* the code: created, mode 0600, or emptied */
    int input_fd;       /* the program's stdin */
    /* Called before every read: returns when fd is readable. */
    void (*await)(void *arg, const struct envelope *v);
    /* Names of 'P'. */
    void (*preload)(void *arg, const char *names);
    void *arg;
};

/*
 * Reads records up to 'G'. Code and input go straight to their files, so large ones are never held
 * here. GONE: the server hung up first. BAD: the reason has been said (entry_say).
 */
enum envelope_end envelope_read(struct envelope *v, const struct envelope_way *way);

/* child.c: the program. */
struct child {
    pid_t pid;
    int out_fd; /* read ends; non-blocking, close-on-exec */
    int err_fd;
};

/* How one is started. */
struct child_plan {
    char *const *argv; /* argv[0] is searched in PATH */
    char *const *env;  /* "NAME=value", n_env: our environment plus these, which may replace */
    size_t n_env;
    const char *cwd;
    int input_fd;
    int hook_fd; /* becomes HOOK_FD; -1 = none */
};

/* Room for a reason, with its NUL. */
#define CHILD_WHY_MAX 256

/*
 * Starts the plan's program in a session of its own, with default signals, no descriptors but 0-2
 * and the hook's, no core file, and first in line when memory runs out. Returns 0, or -1 when it
 * could not be started, with the reason in why; then a child may have to be reaped.
 */
int child_start(struct child *c, const struct child_plan *plan, char *why);

/* others.c: whoever else is in the container. */

/* Makes orphans ours to reap, also where we are not PID 1. */
void child_adopt_orphans(void);
/* SIGKILL to every process of the container but ourselves. Never touches what is not our
 * descendant. */
void child_kill_all(void);
/* The same, until nobody is left: for an end without a report. Gives up at until_ms on clock_ms. */
void child_reap_all(int64_t until_ms);

/* Whether a process besides ourselves and the one given (0 = none) is left. */
bool child_others_left(pid_t besides);

/* How a program ended, and what belongs to its end without being part of the program. */
struct ending {
    int status;       /* wait status of the program */
    bool timed_out;   /* we killed it at 'T' */
    pid_t discarded;  /* an interpreter that waited in vain; 0 = none */
    pid_t holder;     /* see struct ahead; set to 0 when it is gone */
    uint64_t used_us; /* processor time of our children that is not the program's */
    uint64_t ooms;    /* kills for want of memory that were before the program */
};

/*
 * ahead.c: an interpreter that was started before its program is known. All functions work with one
 * that is not there (no -a, or it died): the program is then started anew.
 *
 * Between us and it go packets that start with a letter.
 * To us:   H PID (who holds its memory), U (it is up), S NAME (this import begins), D (all of them
 *          are done), Y (it takes the program, and is the program from now on), N (it does not)
 * From us: P NAMES (import these), G (here is the program: its arguments as "A…" and its variables
 *          as "E…", each ended by a NUL)
 */
#define PACKET_MAX 65536

struct ahead {
    const struct options *options;
    const struct input *input;
    int signal_fd;
    struct child child; /* pid 0: nobody waits */
    int hook_fd;
    pid_t holder;  /* keeps the interpreter's memory past its end; 0 = none */
    bool ready;    /* "light" has been said */
    bool full;     /* "full", too */
    bool named;    /* 'P' has come */
    char step[64]; /* what it is importing; "" = nothing */
};

/* Starts the interpreter where the options ask for it; failure means only that nobody waits. */
void ahead_start(struct ahead *a);
/* Whether a file is there that an interpreter reads when it starts, so that it cannot be ahead. */
bool ahead_spoilt(const struct options *o);
/* Waits until something can be read from stdin, looking after the interpreter meanwhile. Ends the
 * process when somebody stops the container. */
void ahead_await(struct ahead *a, const struct envelope *v);
/* Hands over the names of 'P'; when nobody waits, that is all there is to do. */
void ahead_preload(struct ahead *a, const char *names);
/*
 * Takes what the interpreter has said; 'Y' or 'N' when that came, 0 = nothing more, -1 = its end.
 * quiet: the server is not told any more.
 */
int ahead_listen(struct ahead *a, bool quiet);

/*
 * claim.c: hands over the program. True: it runs in a->child (or the interpreter is about to take
 * it, and the deadline or the server's end came first). False: nobody took it, nothing of it has
 * run, and who waited is being killed. Fills what end has besides status and timed_out.
 */
bool ahead_claim(struct ahead *a, const struct envelope *v, struct ending *end);

/* relay.c: from start to the last byte of output. */
enum relay_end { RELAY_ENDED, RELAY_GONE };

/*
 * Passes output on until the program has ended, everything else in the container is dead and
 * reaped, and the pipes are empty. GONE: the server hung up (or nobody reads any more); everything
 * has been killed. signal_fd reads SIGCHLD, SIGTERM and SIGINT; hard_at_ms on clock_ms, 0 = never.
 */
enum relay_end relay_run(struct child *c, int signal_fd, int64_t hard_at_ms, struct ending *out);

/* frame.c: our stdout. One frame at a time is on its way out. */
#define FRAME_HEAD 5

/* Where the payload of the next frame belongs, FRAME_MAX bytes; only while none is pending. */
void *frame_room(void);
/* Makes a frame of what lies there. */
void frame_begin(char tag, size_t len);
bool frame_pending(void);
/* Writes what the reader takes now; false when there is no reader. */
bool frame_push(void);
/* Writes one whole frame, waiting for the reader and watching for its end; false when the server is
 * gone. */
bool frame_send(char tag, const void *data, size_t len);
/* What poll says of stdin behind the envelope: bytes are dropped; false when the server is gone. */
bool server_is_there(short revents);

/* report.c: how often the kernel has killed in this container for lack of memory. */
uint64_t report_oom_kills(void);
/* Bytes that its processes have for themselves now; 0: not known. */
uint64_t report_memory(void);

/* What a report says. */
struct report {
    int status; /* wait status */
    uint64_t cpu_us;
    uint64_t peak_memory_bytes;
    uint64_t oom_kills;
    bool timed_out;
};

#define REPORT_MAX 256
/* The report as JSON in text, REPORT_MAX bytes; its length. */
size_t report_write(char *text, const struct report *r);

/* Sends the 'R' frame; every child but the holder must have been reaped. Returns the exit
 * status that stands for the ending. */
int report_send(const struct ending *e);
struct rusage;
uint64_t rusage_us(const struct rusage *used);

/* stay.c: the life of a container that stays, as PID 1 between the server and any number of
 * commands. Returns the exit status. */
int psandbox_serve(int signal_fd);
/*
 * index.c: "entry index SOCKET PROGRAM [ARGUMENT…]", the program of an installation: runs PROGRAM
 * with a proxy on the loopback address that leads to the Unix socket, one at a time of a sandbox.
 * argv is what comes behind "index". Its exit status.
 */
#define PACKAGES "/data/.packages"
int index_main(int argc, char **argv);

/* entry.c */
int64_t clock_ms(void);
/* One line on stderr: "entry: …"; with errno's text behind it when err is not 0. */
void entry_say(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The digits at p as a number, 0 when there are none; what does not fit is cut to the largest. */
uint64_t digits(const char *p);
/* Writes all of data to a file or memfd; false with errno set. */
bool write_all(int fd, const void *data, size_t len);

#endif
