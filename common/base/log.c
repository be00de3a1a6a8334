#include "config.h"

#include "common/base/log.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/metrics.h"
#include "common/base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048 /* with the newline */
#define TAIL_MAX_BYTES 1024 /* of it: fields and notes */
#define NOTE_MAX_BYTES 64
#define WORD_MAX_BYTES 32 /* of an argument's name, which a client may have made up */
#define WORD_CHARS     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define PATH_MAX_BYTES 4096
#define CUT_MARK       "..."
#define PRIORITY_LEN   3 /* "<4>" at the start of a line for journald */

static const struct {
    const char *name;
    int priority; /* as of syslog(3) */
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", 3},
    [LOG_LEVEL_WARN] = {"warn", 4},
    [LOG_LEVEL_INFO] = {"info", 6},
    [LOG_LEVEL_DEBUG] = {"debug", 7},
};

static const char *const note_names[LOG_NOTES] = {
    [LOG_REASON] = "reason", [LOG_TOOL] = "tool",     [LOG_ARGUMENT] = "argument",
    [LOG_TENANT] = "tenant", [LOG_CLIENT] = "client", [LOG_CONVERSATION] = "conversation",
    [LOG_RUN] = "run",       [LOG_TRACE] = "trace"};

static enum log_level log_limit = LOG_LEVEL_INFO;
static const char *log_role = "sandcgi";
static struct {
    bool json, timed, journald;
    char path[PATH_MAX_BYTES];                 /* of log_open; "": none */
    char notes[LOG_NOTES][NOTE_MAX_BYTES + 1]; /* "": none */
} state;

void log_setup(enum log_level level, const char *role)
{
    log_limit = level;
    log_role = role;
    tzset(); /* gmtime_r(3) reads a file once, which a worker cannot open later */
}

void log_set_role(const char *role)
{
    log_role = role;
}

/* ---- where lines go ---- */

/* As systemd.exec(5) has it: device and inode of the stream that leads to journald. */
static bool is_journald(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char ours[64];
    struct stat st;

    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, ours) == 0;
}

void log_set_format(enum log_format form)
{
    state.json = form == LOG_FORMAT_JSON;
    state.journald = is_journald();
    state.timed = !state.journald;
}

int log_open(const char *path, struct err *e)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);

    if (fd < 0)
        return err_errno(e, "the log %s cannot be opened", path);
    if (dup2(fd, STDERR_FILENO) < 0)
        return err_errno(e, "the log %s", path);
    if (path != state.path)
        snprintf(state.path, sizeof state.path, "%s", path);
    return 0;
}

int log_reopen(struct err *e)
{
    return *state.path ? log_open(state.path, e) : 0;
}

/* ---- notes ---- */

void log_note(enum log_note note, const char *value)
{
    size_t len = value ? strlen(value) : 0;

    snprintf(state.notes[note], sizeof state.notes[note], "%.*s",
             (int)utf8_cut(value ? value : "", len, NOTE_MAX_BYTES), value ? value : "");
}

const char *log_noted(enum log_note note)
{
    return state.notes[note];
}

void log_forget(void)
{
    memset(state.notes, 0, sizeof state.notes);
}

void log_reason(const char *reason, const char *argument)
{
    size_t len = argument ? strlen(argument) : 0;

    if (*state.notes[LOG_REASON])
        return;
    log_note(LOG_REASON, reason);
    log_note(LOG_ARGUMENT,
             len <= WORD_MAX_BYTES && len == strspn(argument ? argument : "", WORD_CHARS) ? argument
                                                                                          : NULL);
}

void log_forget_reason(void)
{
    log_note(LOG_REASON, NULL);
    log_note(LOG_TOOL, NULL);
    log_note(LOG_ARGUMENT, NULL);
}

/* ---- the latest ---- */

/* Two processes that write the same line at once mix it up: it is only shown. */
static struct recent {
    _Atomic unsigned n; /* that there have been */
    char lines[LOG_RECENT][LOG_RECENT_MAX];
} * recent;

void log_share(void)
{
    if (!recent)
        recent = mem_shared(sizeof *recent);
}

void log_unshare(void)
{
    if (recent)
        munmap(recent, sizeof *recent);
    recent = NULL;
}

static void keep_line(enum log_level level, const char *line, size_t len)
{
    if (!recent || level > LOG_LEVEL_WARN)
        return;
    char *to = recent->lines[atomic_fetch_add(&recent->n, 1) % LOG_RECENT];
    size_t n = utf8_cut(line, len, LOG_RECENT_MAX - 1);
    memcpy(to, line, n);
    to[n] = '\0';
}

size_t log_recent(char out[LOG_RECENT][LOG_RECENT_MAX])
{
    unsigned end = recent ? atomic_load(&recent->n) : 0;
    unsigned n = end < LOG_RECENT ? end : LOG_RECENT;

    for (unsigned i = 0; i < n; i++) {
        memcpy(out[i], recent->lines[(end - n + i) % LOG_RECENT], LOG_RECENT_MAX);
        out[i][LOG_RECENT_MAX - 1] = '\0';
    }
    return n;
}

/* ---- lines ---- */

/* C0, DEL and C1 (U+0080 to U+009F): terminals may execute all of them. */
static bool is_control(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];
    return (n == 1 && (c < 0x20 || c == 0x7f)) ||
           (n == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0);
}

/* Writes one character unchanged, or its bytes as \xNN. Returns the number of bytes read. */
static size_t escape_char(const char *s, size_t len, char *out, size_t size)
{
    size_t n = utf8_char_len(s, len);
    if (n > 0 && !is_control(s, n)) {
        snprintf(out, size, "%.*s", (int)n, s);
        return n;
    }
    if (n == 2)
        snprintf(out, size, "\\x%02x\\x%02x", (unsigned char)s[0], (unsigned char)s[1]);
    else
        snprintf(out, size, "\\x%02x", (unsigned char)s[0]);
    return n ? n : 1;
}

/* In JSON, what the escapes above consist of is escaped again. */
static size_t escape_quotes(char *piece, size_t size)
{
    char from[32];
    size_t n = 0;

    snprintf(from, sizeof from, "%s", piece);
    for (const char *c = from; *c && n + 2 < size; c++) {
        if (*c == '\\' || *c == '"')
            piece[n++] = '\\';
        piece[n++] = *c;
    }
    piece[n] = '\0';
    return n;
}

/* Appends text, escaped, to line (used of size bytes are full); CUT_MARK replaces an end that does
 * not fit. */
static size_t append_escaped(char *line, size_t used, size_t size, const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        char piece[32];
        size_t taken = escape_char(text + i, len - i, piece, 16);
        size_t n = state.json ? escape_quotes(piece, sizeof piece) : strlen(piece);
        size_t reserve = i + taken < len ? sizeof CUT_MARK : 1;
        if (used + n + reserve > size) {
            memcpy(line + used, CUT_MARK, sizeof CUT_MARK);
            return used + sizeof CUT_MARK - 1;
        }
        memcpy(line + used, piece, n);
        used += n;
        i += taken;
    }
    line[used] = '\0';
    return used;
}

/* " name=value", in JSON ,"name":"value". One that does not fit is left out. */
static size_t append_field(char *tail, size_t used, const struct log_field *f)
{
    char value[2 * NOTE_MAX_BYTES] = "";
    const char *quote = f->text && state.json ? "\"" : "";

    if (f->text && !*f->text)
        return used;
    if (f->text)
        append_escaped(value, 0, sizeof value, f->text);
    else
        snprintf(value, sizeof value, "%" PRId64, f->number);
    for (char *c = value; *c && !state.json; c++)
        if (*c == ' ') /* else a value could look like another field */
            *c = '_';
    size_t left = TAIL_MAX_BYTES - used;
    int n = state.json ? snprintf(tail + used, left, ",\"%s\":%s%s%s", f->name, quote, value, quote)
                       : snprintf(tail + used, left, " %s=%s", f->name, value);
    if (n < 0 || (size_t)n >= left) {
        tail[used] = '\0';
        return used;
    }
    return used + (size_t)n;
}

static size_t make_tail(const struct log_field *fields, size_t n, char *tail)
{
    size_t used = 0;

    tail[0] = '\0';
    for (size_t i = 0; i < n; i++)
        used = append_field(tail, used, &fields[i]);
    for (size_t i = 0; i < LOG_NOTES; i++)
        used = append_field(tail, used,
                            &(struct log_field){.name = note_names[i], .text = state.notes[i]});
    return used;
}

/* UTC to the millisecond. */
static void write_time(char *out, size_t size)
{
    int64_t ms = clock_unix_us() / 1000;
    time_t s = (time_t)(ms / 1000);
    struct tm tm = {.tm_mday = 1};
    char text[32];

    gmtime_r(&s, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, size, "%s.%03" PRId64 "Z", text, ms % 1000);
}

static size_t begin_line(char *line, size_t size, enum log_level level)
{
    const char *name = levels[level].name;
    char priority[8] = "", time[64] = "";
    int n;

    if (state.timed)
        write_time(time, sizeof time);
    if (state.journald)
        snprintf(priority, sizeof priority, "<%d>", levels[level].priority);
    if (state.json)
        n = snprintf(line, size, "%s{%s%s%s\"level\":\"%s\",\"role\":\"%.40s\",\"message\":\"",
                     priority, *time ? "\"time\":\"" : "", time, *time ? "\"," : "", name,
                     log_role);
    else
        n = snprintf(line, size, "%s%s%s%s %.40s: ", priority, time, *time ? " " : "", name,
                     log_role);
    return (size_t)n;
}

static void count_line(enum log_level level)
{
    static const char *const labels[] = {[LOG_LEVEL_ERROR] = "level=\"error\"",
                                         [LOG_LEVEL_WARN] = "level=\"warn\"",
                                         [LOG_LEVEL_INFO] = "level=\"info\"",
                                         [LOG_LEVEL_DEBUG] = "level=\"debug\""};

    metrics_add(METRIC_LOG_LINES, labels[level], 1);
}

static void write_line(enum log_level level, const struct log_field *fields, size_t n,
                       const char *fmt, va_list ap)
{
    int saved = errno;
    count_line(level);
    /* One byte longer than a line, so that a text that vsnprintf cut gets the mark. */
    char text[LINE_MAX_BYTES + 1], line[LINE_MAX_BYTES + 1], tail[TAIL_MAX_BYTES];

    vsnprintf(text, sizeof text, fmt, ap);
    size_t tail_len = make_tail(fields, n, tail), mark = state.journald ? PRIORITY_LEN : 0;
    size_t used = begin_line(line, 256, level);
    used = append_escaped(line, used, LINE_MAX_BYTES - tail_len - (state.json ? 2 : 0), text);
    used += (size_t)snprintf(line + used, sizeof line - used, "%s%s%s\n", state.json ? "\"" : "",
                             tail, state.json ? "}" : "");
    keep_line(level, line + mark, used - mark - 1);
    /* One write per line, so that lines of several processes do not mix. A failure is ignored. */
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
    errno = saved;
}

void log_at(enum log_level level, const char *fmt, ...)
{
    va_list ap;

    if (level > log_limit)
        return;
    va_start(ap, fmt);
    write_line(level, NULL, 0, fmt, ap);
    va_end(ap);
}

void log_with(enum log_level level, const struct log_field *fields, size_t n, const char *fmt, ...)
{
    va_list ap;

    if (level > log_limit)
        return;
    va_start(ap, fmt);
    write_line(level, fields, n, fmt, ap);
    va_end(ap);
}
