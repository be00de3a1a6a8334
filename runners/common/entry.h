/*
 * The entry program of our runner images: PID 1 of a container. It speaks sandbox.protocol=3
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

/* Exit status of a failure of the entry program itself: one line on stderr. */
#define ENTRY_FAILED 125

/* Payload of one record, of 'P' among them. */
#define RECORD_MAX (2u << 20)
#define NAMES_MAX  1024

#define ID_LEN 4
/* Bytes behind the id in one frame on our stdout. */
#define DATA_MAX 65536

/* How long to wait for a death after SIGKILL: a process may be stuck in the kernel. */
#define DEATH_MS 2000

/* The program's end of the socket to a warm interpreter, or of a control channel. */
#define HOOK_FD 3

/* How programs of a language are run, by its file of the table or by the command line. */
struct options {
    const char *name;     /* of the file; NULL: it is the command line's */
    char *cwd;            /* -C */
    char *script;         /* SCRIPT: where a run's code is written (script.c); NULL: no runs */
    char *const *command; /* PROGRAM and its fixed arguments, ended by NULL */
    bool warm;            /* -w: start the interpreter before the program is known */
    bool template;        /* -t: what is started forks an interpreter for each run */
    bool place;           /* -p: there is a script, empty, while the interpreter comes up */
    char *chooser;        /* -a: what starts a program with one of those words, or NULL */
    char *chosen;         /* -A: the words */
    char *variables;      /* -e: variables that an interpreter reads when it starts, or NULL */
    char *files;          /* -f: files of cwd that it reads when it starts, or NULL */
    char *object;         /* -l: a shared object that the warm interpreter preloads, or NULL */
    char *kept;           /* -k: words of code whose SCRIPT keeps its name; NULL: all do */
    char *modules;        /* -m: modules whose programs need no loaded template, or NULL */
    char *option;         /* -o: a first argument of the warm interpreter only, or NULL */
    char *new_option;     /* -n: a first argument of new interpreters only, or NULL */
    char *words;          /* -s: words of code that needs all variables at the start, or NULL */
    char *extra;          /* -x: NAME=value for the warm interpreter only, or NULL */
};

#define LANGUAGES_MAX 32

/* Those of the container. The first one's interpreter waits from the beginning, and is told of
 * libraries. */
struct languages {
    struct options items[LANGUAGES_MAX]; /* n, at least one */
    size_t n;
};

/* ---- languages.c: the command line, and the table that it may name ---- */

/* False when one makes no sense, which has been reported. */
bool languages_read(struct languages *l, int argc, char **argv);
/* NULL: there is none of that name. */
const struct options *languages_find(const struct languages *l, const char *name, size_t len);

/* ---- calls.c: what the kernel refuses to us and to all that we start, whatever the engine allows
 * ---- */

/* Before anything of a user's is started. False with errno set: nothing may be started. */
bool calls_confine(void);

/* ---- inbox.c: our stdin ---- */

/* Reads what has come, and hands over the whole records of it; take's data is valid until it
 * returns, false: it makes no sense. Our exit status, when there will be no more; -1: there may be.
 */
int inbox_read(bool (*take)(char tag, uint32_t id, char *data, size_t len));

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

/* The program's standard input: a file in memory, filled before the program starts. */
struct input {
    int fill_fd; /* write end, with a position of its own */
    int fd;      /* read end, at the beginning: the program's descriptor 0 */
};

/* False with errno set when there is no memory for it. */
bool input_open(struct input *in);

#define FRAME_HEAD 5

/* Frames on stdout, one at a time. Room for the data of the next one, while none is pending. */
char *frame_room(void);
/* Makes a frame about id of what lies there. */
void frame_begin(char tag, uint32_t id, size_t len);
bool frame_pending(void);
/* Writes what the reader takes now; false when there is no reader. */
bool frame_push(void);

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
    int hook_fd;   /* becomes HOOK_FD; -1 = none */
    bool template; /* short of memory, its children are killed first */
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
/* Starts the interpreter of the options, or its template, with that standard input. Returns our end
 * of its hook, -1: it could not be started, which has been reported. */
int child_prestart(struct child *c, const struct options *o, int input_fd);
/* Asks the template behind the socket for a child with this standard input: an interpreter ('F') or
 * a template ('T'). Returns our end of the child's hook, -1: it cannot be asked. The child's pid is
 * 0; the hook tells it. */
int child_fork(struct child *c, int template_fd, char letter, int input_fd);
/* Closes its streams, and kills one that is not known to have ended. */
void child_drop(struct child *c, bool ended);
/* Whether the process that has been reaped is one of these: once. */
bool child_was_dropped(pid_t pid);

/* ---- kill.c: the other processes of the container ---- */

/* The templates of a container: the one of each language, in the order of their options, and the
 * child of the first one's that has libraries. */
enum { TEMPLATE_FIRST, TEMPLATE_LOADED = LANGUAGES_MAX, TEMPLATE_N };

/* The process that kill_all and others_left leave out from now on in this place; 0 = none. */
void kill_spare(size_t place, pid_t pid);
/* SIGKILL to every other process of the container; where we are not PID 1, to our children. */
void kill_all(void);
/* The same, until none is left: for our own end. Gives up at until_ms on clock_ms. */
void kill_and_reap_all(int64_t until_ms);
/* Whether a process besides ourselves and those that are spared is left. */
bool others_left(void);
/* Kills pid, its descendants and its session; they are stopped first, so that none escapes. */
void tree_kill(pid_t pid);

/* Of a program; len is 0 without one. */
struct code {
    const char *text;
    size_t len;
};

/* ---- script.c: where a run's program lies ---- */

/* Removes what killed containers have left at the SCRIPT of each language. */
void script_sweep(const struct languages *l);
/* Makes the file for a run's code: SCRIPT, or another place if that is not free; false with errno
 * set. script_add appends to it. */
bool script_open(const struct options *o);
bool script_add(const struct options *o, const char *data, size_t len);
bool script_is_open(void);
/* Whether the code has one of the words of -A. */
bool script_is_chosen(const struct options *o);
/* As it was written; borrowed until script_remove. */
struct code script_code(void);
const char *script_path(void);
/* It loses its name as soon as PROGRAM, which is started now, has opened it (-k): then it is in no
 * listing. */
void script_hide(const struct options *o);
/* At SIGIO: PROGRAM opens it, and waits for us. */
void script_opened(void);
/* The run is over: it goes, unless the program has put another file there. */
void script_remove(void);
/* An empty one, for an interpreter that comes up, until it is up. */
void script_place(const struct options *o);
void script_unplace(void);

/* ---- code.c: what can be told of a program from its code ---- */

/* Whether the word is in a list like "A,B_* C", in which "B_*" stands for all that start so. */
bool list_has(const char *list, const char *word, size_t len);
/* Names with blanks between, in a list of NAMES_MAX + 1 bytes: adds those that it has not, false
 * when there is no room for them; whether it has all of them. */
bool names_add(char *list, const char *names);
bool names_in(const char *list, const char *names);
/* Whether one of the words is in the code. */
bool code_has(struct code code, const char *words);
/* Whether the code may need the import under way: it has the first part of its name. */
bool code_needs(struct code code, const char *name);
/* Whether the code imports nothing but modules of the list, as far as its lines tell; false without
 * code. */
bool code_is_plain(struct code code, const char *modules);

/* ---- warm.c: an interpreter that is started before its program is known ---- */

/*
 * Without one (no -w, or it died) programs are started cold. With -t what is started is a template,
 * which never gets a program: it forks an interpreter that waits, ahead of its program. The first
 * language has one from the beginning, another one behind the first's libraries or its own first
 * run. One interpreter waits at a time, in the language of the last run. Libraries are loaded by a
 * template of their own, which the first one forks: a program that needs none does not pay for
 * copies of their memory. Between us and each of them go packets that start with a letter.
 *
 * To us:   U PID (it is up; the pid where it was forked), S NAME (this import begins; none: no
 *          more of them for now), D (all imports are done), L (what L names has been imported), Y
 *          (it takes the program, and is the program from now on), N (it does not; L is not done)
 * From us: P NAMES (import these, until another packet comes), L NAMES (import these at once: a
 *          program waits), H (no more of P), F (fork an interpreter, our child, with the FORK_FDS
 *          descriptors that come along as 0, 1, 2 and HOOK_FD), T (the same, but a template), G
 *          (here is the program: its arguments as "A…" and its variables as "E…", each ended by a
 *          NUL)
 * A template gets P, L, H, F and T, and says U where it was forked, S, D, L and N.
 */
#define PACKET_MAX 65536
#define FORK_FDS   4

/* What a start names: strings of its record. */
struct items {
    char **args, **env; /* n_args, n_env */
    size_t n_args, n_env;
    char *cwd;  /* NULL: that of the options */
    char *load; /* libraries that the run needs, with blanks between; NULL: none */
    uint64_t timeout_ms;
    bool control;
};

/* offer.c: the packet G. */
struct offer {
    char packet[PACKET_MAX];
    size_t len;
};
/* False when it would be too long. */
bool offer_make(struct offer *o, const struct items *w);
/* False when it cannot be sent; fd -1: so it is. */
bool offer_send(const struct offer *o, int fd);
/* Takes one packet if there is one; its letter, 0 = none, -1 = the other end is closed, and now
 * ours is, too. */
int packet_take(int *fd, char *text, size_t size);
/* Whether the working directory has a file that the interpreter reads when it starts. */
bool files_forbid(const struct options *o);
/* Whether the interpreter was started with another value of a variable in the list. */
bool variables_differ(const char *list, const struct items *w);

/* Starts the first language's interpreter. The languages are borrowed. */
void warm_start(const struct languages *languages);
/* Fills a table of WARM_POLLS_MAX with what is polled for packets; returns how many there are. */
#define WARM_POLLS_MAX (1 + TEMPLATE_N)
struct pollfd;
size_t warm_polls(struct pollfd *p);
/* Hands over the names to import. False: it has some, or they are too long. */
bool warm_preload(const char *names, size_t len);
/* Whether there is a frame 'W' to be sent; it is made if make is set, while no frame is pending. */
bool warm_tier_due(bool make);
/* The standard input that the interpreter has, for the first program; false: it is taken. */
bool warm_take_input(struct input *out);
/* Has the libraries imported that the program needs and that are not there: once for it and for
 * those that follow, which costs no more than its own imports would. True: that goes on, until
 * warm_loads says that it is over, well or not. The program's standard input is borrowed until
 * then.
 */
bool warm_demand(const struct items *w, int input_fd);
bool warm_loads(void);
/* Hands over a program, whose standard input is there; true: the interpreter answers. Else it is
 * being killed. */
bool warm_offer(const struct items *w, int input_fd);
/* Handles the packets that have come. 'Y' or 'N': the answer; 0: none yet; -1: it will not come. */
int warm_packets(void);
/* It has said yes, or not in time: the program's process from now on. Its pid is 0 when it was not
 * even up. */
struct child warm_taken(void);
/* It has the program no longer. */
void warm_discard(void);
/* Processor time that the interpreter has used. */
uint64_t warm_used_us(void);
/* A child has been reaped: whether it was a template, or an interpreter that became no program. */
bool warm_reaped(pid_t pid);
pid_t warm_pid(void);
/* A run in that language comes, which the templates outlive: they are spared, and noted for the
 * proof. */
void warm_claim(const struct options *o);
/* A run is over, and nothing is left of it: an interpreter will wait again, and a frame 'W' is due
 * when it does. False: it cannot be started. */
bool warm_again(void);

/* ---- left.c: files that a program has left where they are removed ---- */

#define LEFT_PATHS    5
#define LEFT_PATH_MAX 200
#define LEFT_MAX      (LEFT_PATHS * (LEFT_PATH_MAX + 3) + 64)

struct left {
    char *text; /* LEFT_MAX bytes */
    size_t len, n, omitted;
    size_t seen; /* entries of directories */
};

/* Adds those below a directory that hold something and that no tool leaves by itself. */
void left_in(const char *path, struct left *l);
/* Completes the text. */
void left_end(struct left *l);

/* ---- wipe.c and proof.c: between two runs ---- */

/* Both are told when the container begins, before anything is started. */
void wipe_note(const char *cwd);
void proof_note(void);
/* A run comes: there may be no more sockets behind it than now. */
void proof_note_sockets(void);
/* It finds these templates; 0 = none. */
void proof_note_templates(const pid_t templates[TEMPLATE_N]);
/* With no process left but the templates: removes what a run has left outside of its working
 * directory. False: why says what stays. */
bool wipe(int64_t until_ms, char *why);
/* Before it: what it will remove that a user may miss, as members of the report with a comma
 * before. */
void wipe_look(char text[LEFT_MAX]);
/* Behind it: false when why says what is not as it was. */
bool proof(char *why);

/* ---- report.c ---- */

/* How often the kernel has killed in this container for lack of memory. */
uint64_t report_oom_kills(void);
/* Bytes that its processes have for themselves now; 0: not known. */
uint64_t report_memory(void);
/* The same, and those of files in memory. */
uint64_t report_charged(void);
/* The most memory that the container has had since it began; 0: not known. */
uint64_t report_peak_memory(void);
/* The container's limit of processor time in the kernel's words; "": not known. */
void report_quota(char *text, size_t size);
/* Processor time of all children that have been reaped, of a process; 0: not known. */
uint64_t report_children_us(void);
uint64_t report_process_us(pid_t pid);

struct report {
    int status; /* wait status */
    uint64_t cpu_us;
    uint64_t peak_memory_bytes;
    uint64_t oom_kills;
    bool timed_out;
    char left[LEFT_MAX]; /* members; "": nothing */
};

#define REPORT_MAX (256 + LEFT_MAX)
/* The report as JSON in text, REPORT_MAX bytes; its length. */
size_t report_write(char *text, const struct report *r);
struct rusage;
uint64_t rusage_us(const struct rusage *used);

/* ---- serve.c: the one loop ---- */

/* Starts what the server asks for until stdin ends. Returns the exit status. */
int serve_run(const struct languages *languages, int signal_fd);

/* ---- modes of their own ---- */

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
