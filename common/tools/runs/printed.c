#include "config.h"

#include "common/tools/runs/printed.h"

#include "common/base/mem.h"
#include "common/base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define OWN_FRAMES     8   /* of a traceback, the innermost */
#define CHAINED        2   /* exceptions that led to the last one */
#define CHAINED_LEN    220 /* bytes of an exception that others led to */
#define CHAINED_TAIL   75  /* of them at its end */
#define LINES_OF_ERROR 40  /* an exception's text before the next traceback */
#define SAVING_MIN     24  /* bytes that counting equal lines must save */

struct span {
    const char *at;
    size_t len;
};

static bool span_is(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool begins(struct span s, const char *text)
{
    size_t len = strlen(text);

    return s.len >= len && memcmp(s.at, text, len) == 0;
}

static bool contains(struct span s, struct span part)
{
    return part.len > 0 && memmem(s.at, s.len, part.at, part.len) != NULL;
}

/* The next line without its end; false: there is none. */
static bool take_line(const char **at, const char *end, struct span *line)
{
    const char *stop;

    if (*at >= end)
        return false;
    stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = (struct span){*at, (size_t)((stop ? stop : end) - *at)};
    *at = stop ? stop + 1 : end;
    return true;
}

/* ---- what a terminal takes ---- */

/* The length of a control sequence of terminals (a colour, say) at s; 0: there is none. */
static size_t sequence_len(const char *s, size_t len)
{
    size_t n = 2;

    if (len < 3 || s[0] != 0x1B || s[1] != '[')
        return 0;
    while (n < len && s[n] >= 0x20 && s[n] < 0x40)
        n++;
    return n < len && s[n] >= 0x40 ? n + 1 : 0; /* a byte above ASCII is of a character */
}

/* Without what would steer the terminal of a client. */
static void add_printable(struct buf *out, const char *s, size_t len)
{
    for (size_t i = 0, skip; i < len; i += skip) {
        unsigned char c = (unsigned char)s[i];

        skip = sequence_len(s + i, len - i);
        if (skip == 0 && ((c < 0x20 && !strchr("\t\n\r", c)) || c == 0 || c == 0x7F))
            buf_add_str(out, "\xEF\xBF\xBD");
        else if (skip == 0)
            buf_add_char(out, s[i]);
        skip += skip == 0;
    }
}

/* ---- a line of a terminal ---- */

struct cell {
    uint32_t at;
    uint32_t len;
};

struct drawn {
    struct cell *cells;
    size_t n, cursor;
};

static void erase(struct drawn *d, char what)
{
    if (what == '2')
        d->n = d->cursor = 0;
    else if (d->n > d->cursor)
        d->n = d->cursor;
}

/* Passes over one character or control sequence; returns its length. */
static size_t draw(struct drawn *d, const char *at, size_t offset, size_t len)
{
    size_t sequence = sequence_len(at, len), one = utf8_char_len(at, len);

    if (sequence > 0) {
        if (at[sequence - 1] == 'K')
            erase(d, at[2]);
        return sequence;
    }
    if (*at == '\r')
        d->cursor = 0;
    else if (*at == '\b')
        d->cursor -= d->cursor > 0;
    else {
        d->cells[d->cursor++] = (struct cell){(uint32_t)offset, (uint32_t)(one > 0 ? one : 1)};
        if (d->n < d->cursor)
            d->n = d->cursor;
        return one > 0 ? one : 1;
    }
    return 1;
}

/* Characters that a later one covers are gone, and so are blanks at the end. */
static void add_drawn(struct span line, struct buf *out)
{
    AUTO_FREE struct cell *cells = mem_array(line.len, sizeof *cells);
    struct drawn d = {.cells = cells};

    for (size_t i = 0; i < line.len;)
        i += draw(&d, line.at + i, i, line.len - i);
    while (d.n > 0 && line.at[cells[d.n - 1].at] == ' ')
        d.n--;
    for (size_t i = 0; i < d.n; i++)
        add_printable(out, line.at + cells[i].at, cells[i].len);
}

static void add_screen(const char *text, size_t len, struct buf *out)
{
    const char *at = text, *end = text + len;
    struct span line;

    while (take_line(&at, end, &line)) {
        while (line.len > 0 && line.at[line.len - 1] == '\r')
            line.len--;
        if (memchr(line.at, '\r', line.len) || memchr(line.at, '\b', line.len))
            add_drawn(line, out);
        else
            add_printable(out, line.at, line.len);
        if (at[-1] == '\n')
            buf_add_char(out, '\n');
    }
}

/* ---- tracebacks of Python ---- */

static const char header[] = "Traceback (most recent call last):";

struct frame {
    struct span file, line, function, code;
};

struct traceback {
    struct frame own[OWN_FRAMES]; /* a ring */
    size_t n_own;
    struct frame last;
    bool any;
    struct span raw; /* of an error of syntax: its place as Python shows it */
    struct span error;
};

/* Moves on behind the mark, and returns what was before it; a NULL at: it is not there. */
static struct span take_until(struct span *rest, const char *mark)
{
    const char *found = rest->len > 0 ? memmem(rest->at, rest->len, mark, strlen(mark)) : NULL;
    struct span before = {NULL, 0};

    if (!found)
        return before;
    before = (struct span){rest->at, (size_t)(found - rest->at)};
    rest->len -= before.len + strlen(mark);
    rest->at = found + strlen(mark);
    return before;
}

/* A line of a traceback: file, line, function. */
static bool frame_of(struct span line, struct frame *out)
{
    *out = (struct frame){.line = {NULL, 0}};
    if (!begins(line, "  File \""))
        return false;
    struct span rest = {line.at + 8, line.len - 8};
    out->file = take_until(&rest, "\", line ");
    out->line = take_until(&rest, ", in ");
    out->function = rest;
    if (out->file.at && !out->line.at) /* an error of syntax */
        out->line = rest;
    return out->file.at != NULL;
}

static bool is_own(struct span file)
{
    static const char *const foreign[] = {"/usr/", "/sandbox/", "<frozen "};
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/.packages/"};

    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (begins(file, foreign[i]))
            return false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (contains(file, (struct span){folders[i], strlen(folders[i])}))
            return false;
    return true;
}

static void keep_frame(struct traceback *t, const struct frame *f)
{
    t->last = *f;
    t->any = true;
    if (is_own(f->file))
        t->own[t->n_own++ % OWN_FRAMES] = *f;
}

static struct span trimmed(struct span line)
{
    while (line.len > 0 && *line.at == ' ')
        line = (struct span){line.at + 1, line.len - 1};
    return line;
}

/* Reads the lines of one, from behind its header up to its exception. */
static bool read_traceback(const char **at, const char *end, struct traceback *t)
{
    struct frame now = {.file = {NULL, 0}};
    const char *next = *at;
    struct span line;

    *t = (struct traceback){.any = false};
    for (; take_line(&next, end, &line) && begins(line, "  "); *at = next) {
        struct frame f;
        if (frame_of(line, &f)) {
            if (now.file.at)
                keep_frame(t, &now);
            now = f;
            t->raw = (struct span){line.at, 0};
        } else if (now.file.at && !now.code.at) {
            now.code = trimmed(line);
        }
        t->raw.len = (size_t)(line.at + line.len - t->raw.at);
    }
    if (!now.file.at || line.len == 0 || begins(line, "  "))
        return false;
    if (now.function.at != now.line.at)
        t->raw.len = 0;
    if (t->raw.len == 0)
        keep_frame(t, &now);
    *at = next;
    t->error = line;
    return true;
}

/* Behind an exception: does the next traceback belong to it? Moves behind its header. */
static bool leads_on(const char **at, const char *end)
{
    static const char *const links[] = {
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:"};
    const char *next = *at;
    struct span line;
    bool linked = false;

    for (size_t i = 0; i < LINES_OF_ERROR && take_line(&next, end, &line); i++) {
        if (linked && span_is(line, header)) {
            *at = next;
            return true;
        }
        if (span_is(line, header))
            return false;
        linked |= span_is(line, links[0]) || span_is(line, links[1]);
    }
    return false;
}

/* In one line; of the program itself without its name. */
static void add_frame(const struct frame *f, struct buf *out)
{
    static const char data[] = "/data/";
    struct span file = f->file;

    if (begins(file, data))
        file = (struct span){file.at + strlen(data), file.len - strlen(data)};
    if (!span_is(file, ".script.py") && !span_is(file, "/tmp/script.py"))
        buf_addf(out, "%.*s ", (int)file.len, file.at);
    buf_addf(out, "line %.*s", (int)f->line.len, f->line.at);
    if (!span_is(f->function, "<module>"))
        buf_addf(out, ", in %.*s", (int)f->function.len, f->function.at);
    if (f->code.len > 0)
        buf_addf(out, ": %.*s", (int)f->code.len, f->code.at);
    buf_add_char(out, '\n');
}

static void add_frames(const struct traceback *t, struct buf *out)
{
    const size_t first = t->n_own > OWN_FRAMES ? t->n_own - OWN_FRAMES : 0;

    if (first > 0)
        buf_addf(out, "[... %zu frames ...]\n", first);
    for (size_t i = first; i < t->n_own; i++)
        add_frame(&t->own[i % OWN_FRAMES], out);
    if (t->n_own == 0 && t->any)
        add_frame(&t->last, out);
    if (t->raw.len > 0)
        buf_addf(out, "%.*s\n", (int)t->raw.len, t->raw.at);
}

/* "KeyError: 'a'" without what stands before its text. */
static struct span text_of(struct span error)
{
    struct span rest = error, name = take_until(&rest, ": ");

    return name.at ? rest : error;
}

/* Those that led to the last one, unless its text has theirs. */
static void add_chained(const struct span *chained, size_t n, struct span last, struct buf *out)
{
    for (size_t i = 0; i < n && i < CHAINED; i++)
        if (!contains(last, text_of(chained[i])))
            buf_addf(out, "first: %.*s\n", (int)chained[i].len, chained[i].at);
}

static void add_error(struct span error, bool chained, struct buf *out)
{
    if (chained && error.len > CHAINED_LEN) {
        size_t head = utf8_cut(error.at, error.len, CHAINED_LEN - CHAINED_TAIL);
        size_t from = error.len - CHAINED_TAIL;
        from += utf8_lost_start(error.at + from, CHAINED_TAIL);
        buf_addf(out, "%.*s … %.*s\n", (int)head, error.at, (int)(error.len - from),
                 error.at + from);
    } else {
        buf_addf(out, "%.*s\n", (int)error.len, error.at);
    }
}

/* From behind a header on; returns where the text goes on, NULL: it is no traceback. */
static const char *add_traceback(const char *at, const char *end, struct buf *out)
{
    struct span chained[CHAINED];
    struct traceback t;
    size_t n = 0;

    if (!read_traceback(&at, end, &t))
        return NULL;
    for (const char *next = at; leads_on(&next, end);) {
        struct span before = t.error;
        struct traceback following;
        if (!read_traceback(&next, end, &following))
            break;
        t = following;
        at = next;
        if (n < CHAINED)
            chained[n] = before;
        n++;
    }
    add_chained(chained, n, t.error, out);
    add_frames(&t, out);
    add_error(t.error, n > 0, out);
    return at;
}

/* ---- equal lines ---- */

struct repeated {
    struct span line;
    size_t n;
};

static void add_repeated(struct repeated *r, struct buf *out)
{
    const size_t saved = r->n > 1 ? (r->n - 1) * (r->line.len + 1) : 0;
    const bool once = trimmed(r->line).len > 0 && saved >= SAVING_MIN;

    for (size_t i = 0; i < (once ? 1 : r->n); i++) {
        buf_add(out, r->line.at, r->line.len);
        if (once)
            buf_addf(out, " (%zu times)", r->n);
        buf_add_char(out, '\n');
    }
    r->n = 0;
}

/* Of a line that ends with a traceback's header, as behind a prompt, what stands before it. */
static struct span prompt_of(struct span line, const char *at, const char *end)
{
    const size_t len = strlen(header);
    struct traceback t;

    if (line.len > len && memcmp(line.at + line.len - len, header, len) == 0 &&
        read_traceback(&at, end, &t))
        return (struct span){line.at, line.len - len};
    return (struct span){line.at, 0};
}

static void add_brief(struct buf *out, const char *text, size_t len)
{
    AUTO_BUF struct buf screen = BUF_INIT(3 * len + 1);
    struct repeated r = {.n = 0};
    struct span line;

    add_screen(text, len, &screen);
    const char *at = buf_str(&screen), *end = at + screen.len;
    while (take_line(&at, end, &line)) {
        if (r.n > 0 && r.line.len == line.len && memcmp(r.line.at, line.at, line.len) == 0) {
            r.n++;
            continue;
        }
        add_repeated(&r, out);
        const struct span prompt = prompt_of(line, at, end);
        if (prompt.len > 0) {
            buf_addf(out, "%.*s\n", (int)prompt.len, prompt.at);
            line = (struct span){line.at + prompt.len, line.len - prompt.len};
        }
        const char *behind = span_is(line, header) ? add_traceback(at, end, out) : NULL;
        if (behind)
            at = behind;
        else
            r = (struct repeated){line, 1};
    }
    add_repeated(&r, out);
    /* The last line ends as it did. */
    if (out->len > 0 && screen.len > 0 && end[-1] != '\n')
        out->data[--out->len] = '\0';
}

/* ---- all ---- */

/* Both end and begin with a whole line, unless it is a long one. */
static size_t head_len(const char *text, size_t len, size_t max)
{
    size_t cut = utf8_cut(text, len, max);
    const char *end = memrchr(text + cut - cut / 4, '\n', cut / 4);

    return end ? (size_t)(end + 1 - text) : cut;
}

static size_t tail_len(const char *text, size_t len, size_t max)
{
    const char *at = text + len - max;
    const char *line = memchr(at, '\n', max / 4);

    if (line)
        return max - (size_t)(line + 1 - at);
    return max - utf8_lost_start(at, max);
}

/* Of a brief text's head or tail as much as has room in brief, in steps of a factor of two; others
 * bytes of the text are already in the other part. */
static size_t part_len(const char *text, size_t len, size_t room, size_t others, bool tail,
                       bool brief)
{
    size_t (*cut)(const char *text, size_t len, size_t max) = tail ? tail_len : head_len;
    size_t part = cut(text, len, room);

    for (size_t max = 2 * room; brief && max > 0 && max + others < len; max *= 2) {
        const size_t more = cut(text, len, max);
        AUTO_BUF struct buf shown = BUF_INIT(3 * more + 1);

        add_brief(&shown, tail ? text + len - more : text, more);
        if (shown.len > room)
            break;
        part = more;
    }
    return part;
}

size_t printed_add(struct buf *out, const char *text, size_t len, size_t room, bool brief)
{
    void (*add)(struct buf * out, const char *text, size_t len) = brief ? add_brief : add_printable;
    AUTO_BUF struct buf all = BUF_INIT(3 * len + 1);
    size_t head, tail;

    if (brief || len <= room)
        add(&all, text, len);
    if (len <= room || (brief && all.len <= room)) {
        buf_add(out, buf_str(&all), all.len);
        return 0;
    }
    head = part_len(text, len, room / 2, room / 2, false, brief);
    tail = part_len(text, len, room / 2, head, true, brief);
    buf_reset(&all);
    add(&all, text, head);
    buf_add(out, buf_str(&all), all.len);
    buf_addf(out, "%s[... %zu bytes left out ...]\n",
             all.len > 0 && all.data[all.len - 1] != '\n' ? "\n" : "", len - head - tail);
    add(out, text + len - tail, tail);
    return head;
}
