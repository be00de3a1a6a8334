/* "sandcgi reload", "restart", "stop" and "logs": what an administrator asks of a server that runs.
 */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/remedy.h"
#include "common/base/sock.h"
#include "fcgi/commands.h"
#include "fcgi/process/control.h"
#include "fcgi/process/settings_check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANSWER_MAX  4096
#define RELOAD_MS   60000
#define PROC_MAX    (64u * 1024)
#define LINES       "100"
#define EXIT_WORDS  2
#define NO_DEADLINE UINT64_MAX

static int print_failure(const struct err *e)
{
    fprintf(stderr, "sandcgi: %s\n", e->text);
    return 1;
}

/* ---- systemd ---- */

/* Reads /proc/PID/NAME, with blanks for the ends of strings. */
static void read_proc(pid_t pid, const char *name, struct buf *out)
{
    AUTO_FREE char *path = mem_printf("/proc/%d/%s", (int)pid, name);
    struct err none = ERR_INIT;

    if (fdio_read_file(path, out, &none) < 0)
        buf_reset(out);
    for (size_t i = 0; i < out->len; i++)
        if (out->data[i] == '\0')
            out->data[i] = '\n';
}

/* The unit whose main process it is: "sandcgi.service"; heap. NULL: it is none's. */
static char *unit_of(pid_t pid)
{
    AUTO_BUF struct buf environment = BUF_INIT(PROC_MAX), groups = BUF_INIT(PROC_MAX);
    AUTO_FREE char *mark = mem_printf("SYSTEMD_EXEC_PID=%d\n", (int)pid);
    static const char end[] = ".service\n";

    read_proc(pid, "environ", &environment);
    read_proc(pid, "cgroup", &groups);
    const char *found = strstr(buf_str(&groups), end), *slash = found;
    while (slash > buf_str(&groups) && slash[-1] != '/')
        slash--;
    return found && strstr(buf_str(&environment), mark)
               ? mem_strndup(slash, (size_t)(found - slash) + strlen(end) - 1)
               : NULL;
}

/* Returns only when it cannot be executed. */
static int become(const char *const *words)
{
    fflush(NULL);
    execvp(words[0], (char *const *)(uintptr_t)words);
    fprintf(stderr, "sandcgi: cannot execute %s: %s\n", words[0], strerror(errno));
    return 1;
}

static int ask_systemd(const char *verb, const char *unit)
{
    return become((const char *[]){"systemctl", verb, unit, NULL});
}

/* ---- the order ---- */

/* Sends the order to the server at that socket. Returns the connection. */
static int send_order(const struct settings *places, enum order order, struct err *e)
{
    AUTO_FD int fd = sock_connect_unix(places->control, e);

    if (fd < 0)
        return -1;
    if (sock_send_message(fd, order_names[order], strlen(order_names[order]), -1, e) < 0)
        return -1;
    return TAKE_FD(fd);
}

/* 1: the server has answered that it is done; 0: it has ended, or the connection has; -1: it has
 * refused, or has not answered in time. */
static int await_answer(int fd, struct deadline until, struct err *e)
{
    AUTO_BUF struct buf answer = BUF_INIT(ANSWER_MAX);

    for (;;) {
        if (sock_recv_message(fd, &answer, NULL, until, e) < 0)
            return e->kind == ERR_CANCELLED ? 0 : -1;
        const char *text = buf_str(&answer);
        if (strncmp(text, CONTROL_NOTE, strlen(CONTROL_NOTE)) == 0)
            fprintf(stderr, "sandcgi: note: %s\n", text + strlen(CONTROL_NOTE));
        else if (strncmp(text, CONTROL_REFUSED, strlen(CONTROL_REFUSED)) == 0)
            return err_set(e, ERR_REFUSED, "%s", text + strlen(CONTROL_REFUSED));
        else
            return 1;
    }
}

/* One that does not take orders yet. Its own look at the settings is told by its log alone. */
static int order_by_signal(const struct settings *places, const char *config_path, enum order order,
                           struct err *e)
{
    struct err none = ERR_INIT;
    const pid_t guard = guard_find(places->broker, &none);

    if (guard < 0)
        return err_set(e, ERR_NOT_FOUND, "no server of %s runs: %s",
                       config_path ? config_path : "these settings", none.text);
    if (order == ORDER_RESTART)
        return err_set(e, ERR_REFUSED, "process %d is of a version that cannot restart; stop it",
                       (int)guard);
    if (order == ORDER_RELOAD && settings_check_print_file(config_path) != 0)
        return err_set(e, ERR_INVALID, "not reloaded");
    AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, guard, 0);
    if (pidfd < 0 || kill(guard, order == ORDER_RELOAD ? SIGHUP : SIGTERM) < 0)
        return err_errno(e, "cannot signal the server, process %d", (int)guard);
    if (order != ORDER_RELOAD)
        poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, -1);
    return 0;
}

/* wait_ms: for a reload; for a stop until the programs are ended, too. */
static int order_give(const struct settings *places, const char *config_path, enum order order,
                      uint64_t wait_ms, struct err *e)
{
    AUTO_FD int fd = send_order(places, order, e);
    struct deadline until = wait_ms == NO_DEADLINE ? DEADLINE_NEVER
                                                   : deadline_in_ms((int64_t)wait_ms);

    if (fd < 0 && (e->kind == ERR_UNAVAILABLE || e->kind == ERR_NOT_FOUND))
        return order_by_signal(places, config_path, order, e);
    int answer = fd < 0 ? -1 : await_answer(fd, until, e);
    if (answer < 0 && order == ORDER_STOP && e->kind == ERR_TIMEOUT) {
        AUTO_FD int again = send_order(places, ORDER_STOP_NOW, e);
        answer = await_answer(fd, DEADLINE_NEVER, e);
    }
    if (answer < 0 && e->kind == ERR_TIMEOUT)
        return err_set(e, ERR_TIMEOUT, "the server has not answered in time; see: %s",
                       remedy(REMEDY_LOGS));
    if (answer == 0 && order != ORDER_STOP)
        return err_set(e, ERR_LOST, "the server has ended; see: %s", remedy(REMEDY_LOGS));
    return answer < 0 ? -1 : 0;
}

/* wait NULL: wait_ms. */
static int order_run(const char *config_path, enum order order, const char *wait, uint64_t wait_ms)
{
    static const char *const done[] = {
        [ORDER_RELOAD] = "reloaded", [ORDER_RESTART] = "restarted", [ORDER_STOP] = "stopped"};
    struct err e = ERR_INIT, none = ERR_INIT;
    struct settings places;

    if (wait && parse_duration_ms(wait, &wait_ms) < 0) {
        fputs("sandcgi: --wait must be a time like 500ms, 30s or 5m\n", stderr);
        return EXIT_WORDS;
    }
    if (settings_load_places(&places, config_path, &e) < 0)
        return print_failure(&e);
    const pid_t guard = guard_find(places.control, &none);
    AUTO_FREE char *unit = guard > 0 && order != ORDER_RELOAD ? unit_of(guard) : NULL;
    int result = 1;
    if (unit && order == ORDER_STOP && !wait) /* systemd has a time of its own */
        result = ask_systemd("stop", unit);
    else if (unit && order == ORDER_RESTART)
        result = settings_check_print_file(config_path) == 0 ? ask_systemd("restart", unit) : 1;
    else if (order_give(&places, config_path, order, wait_ms, &e) < 0)
        print_failure(&e);
    else
        result = puts(done[order]) < 0;
    settings_clear(&places);
    return result;
}

int reload_run(const char *config_path, const char *wait)
{
    return order_run(config_path, ORDER_RELOAD, wait, RELOAD_MS);
}

int restart_run(const char *config_path)
{
    return order_run(config_path, ORDER_RESTART, NULL, NO_DEADLINE);
}

int stop_run(const char *config_path, const char *wait)
{
    return order_run(config_path, ORDER_STOP, wait, NO_DEADLINE);
}

/* ---- the log ---- */

static int show_file(const char *path, const char *lines, bool follow)
{
    return become(follow ? (const char *[]){"tail", "-n", lines, "-F", path, NULL}
                         : (const char *[]){"tail", "-n", lines, path, NULL});
}

/* Standard error of a server without SANDCGI_LOG: the journal, a file, or what cannot be read. */
static int show_stderr(pid_t guard, const char *lines, bool follow)
{
    AUTO_FREE char *unit = unit_of(guard), *link = mem_printf("/proc/%d/fd/2", (int)guard);
    char to[PATH_MAX] = "";
    struct stat st;
    struct err e = ERR_INIT;

    if (unit)
        return become((const char *[]){"journalctl", "--unit", unit, "--lines", lines,
                                       follow ? "--follow" : NULL, NULL});
    if (readlink(link, to, sizeof to - 1) > 0 && stat(to, &st) == 0 && S_ISREG(st.st_mode))
        return show_file(to, lines, follow);
    err_set(&e, ERR_NOT_FOUND,
            "the log of process %d goes to its standard error (%s): ask the program that started "
            "it, as \"docker logs\" does, or set SANDCGI_LOG to a file",
            (int)guard, *to ? to : "unknown");
    return print_failure(&e);
}

int logs_run(const char *config_path, const char *lines, bool follow)
{
    AUTO_FREE char *count = mem_strdup(lines ? lines : LINES);
    struct err e = ERR_INIT;
    struct settings places;
    uint64_t n;
    int result;

    if (parse_u64(count, 0, INT32_MAX, &n) < 0) {
        fputs("sandcgi: --lines must be a whole number\n", stderr);
        return EXIT_WORDS;
    }
    if (settings_load_places(&places, config_path, &e) < 0)
        return print_failure(&e);
    if (*places.log_file) {
        result = show_file(places.log_file, count, follow);
    } else {
        const pid_t guard = guard_find(places.control, &e);
        result = guard < 0 ? print_failure(&e) : show_stderr(guard, count, follow);
    }
    settings_clear(&places);
    return result;
}
