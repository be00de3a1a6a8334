#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY_CHUNK 65536

/* One reading: what has come, and how much more may. */
struct reading {
    struct envelope *v;
    struct warm *warm;
    uint64_t room;    /* of ENVELOPE_MAX */
    size_t text_room; /* of ENVELOPE_TEXT_MAX */
    bool have_code;
    bool have_input;
    bool have_deadline;
    bool have_names;
};

static enum envelope_end envelope_bad(const char *what)
{
    entry_error(0, "bad envelope: %s", what);
    return ENVELOPE_BAD;
}

static enum envelope_end read_full(struct reading *r, void *data, size_t len)
{
    char *p = data;

    while (len > 0) {
        warm_await_input(r->warm, r->v);
        ssize_t n = read(STDIN_FILENO, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            entry_error(errno, "reading the envelope");
            return ENVELOPE_BAD;
        }
        if (n == 0)
            return ENVELOPE_GONE;
        p += n;
        len -= (size_t)n;
    }
    return ENVELOPE_GO;
}

/* Copies len payload bytes to the file. */
static enum envelope_end copy_payload(struct reading *r, int to, size_t len, const char *what)
{
    static char chunk[COPY_CHUNK];

    while (len > 0) {
        size_t part = len < sizeof(chunk) ? len : sizeof(chunk);
        enum envelope_end end = read_full(r, chunk, part);

        if (end != ENVELOPE_GO)
            return end;
        if (!write_all(to, chunk, part)) {
            entry_error(errno, "keeping the %s", what);
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
        return envelope_bad("code twice");
    r->have_code = true;
    fd = open(r->warm->options->script, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
              0600);
    if (fd < 0) {
        entry_error(errno, "creating %s", r->warm->options->script);
        return ENVELOPE_BAD;
    }
    end = copy_payload(r, fd, len, "code");
    close(fd);
    return end;
}

/* One argument or environment entry as a string of our own, in *out. */
static enum envelope_end take_text(struct reading *r, size_t len, char **out)
{
    enum envelope_end end;
    char *text;

    if (len > r->text_room)
        return envelope_bad("arguments and environment over their limit");
    r->text_room -= len;
    text = malloc(len + 1);
    if (!text)
        return envelope_bad("no memory for arguments");
    end = read_full(r, text, len);
    if (end != ENVELOPE_GO) {
        free(text);
        return end;
    }
    text[len] = '\0';
    *out = text;
    return memchr(text, '\0', len) ? envelope_bad("NUL in an argument or variable") : ENVELOPE_GO;
}

static enum envelope_end take_item(struct reading *r, size_t len, char ***list, size_t *n)
{
    char **grown;
    enum envelope_end end;

    if (r->v->n_args + r->v->n_env >= ENVELOPE_ITEMS_MAX)
        return envelope_bad("too many arguments and variables");
    grown = reallocarray(*list, *n + 2, sizeof(**list));
    if (!grown)
        return envelope_bad("no memory for arguments");
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
        return envelope_bad("a variable without a name");
    if (end == ENVELOPE_GO && !strchr(r->v->env[r->v->n_env - 1], '='))
        return envelope_bad("a variable without '='");
    return end;
}

static enum envelope_end take_deadline(struct reading *r, size_t len)
{
    char text[13] = {0};
    enum envelope_end end;

    if (r->have_deadline || len == 0 || len >= sizeof(text))
        return envelope_bad("deadline");
    r->have_deadline = true;
    end = read_full(r, text, len);
    if (end != ENVELOPE_GO)
        return end;
    if (strspn(text, "0123456789") != len)
        return envelope_bad("deadline");
    r->v->hard_ms = digits(text);
    if (r->v->hard_ms == 0)
        r->v->hard_ms = 1;
    return ENVELOPE_GO;
}

/* It is not about the program, and comes before the records that are. */
static enum envelope_end take_names(struct reading *r, size_t len)
{
    char names[NAMES_MAX + 1];
    enum envelope_end end;

    if (r->have_names || r->v->begun || len > NAMES_MAX)
        return envelope_bad("names to preload");
    r->have_names = true;
    end = read_full(r, names, len);
    if (end != ENVELOPE_GO)
        return end;
    names[len] = '\0';
    warm_preload(r->warm, names);
    return ENVELOPE_GO;
}

static enum envelope_end take_record(struct reading *r, char tag, size_t len)
{
    if (len > r->room)
        return envelope_bad("over its limit");
    r->room -= len;
    if (tag == 'P')
        return take_names(r, len);
    r->v->begun = true;
    switch (tag) {
    case 'C':
        return take_code(r, len);
    case 'I':
        if (r->have_input)
            return envelope_bad("input twice");
        r->have_input = true;
        return copy_payload(r, r->warm->input->fill_fd, len, "input");
    case 'A':
        return take_item(r, len, &r->v->args, &r->v->n_args);
    case 'E':
        return take_variable(r, len);
    case 'T':
        return take_deadline(r, len);
    default:
        return envelope_bad("unknown record");
    }
}

enum envelope_end envelope_read(struct envelope *v, struct warm *w)
{
    struct reading r = {.v = v, .warm = w, .room = ENVELOPE_MAX, .text_room = ENVELOPE_TEXT_MAX};
    char head[FRAME_HEAD];
    enum envelope_end end = read_full(&r, head, 4);

    if (end == ENVELOPE_GO && memcmp(head, "SBX1", 4) != 0)
        return envelope_bad("wrong magic");
    while (end == ENVELOPE_GO && (end = read_full(&r, head, sizeof(head))) == ENVELOPE_GO) {
        if (head[0] == 'G') {
            v->went_at_ms = clock_ms();
            return r.have_code ? ENVELOPE_GO : envelope_bad("no code");
        }
        end = take_record(&r, head[0], u32_get(head + 1));
    }
    return end;
}
