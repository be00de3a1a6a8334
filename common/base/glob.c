#include "config.h"

#include "common/base/glob.h"

#include <string.h>

/* A set of bits holds all reachable places of the pattern. A byte of the name moves them all in a
 * few instructions, so there is no backtracking. */

static void put(struct glob_set *s, unsigned place)
{
    s->bits[place / 64] |= UINT64_C(1) << place % 64;
}

/* The places of s that are in mask, moved forward by n (n < 64). */
static struct glob_set moved(const struct glob_set *s, const struct glob_set *mask, unsigned n)
{
    struct glob_set out;
    uint64_t carry = 0;

    for (int i = 0; i < GLOB_WORDS; i++) {
        uint64_t bits = s->bits[i] & mask->bits[i];
        out.bits[i] = n ? bits << n | carry : bits;
        carry = n ? bits >> (64 - n) : 0;
    }
    return out;
}

static bool join(struct glob_set *s, const struct glob_set *more)
{
    bool grew = false;

    for (int i = 0; i < GLOB_WORDS; i++) {
        grew |= (more->bits[i] & ~s->bits[i]) != 0;
        s->bits[i] |= more->bits[i];
    }
    return grew;
}

/* Adds the places that need no byte. Runs of them are short: no star follows another. */
static void skip(const struct glob *g, struct glob_set *s)
{
    bool grew;

    do {
        struct glob_set one = moved(s, &g->skips1, 1);
        struct glob_set three = moved(s, &g->skips3, 3);
        grew = join(s, &one);
        grew |= join(s, &three);
    } while (grew);
}

bool glob_matches(const struct glob *g, const char *name)
{
    const char *slash = g->whole ? NULL : strrchr(name, '/');
    struct glob_set at = {{1}};

    skip(g, &at);
    for (const char *p = slash ? slash + 1 : name; *p; p++) {
        unsigned char c = (unsigned char)*p;
        struct glob_set stay = moved(&at, &g->stays[c], 0);

        at = moved(&at, &g->takes[c], 1);
        join(&at, &stay);
        skip(g, &at);
    }
    return at.bits[g->n / 64] >> g->n % 64 & 1;
}

/* ---- compiling ---- */

static bool is_rest(unsigned c)
{
    return (c & 0xc0) == 0x80;
}

static void add_byte(struct glob *g, unsigned char c)
{
    put(&g->takes[c], g->n++);
}

static void add_star(struct glob *g, bool slashes)
{
    for (unsigned c = 1; c < 256; c++)
        if (slashes || c != '/')
            put(&g->stays[c], g->n);
    put(&g->skips1, g->n++);
}

/* One character of a set; others: or any beyond ASCII, whose further bytes stay at the next place.
 */
static void add_one(struct glob *g, const bool ascii[128], bool others)
{
    for (unsigned c = 1; c < 128; c++)
        if (ascii[c] && c != '/')
            put(&g->takes[c], g->n);
    for (unsigned c = 128; others && c < 256; c++)
        put(is_rest(c) ? &g->stays[c] : &g->takes[c], is_rest(c) ? g->n + 1 : g->n);
    g->n++;
}

static const char *add_stars(struct glob *g, const char *start, const char *p)
{
    bool first = p == start || p[-1] == '/';
    size_t n = strspn(p, "*");

    if (n > 1 && first && p[n] == '/') {
        /* Any folders, or none, which skips three places: this one, the star and the slash. */
        put(&g->skips3, g->n);
        put(&g->skips1, g->n++);
        add_star(g, true);
        add_byte(g, '/');
        for (p += n + 1; strncmp(p, "**/", 3) == 0;) /* a repetition matches no more */
            p += 3;
        return p;
    }
    add_star(g, n > 1);
    return p + n;
}

/* p is behind the opening bracket. Returns the place behind the closing one, or NULL. */
static const char *add_bracket(struct glob *g, const char *p, struct err *e)
{
    bool ascii[128] = {false};
    bool inverted = *p == '!' || *p == '^';
    const char *first = p += inverted;

    for (; *p && (*p != ']' || p == first); p++) {
        unsigned char from = (unsigned char)*p, to = from;

        if (p[1] == '-' && p[2] && p[2] != ']') {
            to = (unsigned char)p[2];
            p += 2;
        }
        if (from > 127 || to > 127 || from > to) {
            err_set(e, ERR_INVALID, "brackets hold ASCII characters and ranges that go up only");
            return NULL;
        }
        memset(ascii + from, true, to - from + 1u);
    }
    if (!*p) {
        err_set(e, ERR_INVALID, "a bracket is not closed");
        return NULL;
    }
    for (unsigned c = 0; inverted && c < 128; c++)
        ascii[c] = !ascii[c];
    add_one(g, ascii, inverted);
    return p + 1;
}

/* Adds the first element of p. Returns the place behind it, or NULL. */
static const char *add_next(struct glob *g, const char *start, const char *p, struct err *e)
{
    bool any[128];

    switch (*p) {
    case '*':
        return add_stars(g, start, p);
    case '?':
        memset(any, true, sizeof(any));
        add_one(g, any, true);
        return p + 1;
    case '[':
        return add_bracket(g, p + 1, e);
    case '\\':
        if (!*++p) {
            err_set(e, ERR_INVALID, "a backslash stands at the end");
            return NULL;
        }
        break;
    default:
        break;
    }
    add_byte(g, (unsigned char)*p);
    return p + 1;
}

int glob_compile(const char *field, const char *pattern, struct glob *out, struct err *e)
{
    size_t len = strlen(pattern);

    if (len == 0 || len > GLOB_MAX)
        return err_set(e, ERR_INVALID, "%s must be 1 to %d bytes long", field, GLOB_MAX);
    memset(out, 0, sizeof(*out));
    out->whole = strchr(pattern, '/') != NULL;
    for (const char *p = pattern; p && *p;) {
        p = add_next(out, pattern, p, e);
        if (!p)
            return err_wrap(e, "%s", field);
    }
    return 0;
}
