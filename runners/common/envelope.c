#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY_CHUNK 65536

enum got { GOT_ALL, GOT_END, GOT_ERROR };

/* State of one reading: what has been seen, and how much is still allowed. */
struct reading {
    struct envelope *v;
    const struct envelope_way *way;
    uint64_t room;    /* of ENVELOPE_MAX */
    size_t text_room; /* of ENVELOPE_TEXT_MAX */
    bool have_code;
    bool have_input;
    bool have_deadline;
    bool have_names;
};

static enum got read_full(struct reading *r, void *data, size_t len)
{
    char *p = data;

    while (len > 0) {
        r->way->await(r->way->arg, r->v);
        ssize_t n = read(r->way->fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return GOT_ERROR;
        if (n == 0)
            return GOT_END;
        p += n;
        len -= (size_t)n;
    }
    return GOT_ALL;
}

/* What read_full's trouble means for the envelope. */
static enum envelope_end cut_short(enum got got)
{
    if (got == GOT_ERROR)
        entry_say(errno, "reading the envelope");
    return got == GOT_ERROR ? ENVELOPE_BAD : ENVELOPE_GONE;
}

static enum envelope_end bad(const char *what)
{
    entry_say(0, "bad envelope: %s", what);
    return ENVELOPE_BAD;
}

/* Moves len payload bytes into the file to; it closes nothing. */
static enum envelope_end copy_payload(struct reading *r, int to, size_t len, const char *what)
{
    static char chunk[COPY_CHUNK];

    while (len > 0) {
        size_t part = len < sizeof(chunk) ? len : sizeof(chunk);
        enum got got = read_full(r, chunk, part);

        if (got != GOT_ALL)
            return cut_short(got);
        if (!write_all(to, chunk, part)) {
            entry_say(errno, "keeping the %s", what);
            return ENVELOPE_BAD;
        }
        len -= part;
    }
    return ENVELOPE_GO;
}

static enum envelope_end take_code(struct reading *r, size_t len)
{
    int fd;
    enum envelope_end end;

    if (r->have_code)
        return bad("two codes");
    r->have_code = true;
    fd = open(r->way->script, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        entry_say(errno, "creating %s", r->way->script);
        return ENVELOPE_BAD;
    }
    end = copy_payload(r, fd, len, "code");
    close(fd);
    return end;
}

static enum envelope_end take_input(struct reading *r, size_t len)
{
    if (r->have_input)
        return bad("two inputs");
    r->have_input = true;
    return copy_payload(r, r->way->input_fd, len, "input");
}

/* One argument or environment entry as a string of our own, in *out. */
static enum envelope_end take_text(struct reading *r, size_t len, char **out)
{
    enum got got;
    char *text;

    if (len > r->text_room)
        return bad("arguments and environment over their limit");
    r->text_room -= len;
    text = malloc(len + 1);
    if (!text)
        return bad("no memory for arguments");
    got = read_full(r, text, len);
    if (got != GOT_ALL) {
        free(text);
        return cut_short(got);
    }
    text[len] = '\0';
    *out = text;
    return memchr(text, '\0', len) ? bad("NUL in an argument or variable") : ENVELOPE_GO;
}

static enum envelope_end take_item(struct reading *r, size_t len, char ***list, size_t *n)
{
    char **grown;
    enum envelope_end end;

    if (r->v->n_args + r->v->n_env >= ENVELOPE_ITEMS_MAX)
        return bad("too many arguments and variables");
    grown = reallocarray(*list, *n + 2, sizeof(**list));
    if (!grown)
        return bad("no memory for arguments");
    *list = grown;
    end = take_text(r, len, &grown[*n]);
    if (end != ENVELOPE_GO)
        return end;
    grown[++*n] = NULL;
    return ENVELOPE_GO;
}

static enum envelope_end take_variable(struct reading *r, size_t len)
{
    enum envelope_end end = take_item(r, len, &r->v->env, &r->v->n_env);

    if (end == ENVELOPE_GO && strchr("=", r->v->env[r->v->n_env - 1][0]))
        return bad("a variable without a name");
    if (end == ENVELOPE_GO && !strchr(r->v->env[r->v->n_env - 1], '='))
        return bad("a variable without '='");
    return end;
}

static enum envelope_end take_deadline(struct reading *r, size_t len)
{
    char digits[12];
    uint64_t ms = 0;
    enum got got;

    if (r->have_deadline || len == 0 || len > sizeof(digits))
        return bad("deadline");
    r->have_deadline = true;
    got = read_full(r, digits, len);
    if (got != GOT_ALL)
        return cut_short(got);
    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return bad("deadline");
        ms = ms * 10 + (uint64_t)(digits[i] - '0');
    }
    r->v->hard_ms = ms ? ms : 1;
    return ENVELOPE_GO;
}

/* The only record that is not about the program: it comes before those that are. */
static enum envelope_end take_names(struct reading *r, size_t len)
{
    char names[NAMES_MAX + 1];
    enum got got;

    if (r->have_names || r->v->begun || len > NAMES_MAX)
        return bad("names to preload");
    r->have_names = true;
    got = read_full(r, names, len);
    if (got != GOT_ALL)
        return cut_short(got);
    names[len] = '\0';
    r->way->preload(r->way->arg, names);
    return ENVELOPE_GO;
}

static enum envelope_end take_record(struct reading *r, char tag, size_t len)
{
    if (len > r->room)
        return bad("over its limit");
    r->room -= len;
    if (tag == 'P')
        return take_names(r, len);
    r->v->begun = true;
    switch (tag) {
    case 'C':
        return take_code(r, len);
    case 'I':
        return take_input(r, len);
    case 'A':
        return take_item(r, len, &r->v->args, &r->v->n_args);
    case 'E':
        return take_variable(r, len);
    case 'T':
        return take_deadline(r, len);
    default:
        return bad("unknown record");
    }
}

enum envelope_end envelope_read(struct envelope *v, const struct envelope_way *way)
{
    struct reading r = {.v = v, .way = way, .room = ENVELOPE_MAX, .text_room = ENVELOPE_TEXT_MAX};
    unsigned char head[5];
    enum got got = read_full(&r, head, 4);
    enum envelope_end end;

    if (got != GOT_ALL)
        return cut_short(got);
    if (memcmp(head, "SBX1", 4) != 0)
        return bad("wrong magic");
    for (;;) {
        got = read_full(&r, head, sizeof(head));
        if (got != GOT_ALL)
            return cut_short(got);
        size_t len = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
        if (head[0] == 'G')
            break;
        end = take_record(&r, (char)head[0], len);
        if (end != ENVELOPE_GO)
            return end;
    }
    v->went_at_ms = clock_ms();
    return r.have_code ? ENVELOPE_GO : bad("no code");
}
