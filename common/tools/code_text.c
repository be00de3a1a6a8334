#include "config.h"

#include "common/tools/code_text.h"

#include <string.h>

#define MARK      "\xEF\xBB\xBF"
#define FENCE_MIN 3 /* characters, by CommonMark */

struct span {
    const char *at, *end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct span without_mark(struct span s)
{
    while ((size_t)(s.end - s.at) >= strlen(MARK) && memcmp(s.at, MARK, strlen(MARK)) == 0)
        s.at += strlen(MARK);
    return s;
}

static size_t run_of(struct span s, char c)
{
    const char *at = s.at;

    while (at < s.end && *at == c)
        at++;
    return (size_t)(at - s.at);
}

/* The line that begins the fence, without its newline; empty when the code begins otherwise. */
static struct span opening_of(struct span code, size_t *length)
{
    const char *newline;
    struct span line;

    while (code.at < code.end && is_blank(*code.at))
        code.at++;
    newline = code.at < code.end ? memchr(code.at, '\n', (size_t)(code.end - code.at)) : NULL;
    line = (struct span){code.at, newline ? newline : code.at};
    *length = line.at < line.end ? run_of(line, *line.at) : 0;
    if (*length < FENCE_MIN || !strchr("`~", *line.at) ||
        memchr(line.at + *length, '`', (size_t)(line.end - line.at) - *length))
        line.end = line.at;
    return line;
}

/* The last line if it closes the fence, from its first character on; empty: it does not. */
static struct span closing_of(struct span code, char mark, size_t length)
{
    struct span line;

    while (code.end > code.at && is_blank(code.end[-1]))
        code.end--;
    line = (struct span){code.end, code.end};
    while (line.at > code.at && line.at[-1] == mark)
        line.at--;
    const char *before = line.at;
    while (before > code.at && (before[-1] == ' ' || before[-1] == '\t'))
        before--;
    if ((size_t)(line.end - line.at) < length || (before > code.at && before[-1] != '\n'))
        line.at = line.end;
    return line;
}

/* What a fence was begun with and not ended has lost its end on the way. A line of tildes may be
 * a program's. */
static struct span without_fence(struct span code)
{
    size_t length;
    struct span opening = opening_of(code, &length);

    if (opening.at == opening.end)
        return code;
    struct span inner = {opening.end + 1, code.end};
    struct span closing = closing_of(inner, *opening.at, length);
    if (closing.at == closing.end)
        return *opening.at == '`' ? inner : code;
    inner.end = closing.at;
    while (inner.end > inner.at && (inner.end[-1] == ' ' || inner.end[-1] == '\t'))
        inner.end--;
    return inner;
}

static void add_lines(struct span s, struct buf *out)
{
    while (s.at < s.end) {
        const char *cr = memmem(s.at, (size_t)(s.end - s.at), "\r\n", 2);
        const char *to = cr ? cr : s.end;

        buf_add(out, s.at, (size_t)(to - s.at));
        s.at = cr ? cr + 1 : s.end;
    }
}

bool code_text_mend(const char *code, size_t len, bool shell, struct buf *out)
{
    const struct span all = {code, code + len};
    const struct span s = without_mark(without_fence(without_mark(all)));
    const size_t left = (size_t)(s.end - s.at);

    if (left == len && !(shell && memmem(code, len, "\r\n", 2)))
        return false;
    if (shell)
        add_lines(s, out);
    else
        buf_add(out, s.at, left);
    return true;
}
