#include "config.h"

#include "common/base/log.h"

#include "common/base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048 /* with the newline */
#define CUT_MARK       "..."

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

static enum log_level log_limit = LOG_LEVEL_INFO;
static const char *log_role = "sandcgi";

void log_setup(enum log_level level, const char *role)
{
    log_limit = level;
    log_role = role;
}

void log_set_role(const char *role)
{
    log_role = role;
}

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

/* Appends text, escaped, to line (used of size bytes are full); CUT_MARK replaces an end that does
 * not fit. */
static size_t append_escaped(char *line, size_t used, size_t size, const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        char piece[16];
        size_t taken = escape_char(text + i, len - i, piece, sizeof piece);
        size_t n = strlen(piece);
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

void log_at(enum log_level level, const char *fmt, ...)
{
    if (level > log_limit)
        return;
    int saved = errno;
    /* One byte longer than a line, so that a text that vsnprintf cut gets the mark. */
    char text[LINE_MAX_BYTES + 1], line[LINE_MAX_BYTES + 1];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);

    size_t used = (size_t)snprintf(line, 64, "%s %.40s: ", level_names[level], log_role);
    used = append_escaped(line, used, LINE_MAX_BYTES, text);
    line[used++] = '\n';
    /* One write per line, so that lines of several processes do not mix. A failure is ignored. */
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
    errno = saved;
}
