#include "config.h"

#include "common/base/node.h"

#include <stdio.h>
#include <string.h>

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789"
#define SEPARATOR  '-'

static char own[NODE_NAME_MAX + 1];
static struct {
    const char *conversation, *inside;
} stand_in;

bool node_name_ok(const char *name)
{
    size_t len = strspn(name, NAME_CHARS);

    return len > 0 && len <= NODE_NAME_MAX && !name[len];
}

void node_set(const char *name)
{
    snprintf(own, sizeof own, "%s", name ? name : "");
}

const char *node_name(void)
{
    return own;
}

void node_add(const char *id, char *out, size_t size)
{
    snprintf(out, size, "%s%s%s", own, *own ? "-" : "", id);
}

/* The length of the node's name that the id begins with; 0: none. */
static size_t name_len(const char *id)
{
    size_t len = strspn(id, NAME_CHARS);

    return *own && len > 0 && len <= NODE_NAME_MAX && id[len] == SEPARATOR && id[len + 1] ? len : 0;
}

static bool is_own(const char *id, size_t len)
{
    return len == strlen(own) && memcmp(id, own, len) == 0;
}

const char *node_strip(const char *id)
{
    size_t len = name_len(id);

    return len > 0 && is_own(id, len) ? id + len + 1 : id;
}

bool node_other(const char *id, char out[NODE_NAME_MAX + 1])
{
    size_t len = name_len(id);

    if (len == 0 || is_own(id, len))
        return false;
    snprintf(out, NODE_NAME_MAX + 1, "%.*s", (int)len, id);
    return true;
}

void node_stand_in(const char *conversation, const char *inside)
{
    stand_in.conversation = conversation;
    stand_in.inside = inside;
}

bool node_stands_in(void)
{
    return stand_in.conversation != NULL;
}

const char *node_inside(const char *conversation)
{
    return stand_in.conversation && strcmp(conversation, stand_in.conversation) == 0
               ? stand_in.inside
               : conversation;
}

const char *node_outside(const char *inside)
{
    size_t mark = strlen(NODE_STAND_IN);

    return strncmp(inside, NODE_STAND_IN, mark) == 0 &&
                   strnlen(inside + mark, NODE_STAND_IN_HEX) == NODE_STAND_IN_HEX
               ? inside + mark + NODE_STAND_IN_HEX
               : inside;
}
