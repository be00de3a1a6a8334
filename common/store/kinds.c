#include "config.h"

#include "common/store/kinds.h"

#include <string.h>

static bool is_s3(const struct store_settings *s)
{
    return strncmp(s->place, STORE_S3, strlen(STORE_S3)) == 0;
}

/* Is path the folder, or below it? */
static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    while (len > 1 && folder[len - 1] == '/')
        len--;
    return strncmp(path, folder, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

int store_settings_check(const struct store_settings *s, const char *root_path, struct err *e)
{
    if (!store_is_wanted(s))
        return 0;
    if (is_s3(s))
        return store_s3_check(s, e);
    if (s->place[0] != '/')
        return err_set(e, ERR_INVALID,
                       "SANDBOX_STORE must be a directory's path that begins with /, or "
                       "s3://BUCKET/PREFIX, not \"%.80s\"",
                       s->place);
    if (is_below(s->place, root_path) || is_below(root_path, s->place))
        return err_set(
            e, ERR_INVALID,
            "SANDBOX_STORE must be a directory outside of SANDBOX_ROOT, on another disk");
    return 0;
}

struct store *store_open(const struct store_settings *s, struct err *e)
{
    return is_s3(s) ? store_s3_new(s, e) : store_folder_new(s->place, e);
}
