/*
 * A stream's file: a line with its session, one line of JSON per message, an empty line at the end.
 * The writer holds a lock as long as it lives, so readers can tell a stream that is still being
 * written from one that was left.
 */
#include "config.h"

#include "common/mcp/session/stream.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/base/parse.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAM_HEX   32 /* digits */
#define TENANT_HEX   16 /* of them */
#define NAME_LEN     (STREAM_HEX + sizeof MCP_STREAM_SUFFIX)
#define READ_CHUNK   8192
#define LINE_MAX_LEN (MCP_STREAM_BYTES_MAX + 1024)

struct mcp_stream {
    int fd;
    char name[STREAM_HEX + 1];
    unsigned count; /* messages so far */
    size_t bytes;
};

struct mcp_replay {
    int fd;
    char name[STREAM_HEX + 1];
    unsigned number; /* of the last message that was passed */
    off_t at;        /* behind it */
};

static void make_id(const char *stream, unsigned number, char out_id[MCP_EVENT_ID_MAX])
{
    char id[MCP_EVENT_ID_MAX];

    snprintf(id, sizeof id, "%s-%u", stream, number);
    node_add(id, out_id, MCP_EVENT_ID_MAX);
}

static void file_name(const char *stream, char out[NAME_LEN])
{
    snprintf(out, NAME_LEN, "%s" MCP_STREAM_SUFFIX, stream);
}

/* ---- writing ---- */

static int write_line(struct mcp_stream *s, const json_t *value, struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT(MCP_STREAM_BYTES_MAX - s->bytes);

    json_write(value, &line);
    buf_add_char(&line, '\n');
    if (!buf_ok(&line))
        return err_set(e, ERR_LIMIT, "the stream would be over %u bytes", MCP_STREAM_BYTES_MAX);
    if (fdio_write_all(s->fd, line.data, line.len, e) < 0)
        return err_wrap(e, "a stream's file");
    s->bytes += line.len;
    return 0;
}

static void stream_free(struct mcp_stream *s)
{
    auto_close_fd(&s->fd);
    free(s);
}

/* ---- the bound of a tenant ---- */

struct stream_file {
    char name[NAME_LEN];
    int64_t changed_ns;
    off_t size;
};

static int older_first(const void *a, const void *b)
{
    int64_t x = ((const struct stream_file *)a)->changed_ns,
            y = ((const struct stream_file *)b)->changed_ns;

    return (x > y) - (x < y);
}

/* Removes the oldest of the streams whose names begin so. */
static void make_room(int sessions_fd, const char *tag)
{
    AUTO_DIR DIR *dir = beneath_open_dir(sessions_fd, ".");
    AUTO_FREE struct stream_file *all = NULL;
    size_t n = 0;
    off_t bytes = 0;
    struct stat st;

    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strlen(entry->d_name) != NAME_LEN - 1 || strncmp(entry->d_name, tag, TENANT_HEX) != 0 ||
            fstatat(sessions_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        all = mem_resize(all, n + 1, sizeof *all);
        all[n] = (struct stream_file){.changed_ns = clock_ns_of(st.st_mtim), .size = st.st_size};
        memcpy(all[n++].name, entry->d_name, NAME_LEN);
        bytes += st.st_size;
    }
    if (n > 0)
        qsort(all, n, sizeof *all, older_first);
    for (size_t i = 0, left = n; i < n; i++) {
        if (left < MCP_STREAMS_MAX && bytes < (off_t)MCP_STREAMS_BYTES_MAX)
            return;
        if (!mcp_stream_is_left(sessions_fd, all[i].name))
            continue;
        unlinkat(sessions_fd, all[i].name, 0);
        bytes -= all[i].size;
        left--;
    }
}

struct mcp_stream *mcp_stream_new(int sessions_fd, const char *tenant, const char *session,
                                  struct err *e)
{
    struct mcp_stream *s = mem_alloc(sizeof *s);
    json_auto_t *head = json_pack("{s:s}", "session", session);
    char name[NAME_LEN];

    crypto_tag(tenant, TENANT_HEX / 2, s->name);
    make_room(sessions_fd, s->name);
    crypto_random_hex((STREAM_HEX - TENANT_HEX) / 2, s->name + TENANT_HEX);
    file_name(s->name, name);
    s->fd = openat(sessions_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (s->fd < 0) {
        err_errno(e, "cannot make a stream's file");
    } else if (flock(s->fd, LOCK_EX) < 0) { /* a reader's look at it takes a moment */
        err_errno(e, "cannot lock a stream's file");
    } else if (write_line(s, head, e) == 0) {
        return s;
    }
    stream_free(s);
    return NULL;
}

int mcp_stream_add(struct mcp_stream *s, const json_t *message, char out_id[MCP_EVENT_ID_MAX],
                   struct err *e)
{
    /* Notifications must leave room for requests to the client and the answer. */
    bool is_note = !json_object_get(message, "id");

    if (s->count >= (is_note ? MCP_STREAM_NOTES_MAX : MCP_STREAM_MESSAGES_MAX) ||
        (is_note && s->bytes >= MCP_STREAM_NOTES_BYTES_MAX))
        return err_set(e, ERR_LIMIT, "the stream has %u messages", s->count);
    if (write_line(s, message, e) < 0)
        return -1;
    make_id(s->name, ++s->count, out_id);
    return 0;
}

void mcp_stream_first_id(const struct mcp_stream *s, char out_id[MCP_EVENT_ID_MAX])
{
    make_id(s->name, 0, out_id);
}

void mcp_stream_end(struct mcp_stream *s)
{
    struct err e = ERR_INIT;

    if (!s)
        return;
    fdio_write_all(s->fd, "\n", 1, &e); /* if it fails, the free lock marks the end */
    stream_free(s);
}

/* ---- reading ---- */

/* "<32 hex>-<number>" of hostile text. */
static int parse_id(const char *id, char stream[STREAM_HEX + 1], unsigned *out_number)
{
    uint64_t number;

    id = node_strip(id);
    if (strspn(id, "0123456789abcdef") != STREAM_HEX || id[STREAM_HEX] != '-' ||
        parse_u64(id + STREAM_HEX + 1, 0, MCP_STREAM_MESSAGES_MAX, &number) < 0)
        return -1;
    memcpy(stream, id, STREAM_HEX);
    stream[STREAM_HEX] = '\0';
    *out_number = (unsigned)number;
    return 0;
}

/* The next whole line, without its end: 1, or 0 when there is none (yet). */
static int read_line(struct mcp_replay *r, struct buf *line)
{
    off_t at = r->at;

    buf_reset(line);
    for (;;) {
        char *room = buf_reserve(line, READ_CHUNK);
        ssize_t n = room ? pread(r->fd, room, READ_CHUNK, at) : -1;
        if (n < 0 && room && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        char *end = memchr(room, '\n', (size_t)n);
        buf_grew(line, end ? (size_t)(end - room) : (size_t)n);
        at += end ? end - room + 1 : n;
        if (end) {
            r->at = at;
            return 1;
        }
    }
}

/* Checks the head and skips the messages that the client has. */
static int replay_skip_to(struct mcp_replay *r, const char *session, unsigned number)
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_LEN);
    struct err e = ERR_INIT;

    if (!read_line(r, &line))
        return -1;
    json_auto_t *head = json_parse(buf_str(&line), line.len, 2, &e);
    const char *owner = json_get_string(head, "session");
    if (!owner || strcmp(owner, session) != 0)
        return -1;
    for (; r->number < number; r->number++)
        if (!read_line(r, &line) || line.len == 0)
            return -1;
    return 0;
}

struct mcp_replay *mcp_replay_open(int sessions_fd, const char *session, const char *last_event_id,
                                   struct err *e)
{
    struct mcp_replay *r = mem_alloc(sizeof *r);
    char name[NAME_LEN];
    unsigned number;

    r->fd = -1;
    if (parse_id(last_event_id, r->name, &number) < 0) {
        err_set(e, ERR_INVALID, "Last-Event-ID is not an id of this server");
        goto failed;
    }
    file_name(r->name, name);
    r->fd = openat(sessions_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (r->fd < 0 || replay_skip_to(r, session, number) < 0) {
        err_set(e, ERR_NOT_FOUND, "this session has no such stream any more");
        goto failed;
    }
    return r;
failed:
    mcp_replay_free(r);
    return NULL;
}

int mcp_replay_fd(const struct mcp_replay *r)
{
    return r->fd;
}

/* True if no writer holds the lock: what is not there now will never come. */
static bool writer_is_gone(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) < 0)
        return false;
    flock(fd, LOCK_UN);
    return true;
}

bool mcp_stream_is_left(int sessions_fd, const char *name)
{
    AUTO_FD int fd = openat(sessions_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    return fd >= 0 && writer_is_gone(fd);
}

bool mcp_replay_is_over(const struct mcp_replay *r)
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_LEN);
    struct mcp_replay ahead = *r;
    bool gone = writer_is_gone(r->fd);

    return read_line(&ahead, &line) ? line.len == 0 : gone;
}

int mcp_replay_next(struct mcp_replay *r, json_t **out, char out_id[MCP_EVENT_ID_MAX])
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_LEN);
    struct err e = ERR_INIT;
    bool gone = writer_is_gone(r->fd); /* before reading: it may write its last line in between */

    if (!read_line(r, &line))
        return gone ? -1 : 0;
    if (line.len == 0 || !(*out = json_parse(line.data, line.len, JSON_MAX_DEPTH + 8, &e)))
        return -1;
    make_id(r->name, ++r->number, out_id);
    return 1;
}

void mcp_replay_free(struct mcp_replay *r)
{
    if (!r)
        return;
    auto_close_fd(&r->fd);
    free(r);
}

/* ---- Server-Sent Events ---- */

/* Compact JSON has no line breaks outside of strings, and escapes those inside. */
void sse_add_message(struct buf *out, const char *id, const json_t *message)
{
    if (id)
        buf_addf(out, "id: %s\n", id);
    buf_add_str(out, "event: message\ndata: ");
    json_write(message, out);
    buf_add_str(out, "\n\n");
}

void sse_add_priming(struct buf *out, const char *id, int retry_ms)
{
    buf_addf(out, "id: %s\nretry: %d\ndata: \n\n", id, retry_ms);
}

void sse_add_comment(struct buf *out)
{
    buf_add_str(out, ": \n\n");
}
