#include "config.h"

#include "common/base/conf_names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_LEN 64
#define SHORT_NAME   6 /* letters below which two slips make another word of it */

size_t conf_names_distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_LEN + 1], n = strlen(b);

    if (n > NAME_MAX_LEN)
        return SIZE_MAX;
    for (size_t i = 0; i <= n; i++)
        row[i] = i;
    for (; *a; a++) {
        size_t before = row[0]++;
        for (size_t i = 1; i <= n; i++) {
            size_t least = before +
                           (tolower((unsigned char)*a) != tolower((unsigned char)b[i - 1]));
            before = row[i];
            least = least < row[i] + 1 ? least : row[i] + 1;
            row[i] = least < row[i - 1] + 1 ? least : row[i - 1] + 1;
        }
    }
    return row[n];
}

const char *conf_names_nearest(const struct conf_row *table, const char *name, size_t most)
{
    const char *nearest = NULL;
    size_t least = most + 1;

    for (const struct conf_row *row = table; row->name; row++) {
        size_t far = row->flags & CONF_FIXED ? SIZE_MAX : conf_names_distance(name, row->name);
        nearest = far < least ? row->name : nearest;
        least = far < least ? far : least;
    }
    return nearest;
}

size_t conf_names_slips(const char *name)
{
    return strlen(name) < SHORT_NAME ? 1 : 2;
}

bool conf_names_prefix_is_ours(const struct conf_row *table, const char *name)
{
    size_t len = strcspn(name, "_");
    for (; name[len] && table->name; table++)
        if (strncasecmp(table->name, name, len + 1) == 0)
            return true;
    return false;
}
