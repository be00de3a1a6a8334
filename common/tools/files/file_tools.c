/* list_files, move_file, delete_file and delete_conversation. */
#include "config.h"

#include "common/base/glob.h"
#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args_mend.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <string.h>
#include <strings.h>

/* ---- list_files ---- */

#define ROWS_DEFAULT   200
#define LINKS_EACH     20 /* of more files only what they have in common is said */
#define CURSOR_MAX     2048
#define LINE_MAX_BYTES (16u * 1024)
#define FOLDERS_SAID   5

struct list_files {
    const char *conversation;
    const char *folder;
    const char *glob;
    bool recursive;
    bool hidden;
    struct arg_integer limit;
    const char *cursor;
    const char *detail;
};

static const struct arg_row list_files_arguments[] = {
    OLD_CONVERSATION_ROW(struct list_files),
    ARG_ROW(struct list_files, folder, "folder", ARG_NAME, .max = FILES_NAME_MAX, .folder = true,
            .also = "path directory dir", .help = "A folder of /data; left out: /data."),
    ARG_ROW(struct list_files, glob, "glob", ARG_STRING, .max = GLOB_MAX, .below_data = true,
            .also = "pattern filter", .help = "*.csv, or with recursive data/*.csv, **/test_*.py."),
    ARG_ROW(struct list_files, recursive, "recursive", ARG_BOOL,
            .help = "Also what is in its folders."),
    ARG_ROW(struct list_files, hidden, "includeHidden", ARG_BOOL,
            .help = "Also what begins with a dot at the top of /data."),
    ARG_ROW(struct list_files, limit, "limit", ARG_INTEGER, .max = BROKER_LIST_MAX, .at_most = true,
            .listed = args_unlisted, .help = "Entries per answer; 200 when left out."),
    ARG_ROW(struct list_files, cursor, "cursor", ARG_STRING, .max = CURSOR_MAX,
            .help = "Of the answer before."),
    DETAIL_ROW(struct list_files),
    {0},
};

/* "reports/", "chart.png (22 kB)", full with its time. */
static void row_line(struct buf *line, const json_t *row, const struct words_base *base, bool full)
{
    const char *name = json_get_string(row, "name"), *type = json_get_string(row, "type");

    content_clean_name(name ? name : "?", line);
    if (type && strcmp(type, "folder") == 0)
        buf_add_char(line, '/');
    else if (type && strcmp(type, "file") != 0)
        buf_addf(line, " (%s)", type);
    if (json_object_get(row, "size")) {
        buf_add_str(line, " (");
        words_size(line, (uint64_t)json_get_integer(row, "size", 0));
        if (full)
            buf_addf(line, ", modified %" JSON_INTEGER_FORMAT,
                     json_get_integer(row, "modified", 0));
        buf_add_char(line, ')');
    }
    if (base)
        words_link(line, row, base);
    buf_add_char(line, '\n');
}

/* Returns how many rows have room. */
static size_t rows_text(const json_t *rows, size_t room, bool links, bool full, struct buf *text)
{
    const struct words_base base = words_base_of(rows, json_array_size(rows));
    size_t i = 0;

    for (; i < json_array_size(rows); i++) {
        AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);
        row_line(&line, json_array_get(rows, i), links ? &base : NULL, full);
        if (i > 0 && text->len + line.len > room)
            break;
        buf_add(text, line.data, line.len);
    }
    return i;
}

static size_t rows_that_fit(const json_t *rows, size_t room, bool links, bool full)
{
    AUTO_BUF struct buf text = BUF_INIT(room + LINE_MAX_BYTES);

    return rows_text(rows, room, links, full, &text);
}

/* Are the links said? Decided once, so that the rows that have room are those that are shown. */
static bool has_links(const json_t *rows, bool full)
{
    const size_t n = json_array_size(rows);

    return full || n <= LINKS_EACH || words_base_of(rows, n).len > 0;
}

static void list_tell(const struct mcp_tool_call *c, const json_t *page, bool links, bool full,
                      struct mcp_result *out)
{
    const char *next = json_get_string(page, "next");
    json_auto_t *sorted = words_sorted(json_object_get(page, "files"));
    const size_t n = json_array_size(sorted);
    const struct words_base base = words_base_of(sorted, n);
    AUTO_BUF struct buf text = BUF_INIT((n + 1) * LINE_MAX_BYTES);

    rows_text(sorted, SIZE_MAX, links, full, &text);
    mcp_result_show(out, buf_str(&text), text.len);
    if (next)
        mcp_result_say(out, "%zu entries; more with cursor %s", n, next);
    else
        mcp_result_say(out, n == 0 ? "no files" : n == 1 ? "1 entry" : "%zu entries", n);
    if (c->in_text)
        words_say_base(out, &base);
    if (c->in_text && !links && json_get_string(json_array_get(sorted, 0), "url"))
        mcp_result_say(out, "links: %slist_files with limit %d", words_prefix(c), LINKS_EACH);
    if (json_get_bool(page, "incomplete", 0))
        mcp_result_say(out, "some are left out: too deep, too long a name, or unreadable");
}

/* What there is instead of a folder: one of nearly its name, else those beside it. */
static int fail_folder(const struct broker_client *client, const struct list_files *l,
                       struct err *e)
{
    const char *slash = strrchr(l->folder, '/');
    AUTO_FREE char *parent = mem_strndup(l->folder, slash ? (size_t)(slash - l->folder) : 0);
    const struct broker_listing listing = {
        .conversation = l->conversation, .folder = parent, .max = ROWS_DEFAULT};
    AUTO_BUF struct buf names = BUF_INIT(FOLDERS_SAID * 4096);
    struct err ignored = ERR_INIT;
    json_auto_t *page = broker_list_folder(client, &listing, &ignored);
    json_t *row;
    size_t n = 0;

    for (size_t i = 0; (row = json_array_get(json_object_get(page, "files"), i)); i++) {
        const char *name = json_get_string(row, "name"), *type = json_get_string(row, "type");
        if (!name || !type || strcmp(type, "folder") != 0)
            continue;
        if (strcasecmp(name, l->folder) == 0 || args_near(name, l->folder)) {
            buf_reset(&names);
            content_clean_name(name, &names);
            return err_set(e, ERR_NOT_FOUND, "there is no such folder; did you mean '%.300s'?",
                           buf_str(&names));
        }
        if (n++ < FOLDERS_SAID) {
            buf_add_str(&names, n > 1 ? ", " : "");
            content_clean_name(name, &names);
        }
    }
    return err_set(e, ERR_NOT_FOUND, "there is no such folder; %s%.300s%s",
                   n ? "there are: " : "there is none beside it", buf_str(&names),
                   n > FOLDERS_SAID ? ", …" : "");
}

static int list_files(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                      struct err *e)
{
    const struct list_files *l = arguments;
    const bool full = detail_is_full(l->detail);
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    struct broker_listing listing = {.conversation = l->conversation,
                                     .folder = l->folder ? l->folder : "",
                                     .glob = l->glob,
                                     .recursive = l->recursive,
                                     .hidden = l->hidden,
                                     .after = l->cursor,
                                     .max = l->limit.given ? (size_t)l->limit.value : ROWS_DEFAULT};

    if (listing.max == 0)
        return err_set(e, ERR_INVALID, "argument 'limit' must be from 1 to %d", BROKER_LIST_MAX);
    json_auto_t *page = broker_list_folder(&client, &listing, e);
    const json_t *rows = json_object_get(page, "files");
    const bool links = has_links(rows, full);
    const size_t fit = c->in_text ? rows_that_fit(rows, detail_room(c, l->detail), links, full)
                                  : SIZE_MAX;
    if (fit < json_array_size(rows)) {
        listing.max = fit; /* the cursor is that of a page's end */
        json_decref(page);
        page = broker_list_folder(&client, &listing, e);
    }
    /* A conversation that has no sandbox yet has no files. */
    if (!page && e->kind == ERR_NOT_FOUND && !listing.folder[0])
        page = json_pack("{s:[]}", "files");
    if (!page)
        return e->kind == ERR_NOT_FOUND ? fail_folder(&client, l, e) : -1;
    out->structured = json_pack("{s:O, s:O*, s:O*, s:O*}", "files", json_object_get(page, "files"),
                                "nextCursor", json_object_get(page, "next"), "incomplete",
                                json_object_get(page, "incomplete"), "filesExpireAt",
                                json_object_get(page, "filesExpireAt"));
    list_tell(c, page, links, full, out);
    return 0;
}

const struct mcp_tool tool_list_files = {
    .name = "list_files",
    .title = "List files",
    .description = "Lists files and folders of /data with sizes and download links.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_list_files,
    ARGS_TABLE(list_files_arguments, struct list_files),
    .run = list_files,
};

/* The arguments of the next three; each has some of them. */
struct file_arguments {
    const char *conversation, *from, *to, *filename;
    bool overwrite, recursive;
};

/* ---- move_file ---- */

static const struct arg_row move_file_arguments[] = {
    OLD_CONVERSATION_ROW(struct file_arguments),
    ARG_ROW(struct file_arguments, from, "from", ARG_NAME, .required = true, .max = FILES_NAME_MAX,
            .also = "source src oldpath oldname path filename",
            .help = "Name below /data of a file or folder."),
    ARG_ROW(
        struct file_arguments, to, "to", ARG_NAME, .required = true, .max = FILES_NAME_MAX,
        .also = "destination dest target newpath newname",
        .help = "Its whole new name below /data (not the folder to put it in); missing folders are "
                "made."),
    ARG_ROW(struct file_arguments, overwrite, "overwrite", ARG_BOOL, .also = "replace",
            .help = "Replace a file or empty folder of the new name; otherwise that is an error."),
    {0},
};

/* Each file of a moved folder is a change under its new name and under its old one. */
static void publish_moved_folder(const struct changes *changes, const struct broker_client *client,
                                 const struct file_arguments *m)
{
    json_auto_t *came = changes_in_folder(changes, client, m->to);
    json_auto_t *gone = json_array();
    json_t *row;

    for (size_t i = 0; (row = json_array_get(came, i)); i++) {
        const char *name = json_get_string(row, "name");
        AUTO_FREE char *old = name ? mem_printf("%s%s", m->from, name + strlen(m->to)) : NULL;
        if (old)
            json_array_append_new(gone, json_pack("{s:s}", "name", old));
    }
    changes_publish(changes, came);
    changes_publish(changes, gone);
}

static int move_file(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                     struct err *e)
{
    const struct file_arguments *m = arguments;
    const struct changes changes = {c->server, c->tenant, m->conversation};
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    json_t *file = broker_move_file(&client, m->conversation, m->from, m->to, m->overwrite, e);

    if (!file)
        return -1;
    out->structured = json_pack("{s:o}", "file", file);
    if (!json_object_get(file, "url"))
        publish_moved_folder(&changes, &client, m);
    changes_publish_file(&changes, m->from);
    changes_publish_file(&changes, m->to);
    return 0;
}

const struct mcp_tool tool_move_file = {
    .name = "move_file",
    .title = "Move a file",
    .description = "Renames or moves a file or folder of the conversation's /data in the sandbox.",
    /* It replaces a file of the new name only when overwrite is true. */
    .hints = {.destructive = true},
    .output_schema = schema_move_file,
    ARGS_TABLE(move_file_arguments, struct file_arguments),
    .run = move_file,
};

/* ---- delete_file ---- */

static const struct arg_row delete_file_arguments[] = {
    OLD_CONVERSATION_ROW(struct file_arguments),
    FILENAME_ROW(struct file_arguments,
                 "Name below /data of a file, a link (the link itself goes) or a folder."),
    ARG_ROW(struct file_arguments, recursive, "recursive", ARG_BOOL,
            .help = "A folder with everything in it; otherwise only an empty one."),
    {0},
};

static int delete_file(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                       struct err *e)
{
    const struct file_arguments *d = arguments;
    const struct changes changes = {c->server, c->tenant, d->conversation};
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    json_auto_t *below = d->recursive ? changes_in_folder(&changes, &client, d->filename) : NULL;

    out->structured = broker_delete_file(&client, d->conversation, d->filename, d->recursive, e);
    /* Even a failure may have deleted some of the files. */
    changes_publish(&changes, below);
    if (!out->structured)
        return -1;
    changes_publish_file(&changes, d->filename);
    return 0;
}

const struct mcp_tool tool_delete_file = {
    .name = "delete_file",
    .title = "Delete a file",
    .description = "Deletes a file or folder of the conversation's /data in the sandbox for good.",
    .hints = {.destructive = true},
    .output_schema = schema_delete_file,
    ARGS_TABLE(delete_file_arguments, struct file_arguments),
    .run = delete_file,
};

/* ---- delete_conversation ---- */

static const struct arg_row delete_conversation_arguments[] = {
    ARG_ROW(struct file_arguments, conversation, "conversationId", ARG_IDENTIFIER, .required = true,
            .max = CONVERSATION_MAX,
            .help = "The conversation whose files are deleted, all of them."),
    {0},
};

static int delete_conversation(const struct mcp_tool_call *c, void *arguments,
                               struct mcp_result *out, struct err *e)
{
    const struct file_arguments *x = arguments;
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    const struct changes changes = {c->server, c->tenant, x->conversation};

    out->structured = broker_delete_conversation(&client, x->conversation, e);
    if (!out->structured)
        return -1;
    changes_publish_list(&changes);
    mcp_result_say(out,
                   "The conversation is deleted: %" JSON_INTEGER_FORMAT
                   " files and folders, %" JSON_INTEGER_FORMAT " bytes on the disk.",
                   json_get_integer(out->structured, "files", 0),
                   json_get_integer(out->structured, "bytes", 0));
    return 0;
}

const struct mcp_tool tool_delete_conversation = {
    .name = "delete_conversation",
    .title = "Delete a conversation",
    .description = "Deletes all files of a conversation, their download links and the kept "
                   "results of its runs, for good. Nothing may be running in it. The "
                   "conversationId can be used again; it then begins empty.",
    .hints = {.destructive = true, .idempotent = true},
    .frees = true,
    .output_schema = schema_delete_conversation,
    ARGS_TABLE(delete_conversation_arguments, struct file_arguments),
    .run = delete_conversation,
};
