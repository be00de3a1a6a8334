/* Clearing the sessions' directory of what nobody needs any more. */
#include "config.h"

#include "common/base/clock.h"
#include "common/mcp/session/mailbox.h"
#include "common/mcp/session/session.h"
#include "common/mcp/session/stream.h"
#include "common/sandbox/files/beneath.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* No call lasts that long: what is older was left by a process that ended in the middle. */
#define CALL_MAX_S (6 * 3600)

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);

    return n >= m && strcmp(name + n - m, suffix) == 0;
}

/* Streams are kept for a while after the last line was written; the writer holds a lock. */
static bool stream_is_over(int dir, const char *name, int64_t age)
{
    if (age <= MCP_STREAM_KEPT_S)
        return false;
    AUTO_FD int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
}

/* Where there are too many, those that nobody has used for a while go first; their clients, if
 * there are any, start again. */
static int64_t life_of_sessions(const struct mcp_server *server, DIR *dir)
{
    const struct dirent *entry;
    unsigned count = 0;

    while ((entry = readdir(dir)))
        count += mcp_session_id_is_valid(entry->d_name);
    rewinddir(dir);
    if (count > MCP_SESSIONS_MAX && server->session_ttl_s > MCP_SESSION_CROWDED_S)
        return MCP_SESSION_CROWDED_S;
    return server->session_ttl_s;
}

static bool is_over(const struct mcp_server *server, int64_t life, const char *name,
                    const struct stat *st)
{
    int64_t age = clock_unix_s() - st->st_mtime;

    if (S_ISREG(st->st_mode) && mcp_session_id_is_valid(name))
        return age > life;
    if (S_ISREG(st->st_mode) && ends_with(name, MCP_STREAM_SUFFIX))
        return stream_is_over(server->sessions_fd, name, age);
    if (S_ISSOCK(st->st_mode) && mcp_mailbox_is_dead(server->sessions_fd, name))
        return true;
    return name[0] != '.' && age > CALL_MAX_S;
}

void mcp_sessions_sweep(const struct mcp_server *server)
{
    AUTO_DIR DIR *dir = server->sessions_fd < 0 ? NULL : beneath_open_dir(server->sessions_fd, ".");
    const struct dirent *entry;
    struct stat st;

    if (!dir)
        return;
    int64_t life = life_of_sessions(server, dir);
    while ((entry = readdir(dir))) {
        if (fstatat(server->sessions_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISDIR(st.st_mode) && is_over(server, life, entry->d_name, &st))
            unlinkat(server->sessions_fd, entry->d_name, 0);
    }
}
