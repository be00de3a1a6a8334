/* Packets: the program as the interpreter that waits gets it, and whether it may; what comes. */
#include "runners/common/entry.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Whether the interpreter was started with another value of a variable in the list. */
static bool variable_differs(const char *list, const char *entry)
{
    size_t len = strcspn(entry, "=");
    char *name;
    const char *now;
    bool same;

    if (!list_has(list, entry, len))
        return false;
    name = strndup(entry, len);
    now = name ? getenv(name) : NULL;
    same = now && strcmp(now, entry + len + 1) == 0;
    free(name);
    return !same;
}

bool files_forbid(const struct options *o)
{
    const struct dirent *d;
    bool found = false;
    DIR *dir = o->files ? opendir(o->cwd) : NULL;

    if (!dir)
        return false;
    while (!found && (d = readdir(dir)))
        found = list_has(o->files, d->d_name, strlen(d->d_name));
    closedir(dir);
    return found;
}

bool variables_differ(const char *list, const struct items *w)
{
    for (size_t i = 0; i < w->n_env; i++) {
        if (variable_differs(list, w->env[i]))
            return true;
    }
    return false;
}

/* Puts a letter and a text with its NUL behind the packet; false when it has no room left. */
static bool offer_add(struct offer *o, char letter, const char *text)
{
    size_t size = strlen(text) + 1;

    if (size + 1 > PACKET_MAX - o->len)
        return false;
    o->packet[o->len++] = letter;
    memcpy(o->packet + o->len, text, size);
    o->len += size;
    return true;
}

bool offer_make(struct offer *o, const struct items *w)
{
    bool fits = true;

    o->packet[0] = 'G';
    o->len = 1;
    for (size_t i = 0; fits && i < w->n_args; i++)
        fits = offer_add(o, 'A', w->args[i]);
    for (size_t i = 0; fits && i < w->n_env; i++)
        fits = offer_add(o, 'E', w->env[i]);
    return fits;
}

bool offer_send(const struct offer *o, int fd)
{
    return fd >= 0 && send(fd, o->packet, o->len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)o->len;
}

int packet_take(int *fd, char *text, size_t size)
{
    ssize_t n;

    if (*fd < 0)
        return -1;
    do {
        n = recv(*fd, text, size - 1, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) {
        close(*fd);
        *fd = -1;
        return -1;
    }
    text[n] = '\0';
    return text[0];
}
