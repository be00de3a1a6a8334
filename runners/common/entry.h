/*
 * The entry program of our runner images: PID 1 of a container. It speaks sandbox.protocol=1
 * (runners/README.md) on stdin and stdout; its stderr carries its own failures only.
 *
 * It is linked statically and compiled without configure, too (runners/build.sh): it includes no
 * config.h and nothing of common/. Its memory does not grow with output.
 */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Exit status of a failure of the entry program itself: one line on stderr, no report. */
#define ENTRY_FAILED 125

/* Bounds of one envelope; the server's own limits are lower. */
#define ENVELOPE_MAX       (64u << 20) /* all payloads together */
#define ENVELOPE_ITEMS_MAX 4096        /* arguments plus environment entries */
#define ENVELOPE_TEXT_MAX  (4u << 20)  /* bytes of arguments plus environment */
#define NAMES_MAX          1024        /* bytes of 'P' */

/* Payload bytes of one frame on our stdout. */
#define FRAME_MAX 65536

/* How long to wait for a death after SIGKILL: a process may be stuck in the kernel. */
#define DEATH_MS 2000

/* The program's end of the socket to a warm interpreter, or of a control channel. */
#define HOOK_FD 3

/* The command line. Strings are those of argv. */
struct options {
    char *cwd;            /* -C */
    char *script;         /* SCRIPT: where the code is written */
    char *const *command; /* PROGRAM and its fixed arguments, ended by NULL */
    bool warm;            /* -w: start the interpreter before the program is known */
    bool place;           /* -p: create the script at once, empty */
    char *variables;      /* -e: variables that an interpreter reads when it starts, or NULL */
    char *files;          /* -f: files of cwd that it reads when it starts, or NULL */
    char *object;         /* -l: a shared object that the warm interpreter preloads, or NULL */
    char *option;         /* -o: a first argument of the warm interpreter only, or NULL */
    char *words;          /* -s: words of code that needs all variables at the start, or NULL */
    char *extra;          /* -x: NAME=value for the warm interpreter only, or NULL */
};

/* ---- util.c: what all parts use, and our stdout ---- */

int64_t clock_ms(void);
/* The timeout for poll until at_ms on clock_ms; 0 = no such moment: -1. */
int poll_timeout(int64_t at_ms);
/* One line on stderr: "entry: …"; with errno's text behind it when err is not 0. */
void entry_error(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The digits at p as a number, 0 when there are none; what does not fit is cut to the largest. */
uint64_t digits(const char *p);
/* 32 bits, big-endian. */
uint32_t u32_get(const void *from);
void u32_put(void *to, uint32_t value);
/* Writes all of data to a file or memfd; false with errno set. */
bool write_all(int fd, const void *data, size_t len);
/* The beginning of a small file as a string; false when it cannot be read. */
bool read_text(const char *path, char *text, size_t size);
/* Reads all signals of a signalfd. Returns the last one that stops the container (outside: and
 * comes from outside of it); 0 = none. */
int signals_read(int signal_fd, bool outside);

/* The program's standard input: a file in memory, filled before the program starts. */
struct input {
    int fill_fd; /* write end, with a position of its own */
    int fd;      /* read end, at the beginning: the program's descriptor 0 */
};

/* False when there is no memory for it, which has been reported. */
bool input_open(struct input *in);

#define FRAME_HEAD 5

/* Frames on stdout, one at a time. Room for the next one's payload, while none is pending. */
void *frame_room(void);
/* Makes a frame of what lies there. */
void frame_begin(char tag, size_t len);
bool frame_pending(void);
/* Writes what the reader takes now; false when there is no reader. */
bool frame_push(void);
/* Writes one whole frame, and polls stdin meanwhile; false when the server is gone. */
bool frame_send(char tag, const void *data, size_t len);
/* What poll says of stdin behind the envelope: bytes are dropped; false when the server is gone. */
bool server_is_there(short revents);

/* ---- envelope.c: what to run ---- */

/* Strings are owned by the envelope, which lives as long as the process. */
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

struct warm;

/* Reads records from stdin up to 'G'; code and input go to their files at once. GONE: the server
 * hung up first. BAD: the reason has been reported. */
enum envelope_end envelope_read(struct envelope *v, struct warm *w);

/* ---- child.c: starting a program ---- */

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

/* PROGRAM, an option (NULL: none), the fixed arguments, n more; to be freed. NULL without memory.
 */
char **argv_new(char *const *command, char *option, char *const *args, size_t n);

/* Room for a reason, with its NUL. */
#define CHILD_WHY_MAX 256

/* Starts the plan's program in a session of its own, with default signals, descriptors 0-2 and the
 * hook's, no core file, and first in line for the OOM killer. -1: the reason is in why; a child may
 * have to be reaped. */
int child_start(struct child *c, const struct child_plan *plan, char *why);

/* ---- kill.c: the other processes of the container ---- */

/* SIGKILL to every other process of the container; where we are not PID 1, to our children. */
void kill_all(void);
/* The same, until none is left: for an end without a report. Gives up at until_ms on clock_ms. */
void kill_and_reap_all(int64_t until_ms);
/* Whether a process besides ourselves and the one given (0 = none) is left. */
bool others_left(pid_t besides);
/* Kills pid, its descendants and its session; they are stopped first, so that none escapes. */
void tree_kill(pid_t pid);

/* ---- warm.c: an interpreter that is started before its program is known ---- */

/* How a program ended, and what is not to be counted as the program's. */
struct ending {
    int status;       /* wait status of the program */
    bool timed_out;   /* we killed it at 'T' */
    pid_t discarded;  /* a warm interpreter that did not get the program; 0 = none */
    pid_t holder;     /* see struct warm; set to 0 when it is gone */
    uint64_t used_us; /* processor time of our children before the program */
    uint64_t ooms;    /* OOM kills before the program */
};

/*
 * All functions work without an interpreter (no -w, or it died): the program is then started cold.
 *
 * Between us and it go packets that start with a letter.
 * To us:   H PID (the holder of its memory), U (it is up), S NAME (this import begins), D (all
 *          imports are done), Y (it takes the program, and is the program from now on), N (it
 *          does not)
 * From us: P NAMES (import these), G (here is the program: its arguments as "A…" and its variables
 *          as "E…", each ended by a NUL)
 */
#define PACKET_MAX 65536

struct warm {
    const struct options *options;
    const struct input *input;
    int signal_fd;
    struct child child; /* pid 0: none */
    int hook_fd;
    pid_t holder;   /* keeps the interpreter's memory past its end; 0 = none */
    bool started;   /* the first 'W' has been sent */
    bool preloaded; /* the second, too */
    bool named;     /* 'P' has come */
    char step[64];  /* the import under way; "" = none */
};

/* Starts the interpreter where the options ask for it; without it programs are started cold. */
void warm_start(struct warm *w);
/* Waits for stdin, and handles the interpreter's packets and death and signals meanwhile. */
void warm_await_input(struct warm *w, const struct envelope *v);
/* Hands over the names of 'P'. */
void warm_preload(struct warm *w, const char *names);
/* Hands over the program. True: it runs in w->child, or may. False: nothing of it has run, and the
 * interpreter is being killed. Fills what end has besides status and timed_out. */
bool warm_hand_over(struct warm *w, const struct envelope *v, struct ending *end);

/* ---- relay.c: a program from its start to the last byte of output ---- */

enum relay_end { RELAY_ENDED, RELAY_GONE };

/* Passes output on until the program has ended, all other processes are reaped and the pipes are
 * empty. GONE: the server hung up, and everything has been killed. hard_at_ms: on clock_ms, 0 =
 * never. */
enum relay_end relay_run(struct child *c, int signal_fd, int64_t hard_at_ms, struct ending *out);

/* ---- report.c ---- */

/* How often the kernel has killed in this container for lack of memory. */
uint64_t report_oom_kills(void);
/* Bytes that its processes have for themselves now; 0: not known. */
uint64_t report_memory(void);

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

/* ---- modes of their own ---- */

/* serve.c: "entry serve", any number of commands until stdin ends. Returns the exit status. */
int serve_run(int signal_fd);
/* index.c: "entry index SOCKET PROGRAM [ARGUMENT…]" installs packages: runs PROGRAM with an HTTP
 * proxy on the loopback address that leads to the Unix socket. argv is behind "index". */
#define PACKAGES "/data/.packages"
int index_main(int argc, char **argv);

/*
 * probe.c: "entry probe" prints this container's addresses, a line each. "entry probe ADDRESS…"
 * sends a datagram to each ("gateway": that of the default route) and prints "ADDRESS WORD", what
 * became of it. Returns the exit status.
 */
int probe_main(int n, char *const *names);
