#include "config.h"

#include "common/mcp/session/session.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/share.h"
#include "common/mcp/events/event.h"
#include "common/mcp/session/mailbox.h"
#include "common/mcp/session/session_seal.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOUCH_AFTER_S 60 /* a session's time of last use is written this often at most */
#define LOCK_NAME     ".lock"
#define NEW_SUFFIX    ".new"
#define TENANT_HEX    16 /* digits of an id */
#define LOOKS_MAX     64 /* sessions of a tenant, one of which ends for a new one */
/* No call lasts longer: older files were left by a process that was killed. */
#define CALL_MAX_S   (6 * 3600)
#define RECORD_DEPTH (JSON_MAX_DEPTH + 4) /* capabilities may be as deep as a message */

bool mcp_session_id_is_valid(const char *id)
{
    return id && strspn(id, "0123456789abcdef") == MCP_SESSION_ID_LEN &&
           id[MCP_SESSION_ID_LEN] == '\0';
}

void mcp_session_clear(struct mcp_session *s)
{
    json_decref(s->record);
    *s = (struct mcp_session){.record = NULL};
}

static int not_found(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "there is no such session (any more): initialize again");
}

/* ---- the files ---- */

static int write_record(int dir, const char *name, const json_t *record, int flags, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(MCP_SESSION_RECORD_MAX);

    json_write(record, &text);
    if (!buf_ok(&text))
        return err_set(e, ERR_LIMIT, "the session's record would be over %u bytes",
                       MCP_SESSION_RECORD_MAX);
    AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (fd < 0)
        return err_errno(e, "cannot make a session's file");
    if (fdio_write_all(fd, text.data, text.len, e) < 0) {
        unlinkat(dir, name, 0);
        return err_wrap(e, "a session's file");
    }
    return 0;
}

static json_t *read_record(int dir, const char *id, struct stat *st)
{
    AUTO_BUF struct buf text = BUF_INIT(MCP_SESSION_RECORD_MAX);
    struct err e = ERR_INIT;
    AUTO_FD int fd = openat(dir, id, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || fdio_read_to_end(fd, &text, &e) < 0)
        return NULL;
    return json_parse(buf_str(&text), text.len, RECORD_DEPTH, &e);
}

int mcp_session_parse(json_t *take_record, struct mcp_session *s)
{
    const char *revision = json_get_string(take_record, "revision");

    s->record = take_record;
    if (!revision || !json_get_string(take_record, "tenant") ||
        mcp_revision_parse(revision, strlen(revision), &s->revision) < 0 ||
        !(MCP_REVISION_BIT(s->revision) & MCP_ANY_LEGACY)) {
        mcp_session_clear(s);
        return -1;
    }
    return 0;
}

static const char *offer_of(const struct mcp_server *server)
{
    return server->offer ? server->offer : "";
}

/* The one used longest ago of up to LOOKS_MAX of the own ones, whose ids begin with tag; "": there
 * is none. They are spread over the directory, whose order may be that in which they were made. */
static void find_old(DIR *dir, const char *tag, size_t own, char out_id[MCP_SESSION_ID_LEN + 1])
{
    size_t step = (own + LOOKS_MAX - 1) / LOOKS_MAX, n = crypto_random_u32() % step;
    const struct dirent *entry;
    int64_t oldest_ns = INT64_MAX;
    struct stat st;

    *out_id = '\0';
    rewinddir(dir);
    while ((entry = readdir(dir))) {
        if (!mcp_session_id_is_valid(entry->d_name) ||
            strncmp(entry->d_name, tag, TENANT_HEX) != 0 || ++n % step != 0 ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            clock_ns_of(st.st_mtim) >= oldest_ns)
            continue;
        oldest_ns = clock_ns_of(st.st_mtim);
        memcpy(out_id, entry->d_name, MCP_SESSION_ID_LEN + 1);
    }
}

/* For one more session of the tenant that the tag stands for. */
static int make_room(const struct mcp_server *server, const char *tag, struct err *e)
{
    AUTO_DIR DIR *dir = beneath_open_dir(server->sessions_fd, ".");
    const struct dirent *entry;
    size_t all = 0, own = 0;
    char old[MCP_SESSION_ID_LEN + 1];

    while (dir && (entry = readdir(dir))) {
        bool is_session = mcp_session_id_is_valid(entry->d_name);
        all += is_session;
        own += is_session && strncmp(entry->d_name, tag, TENANT_HEX) == 0;
    }
    if (share_allows(own, all, server->sessions_max))
        return 0;
    if (own == 0)
        return err_set(e, ERR_BUSY,
                       "%zu sessions are open, which is the most (SANDCGI_MAX_SESSIONS)", all);
    find_old(dir, tag, own, old);
    unlinkat(server->sessions_fd, old, 0);
    return 0;
}

int mcp_session_create(const struct mcp_server *server, const char *tenant,
                       enum mcp_revision revision, const json_t *capabilities, const json_t *info,
                       char *out_id, struct err *e)
{
    json_auto_t *record = json_pack(
        "{s:s, s:s*, s:s, s:o*, s:o*, s:I}", "tenant", tenant, "offer",
        *offer_of(server) ? server->offer : NULL, "revision", mcp_revision_name(revision),
        "capabilities", json_is_object(capabilities) ? json_deep_copy(capabilities) : NULL,
        "clientInfo", json_is_object(info) ? json_deep_copy(info) : NULL, "createdAt",
        (json_int_t)clock_unix_s());

    crypto_tag(tenant, TENANT_HEX / 2, out_id);
    if (make_room(server, out_id, e) < 0) {
        *out_id = '\0';
        return -1;
    }
    if (!*node_name())
        crypto_random_hex((MCP_SESSION_ID_LEN - TENANT_HEX) / 2, out_id + TENANT_HEX);
    else if (session_seal(server, tenant, revision, capabilities, out_id, e) < 0)
        return -1;
    if (write_record(server->sessions_fd, out_id, record, O_EXCL, e) < 0) {
        *out_id = '\0';
        return -1;
    }
    return 0;
}

/* One that another node keeps. */
static int load_away(const struct mcp_server *server, const char *node, const char *id,
                     const char *tenant, struct mcp_session *out, struct err *e)
{
    struct mcp_session s = {.record = NULL};

    s.record = session_unseal(server, node, id, tenant, &s.revision);
    if (!s.record)
        return not_found(e);
    memcpy(s.id, id, MCP_SESSION_ID_LEN + 1);
    snprintf(s.node, sizeof s.node, "%s", node);
    *out = s;
    return 0;
}

int mcp_session_load(const struct mcp_server *server, const char *id, const char *tenant,
                     struct mcp_session *out, struct err *e)
{
    struct mcp_session s = {.record = NULL};
    char node[NODE_NAME_MAX + 1];
    const char *offer;
    struct stat st;
    json_t *record;
    int64_t age;

    if (server->sessions_fd < 0 || !tenant || !id)
        return not_found(e);
    const bool is_own = !node_other(id, node);
    id = is_own ? node_strip(id) : id + strlen(node) + 1;
    if (!mcp_session_id_is_valid(id))
        return not_found(e);
    if (!is_own)
        return load_away(server, node, id, tenant, out, e);
    record = read_record(server->sessions_fd, id, &st);
    if (!record || mcp_session_parse(record, &s) < 0)
        return not_found(e);
    age = clock_unix_s() - st.st_mtime;
    offer = json_get_string(s.record, "offer");
    if (age > server->session_ttl_s || strcmp(json_get_string(s.record, "tenant"), tenant) != 0 ||
        strcmp(offer ? offer : "", offer_of(server)) != 0) {
        mcp_session_clear(&s);
        return not_found(e);
    }
    if (age >= TOUCH_AFTER_S)
        utimensat(server->sessions_fd, id, NULL, AT_SYMLINK_NOFOLLOW);
    memcpy(s.id, id, MCP_SESSION_ID_LEN + 1);
    *out = s;
    return 0;
}

/* ---- changing a record ---- */

/* One lock for all: changes are rare and short. */
static int lock_sessions(int dir, struct err *e)
{
    AUTO_FD int fd = openat(dir, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(e, "cannot open the sessions' lock");
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_errno(e, "cannot lock the sessions");
    return TAKE_FD(fd);
}

static int record_replace(int dir, const struct mcp_session *s, struct err *e)
{
    char name[MCP_SESSION_ID_LEN + sizeof NEW_SUFFIX];

    snprintf(name, sizeof name, "%s" NEW_SUFFIX, s->id);
    if (write_record(dir, name, s->record, O_TRUNC, e) < 0)
        return -1;
    if (renameat(dir, name, dir, s->id) < 0)
        return err_errno(e, "cannot replace a session's file");
    return 0;
}

int mcp_session_set(const struct mcp_server *server, struct mcp_session *s, const char *member,
                    json_t *(*edit)(const json_t *now, void *ctx, struct err *e), void *ctx,
                    struct err *e)
{
    AUTO_FD int lock = lock_sessions(server->sessions_fd, e);
    AUTO_MCP_SESSION struct mcp_session now = {.record = NULL};
    struct stat st;
    json_t *value;

    if (lock < 0)
        return -1;
    json_t *record = read_record(server->sessions_fd, s->id, &st);
    if (!record || mcp_session_parse(record, &now) < 0)
        return not_found(e); /* it ended meanwhile */
    memcpy(now.id, s->id, sizeof now.id);
    value = edit(json_object_get(now.record, member), ctx, e);
    if (!value)
        return -1;
    json_object_set_new(now.record, member, value);
    if (record_replace(server->sessions_fd, &now, e) < 0)
        return -1;
    json_decref(s->record);
    s->record = TAKE_PTR(now.record);
    return 0;
}

/* ---- GET and DELETE ---- */

int mcp_stream_refuse(struct mcp_answer *out, int status, const char *why)
{
    out->status = status;
    out->body = rpc_error_new(NULL, RPC_INVALID_REQUEST, why, NULL);
    return -1;
}

int mcp_session_of_stream(const struct mcp_server *server, const struct mcp_origin *origin,
                          struct mcp_session *out, struct mcp_answer *answer)
{
    struct err e = ERR_INIT;
    const char *version = origin->protocol_version ? origin->protocol_version : "";

    if (server->sessions_fd < 0 || mcp_version_is_modern(version, strlen(version)))
        return mcp_stream_refuse(answer, 405, "use POST");
    if (!origin->session)
        return mcp_stream_refuse(answer, 400, "the header Mcp-Session-Id is missing");
    if (mcp_session_load(server, origin->session, origin->tenant, out, &e) < 0)
        return mcp_stream_refuse(answer, 404, e.text);
    return 0;
}

void mcp_session_delete(const struct mcp_server *server, const struct mcp_origin *origin,
                        struct mcp_answer *out)
{
    AUTO_MCP_SESSION struct mcp_session s = {.record = NULL};

    *out = (struct mcp_answer){.method = "session/end", .detail = ""};
    if (mcp_session_of_stream(server, origin, &s, out) < 0)
        return;
    unlinkat(server->sessions_fd, s.id, 0);
    mcp_publish(server, &(struct mcp_event){
                            .kind = MCP_EVENT_SESSION, .tenant = origin->tenant, .session = s.id});
    out->status = 204;
}

/* ---- expiry ---- */

static bool file_is_over(const struct mcp_server *server, const char *name, const struct stat *st)
{
    size_t len = strlen(name), suffix_len = strlen(MCP_STREAM_SUFFIX);
    int64_t age = clock_unix_s() - st->st_mtime;

    if (S_ISREG(st->st_mode) && mcp_session_id_is_valid(name))
        return age > server->session_ttl_s;
    if (S_ISREG(st->st_mode) && len >= suffix_len &&
        strcmp(name + len - suffix_len, MCP_STREAM_SUFFIX) == 0)
        return age > MCP_STREAM_KEPT_S && mcp_stream_is_left(server->sessions_fd, name);
    if (mcp_mailbox_is_dead(server->sessions_fd, name, age))
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
    while ((entry = readdir(dir))) {
        if (fstatat(server->sessions_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISDIR(st.st_mode) && file_is_over(server, entry->d_name, &st))
            unlinkat(server->sessions_fd, entry->d_name, 0);
    }
}
