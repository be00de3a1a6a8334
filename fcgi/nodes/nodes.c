#include "config.h"

#include "fcgi/nodes/nodes.h"

#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <string.h>

#define LETTERS    "abcdefghijklmnopqrstuvwxyz"
#define DIGITS     "0123456789"
#define UPPER      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_CHARS LETTERS DIGITS
#define HOST_CHARS LETTERS UPPER DIGITS ".-_"
#define LEAVING    "leaving"
#define TAG_BYTES  4 /* of the hash in a name that is made */
#define HEAD_CHARS (NODE_NAME_MAX - 2 * TAG_BYTES)

void nodes_clear(struct nodes *list)
{
    free(list->rows);
    *list = (struct nodes){0};
}

/* ---- names ---- */

static bool is_of(const char *text, const char *chars, size_t max)
{
    const size_t n = strspn(text, chars);

    return n > 0 && n <= max && text[n] == '\0';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int node_name_make(const char *full, char *out, struct err *e)
{
    const size_t len = strnlen(full, NODE_FULL_CHARS + 1);
    struct buf head = BUF_INIT(HEAD_CHARS);
    char tag[CRYPTO_HEX_LEN(TAG_BYTES)];

    if (len == 0 || len > NODE_FULL_CHARS)
        return err_set(e, ERR_INVALID, "a machine's name must have 1 to %d bytes", NODE_FULL_CHARS);
    if (node_name_ok(full)) {
        memcpy(out, full, len + 1);
        return 0;
    }
    for (const char *c = full; *c && head.len < HEAD_CHARS; c++)
        if (strchr(NAME_CHARS, lower(*c)))
            buf_add_char(&head, lower(*c));
    crypto_tag(full, TAG_BYTES, tag);
    memcpy(out, buf_str(&head), head.len);
    memcpy(out + head.len, tag, sizeof tag);
    buf_clear(&head);
    return 0;
}

/* ---- the list ---- */

/* nginx reads it: nothing but a host may stand there. */
static bool host_is_valid(const char *host)
{
    const size_t len = strnlen(host, NODE_HOST_CHARS + 1);

    if (len > NODE_HOST_CHARS)
        return false;
    if (*host != '[')
        return is_of(host, HOST_CHARS, NODE_HOST_CHARS) && strchr(LETTERS UPPER DIGITS, *host);
    const size_t n = strspn(host + 1, "0123456789abcdefABCDEF:.");
    return n > 1 && strcmp(host + 1 + n, "]") == 0;
}

struct node_row *nodes_find(const struct nodes *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->rows[i].name, name) == 0)
            return &list->rows[i];
    return NULL;
}

static const struct node_row *find_address(const struct nodes *list, const char *host,
                                           unsigned port)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->rows[i].port == port && strcmp(list->rows[i].host, host) == 0)
            return &list->rows[i];
    return NULL;
}

int nodes_add(struct nodes *list, const char *name, const char *host, unsigned port,
              enum node_state state, struct err *e)
{
    const struct node_row *same;
    size_t at = 0;

    if (!node_name_ok(name))
        return err_set(e, ERR_INVALID, "a node's name must be 1 to %d of a-z and 0-9, not '%.40s'",
                       NODE_NAME_MAX, name);
    if (!host_is_valid(host))
        return err_set(e, ERR_INVALID, "node %s: '%.40s' is not a host's name or address", name,
                       host);
    if (port < 1 || port > 65535)
        return err_set(e, ERR_INVALID, "node %s: its port must be 1 to 65535", name);
    if (nodes_find(list, name))
        return err_set(e, ERR_EXISTS, "two nodes have the name %s", name);
    if ((same = find_address(list, host, port)))
        return err_set(e, ERR_EXISTS, "the nodes %s and %s have the same address", same->name,
                       name);
    if (list->n == NODES_MAX)
        return err_set(e, ERR_LIMIT, "there are more than %d nodes", NODES_MAX);
    while (at < list->n && strcmp(list->rows[at].name, name) < 0)
        at++;
    list->rows = mem_resize(list->rows, list->n + 1, sizeof *list->rows);
    memmove(list->rows + at + 1, list->rows + at, (list->n - at) * sizeof *list->rows);
    list->rows[at] = (struct node_row){.port = port, .state = state};
    memcpy(list->rows[at].name, name, strlen(name) + 1);
    memcpy(list->rows[at].host, host, strlen(host) + 1);
    list->n++;
    return 0;
}

size_t nodes_count_homes(const struct nodes *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        n += list->rows[i].state != NODE_LEAVING;
    return n;
}

void nodes_drop(struct nodes *list, const char *name)
{
    struct node_row *row = nodes_find(list, name);

    if (!row)
        return;
    list->n--;
    memmove(row, row + 1, (size_t)(list->rows + list->n - row) * sizeof *row);
}

/* ---- the file ---- */

static int read_line(struct nodes *list, char *line, struct err *e)
{
    static const char blanks[] = " \t\r";
    enum node_state state = NODE_READY;
    uint64_t port;
    char *save;

    line[strcspn(line, "#")] = '\0';
    const char *name = strtok_r(line, blanks, &save);
    if (!name)
        return 0;
    char *address = strtok_r(NULL, blanks, &save);
    char *colon = address ? strrchr(address, ':') : NULL;
    const char *word = address ? strtok_r(NULL, blanks, &save) : NULL;
    if (word && strcmp(word, LEAVING) == 0) {
        state = NODE_LEAVING;
        word = strtok_r(NULL, blanks, &save);
    }
    if (!colon || word)
        return err_set(e, ERR_INVALID, "the line must be: NAME HOST:PORT [" LEAVING "]");
    *colon = '\0';
    if (parse_u64(colon + 1, 1, 65535, &port) < 0)
        return err_set(e, ERR_INVALID, "node %.40s: its port must be 1 to 65535", name);
    return nodes_add(list, name, address, (unsigned)port, state, e);
}

int nodes_read(struct nodes *list, char *text, struct err *e)
{
    size_t n = 0;

    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        n++;
        if (read_line(list, line, e) < 0)
            return err_wrap(e, "line %zu", n);
    }
    return 0;
}

/* ---- following ---- */

static int take(struct nodes *out, const struct node_row *row, int64_t seen_ms, struct err *e)
{
    if (nodes_add(out, row->name, row->host, row->port, row->state, e) < 0)
        return -1;
    nodes_find(out, row->name)->seen_ms = seen_ms;
    return 0;
}

/* A node that the control plane names. */
static int follow_named(const struct node_row *row, const struct node_row *was, int64_t now_ms,
                        int64_t keep_ms, struct nodes *out, struct err *e)
{
    if (row->state == NODE_LEAVING)
        return was && now_ms - was->seen_ms < keep_ms ? take(out, row, was->seen_ms, e) : 0;
    return was || row->state == NODE_READY ? take(out, row, now_ms, e) : 0;
}

int nodes_follow(const struct nodes *before, const struct nodes *found, int64_t now_ms,
                 int64_t keep_ms, struct nodes *out, struct err *e)
{
    for (size_t i = 0; i < found->n; i++) {
        const struct node_row *row = &found->rows[i];
        if (follow_named(row, nodes_find(before, row->name), now_ms, keep_ms, out, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < before->n; i++) {
        const struct node_row *was = &before->rows[i];
        if (nodes_find(found, was->name) || now_ms - was->seen_ms >= keep_ms ||
            find_address(out, was->host, was->port)) /* the machine has another name now */
            continue;
        if (take(out, was, was->seen_ms, e) < 0)
            return -1;
    }
    return 0;
}
