#include "config.h"

#include "tests/fakes/fake_broker.h"

#include "common/protocol/client_files.h"
#include "common/protocol/client_runs.h"

#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_broker fake_broker;

void fake_broker_reset(void)
{
    json_decref(fake_broker.runners);
    json_decref(fake_broker.run_results);
    json_decref(fake_broker.files);
    json_decref(fake_broker.runs);
    json_decref(fake_broker.puts);
    json_decref(fake_broker.pages);
    json_decref(fake_broker.names);
    json_decref(fake_broker.lists);
    json_decref(fake_broker.looks);
    json_decref(fake_broker.live);
    json_decref(fake_broker.run_list);
    json_decref(fake_broker.archive);
    json_decref(fake_broker.asked);
    json_decref(fake_broker.file_answers);
    json_decref(fake_broker.file_asks);
    fake_broker = (struct fake_broker){
        .run_results = json_array(),
        .files = json_object(),
        .runs = json_array(),
        .puts = json_array(),
        .pages = json_array(),
        .lists = json_array(),
        .looks = json_array(),
        .asked = json_array(),
        .file_answers = json_array(),
        .file_asks = json_array(),
    };
    err_set(&fake_broker.trouble, ERR_UNAVAILABLE, "connect /run/secret.sock: refused");
}

static json_t *load(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);

    assert(value);
    return value;
}

void fake_broker_set_runners(const char *text)
{
    json_decref(fake_broker.runners);
    fake_broker.runners = load(text);
}

void fake_broker_push_page(const char *text)
{
    json_array_append_new(fake_broker.pages, load(text));
}

void fake_broker_push_file_answer(const char *text)
{
    json_array_append_new(fake_broker.file_answers, text ? load(text) : json_null());
}

void fake_broker_set_names(const char *text)
{
    json_decref(fake_broker.names);
    fake_broker.names = load(text);
}

void fake_broker_set_archive(const char *text)
{
    json_decref(fake_broker.archive);
    fake_broker.archive = load(text);
}

void fake_broker_push_result(const char *text)
{
    json_array_append_new(fake_broker.run_results, load(text));
}

void fake_broker_push_ok(const char *stdout_text, const char *files)
{
    json_t *stream = json_pack("{s:b, s:i, s:i}", "truncated", 0, "kept", 0, "total", 0);
    json_t *result = json_pack(
        "{s:b, s:s, s:i, s:n, s:s, s:s, s:s, s:{s:O, s:O, s:O}, s:i, s:i, s:n, s:s, s:o, s:i, s:s}",
        "success", 1, "status", "ok", "exitCode", 0, "signal", "stdout", stdout_text, "stderr", "",
        "output", stdout_text, "truncation", "stdout", stream, "stderr", stream, "output", stream,
        "durationMs", 12, "cpuMs", 3, "peakMemoryBytes", "runId", "0123", "files", load(files),
        "filesOmitted", 0, "fileBaseUrl", "https://x.test/files/ab");

    assert(result);
    json_decref(stream);
    json_array_append_new(fake_broker.run_results, result);
}

void fake_broker_add_file(const char *name, const void *data, size_t len)
{
    AUTO_BUF struct buf encoded = BUF_INIT(B64_ENCODED_LEN(len));

    b64_encode(data, len, &encoded);
    json_object_set_new(fake_broker.files, name, json_string(buf_str(&encoded)));
}

static json_t *text_or_null(struct run_text t)
{
    return t.data ? json_stringn(t.data, t.len) : json_null();
}

static json_t *request_to_json(const struct run_request *r)
{
    json_t *args = json_array();
    json_t *env = json_object();

    for (size_t i = 0; i < r->n_args; i++)
        json_array_append_new(args, text_or_null(r->args[i]));
    for (size_t i = 0; i < r->n_env; i++)
        json_object_set_new(env, r->env[i].name, json_string(r->env[i].value));
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:b, s:o*, s:I, s:I, s:o, s:o}", "tenant",
                     r->tenant, "conversationId", r->conversation, "language", r->language, "code",
                     text_or_null(r->code), "stdin", text_or_null(r->input), "network",
                     r->network != NETWORK_NONE, "singleUse", r->single_use ? json_true() : NULL,
                     "timeoutMs", (json_int_t)r->timeout_ms, "keepBytes", (json_int_t)r->keep_bytes,
                     "args", args, "env", env);
}

static void tell_live(const struct broker_callbacks *callbacks, const json_t *piece)
{
    static const char *const names[] = {"stdout", "stderr"};
    struct broker_live live = {
        .kind = BROKER_LIVE_SKIPPED,
        .skipped = (uint64_t)json_integer_value(json_object_get(piece, "skipped")),
        .next_byte = (uint64_t)json_integer_value(json_object_get(piece, "nextByte"))};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *text = json_object_get(piece, names[i]);
        if (text) {
            live.kind = (enum broker_live_kind)i;
            live.text = (struct run_text){json_string_value(text), json_string_length(text)};
        }
    }
    if (callbacks && callbacks->live)
        callbacks->live(callbacks->ctx, &live);
}

/* The first of a queue of answers, or the trouble; before it what is to be heard. */
static json_t *answer(json_t *queue, const struct broker_callbacks *callbacks, struct err *e)
{
    json_t *result = json_array_get(queue, 0);
    json_t *piece;
    size_t i;

    if (callbacks && callbacks->queued && fake_broker.queued > 0)
        callbacks->queued(callbacks->ctx, fake_broker.queued);
    json_array_foreach(fake_broker.live, i, piece) tell_live(callbacks, piece);
    if (!result) {
        if (callbacks && callbacks->busy)
            *callbacks->busy = fake_broker.busy;
        *e = fake_broker.trouble;
        return NULL;
    }
    json_incref(result); /* the queue lets go of it */
    json_array_remove(queue, 0);
    return result;
}

static int make_file(const char *encoded)
{
    AUTO_BUF struct buf content = BUF_INIT(64u * 1024 * 1024);
    AUTO_FD int fd = memfd_create("file", MFD_CLOEXEC);
    struct err e = ERR_INIT;

    assert(b64_decode(encoded, strlen(encoded), &content) == 0);
    assert(fdio_write_all(fd, content.data, content.len, &e) == 0);
    lseek(fd, 0, SEEK_SET);
    return TAKE_FD(fd);
}

static void open_files(const json_t *result, struct fds *out)
{
    size_t i;
    json_t *row;

    json_array_foreach(json_object_get(result, "files"), i, row)
    {
        const json_t *text = json_object_get(fake_broker.files,
                                             json_string_value(json_object_get(row, "name")));
        if (!json_object_get(row, "url"))
            continue;
        if (out->n == fake_broker.opened || !text)
            return;
        fds_add(out, make_file(json_string_value(text)));
    }
}

json_t *broker_run(const struct broker_client *c, const struct run_request *request,
                   const struct broker_run_options *options, struct err *e)
{
    json_t *asked = request_to_json(request);

    if (options) {
        json_object_set_new(asked, "waitMs", json_integer((json_int_t)options->options.wait_ms));
        json_object_set_new(asked, "background", json_boolean(options->options.background));
        json_object_set_new(asked, "detach", json_boolean(options->options.detach));
        if (options->open_files)
            open_files(json_array_get(fake_broker.run_results, 0), options->open_files);
        if (options->options.imports)
            json_object_set_new(asked, "imports", json_deep_copy(options->options.imports));
    }
    if (options && options->options.keep_over > 0)
        json_object_set_new(asked, "keepOver",
                            json_integer((json_int_t)options->options.keep_over));
    json_array_append_new(fake_broker.runs, asked);
    for (int i = 0; c->tick && i < fake_broker.ticks; i++)
        c->tick(c->tick_ctx);
    return answer(fake_broker.run_results, options ? &options->callbacks : NULL, e);
}

json_t *broker_get_run(const struct broker_client *c, const char *run_id,
                       const struct broker_poll_options *look, struct err *e)
{
    json_t *asked = json_pack("{s:s, s:s, s:s, s:I}", "op", "get_run", "tenant", c->tenant, "runId",
                              run_id, "waitMs", (json_int_t)look->wait_ms);

    if (look->to_end)
        json_object_set_new(asked, "toEnd", json_true());
    if (look->since_given)
        json_object_set_new(asked, "sinceByte", json_integer((json_int_t)look->since_byte));
    json_array_append_new(fake_broker.asked, asked);
    for (int i = 0; c->tick && i < fake_broker.ticks; i++)
        c->tick(c->tick_ctx);
    return answer(fake_broker.looks, &look->callbacks, e);
}

json_t *broker_cancel_run(const struct broker_client *c, const char *run_id, struct err *e)
{
    json_array_append_new(fake_broker.asked, json_pack("{s:s, s:s, s:s}", "op", "cancel_run",
                                                       "tenant", c->tenant, "runId", run_id));
    return answer(fake_broker.looks, NULL, e);
}

json_t *broker_list_runs(const struct broker_client *c, const char *conversation, struct err *e)
{
    json_array_append_new(fake_broker.asked,
                          json_pack("{s:s, s:s, s:s?}", "op", "list_runs", "tenant", c->tenant,
                                    "conversationId", conversation));
    if (!fake_broker.run_list) {
        *e = fake_broker.trouble;
        return NULL;
    }
    return json_deep_copy(fake_broker.run_list);
}

json_t *broker_put_file(const struct broker_client *c, const char *conversation, const char *name,
                        int fd, size_t size, bool replace, struct err *e)
{
    AUTO_BUF struct buf content = BUF_INIT(64u * 1024 * 1024);

    if (fake_broker.trouble.kind != ERR_NONE) {
        *e = fake_broker.trouble;
        return NULL;
    }
    if (fdio_read_to_end(fd, &content, e) < 0)
        return NULL;
    assert(content.len == size);
    json_array_append_new(fake_broker.puts,
                          json_pack("{s:s, s:s, s:s, s:b, s:s%}", "tenant", c->tenant,
                                    "conversationId", conversation, "name", name, "replace",
                                    replace, "content", buf_str(&content), content.len));
    return json_pack("{s:s, s:I, s:s}", "name", name, "size", (json_int_t)size, "url",
                     "https://x.test/files/ab/file");
}

static json_t *answer_file(json_t *take_asked, struct err *e)
{
    json_t *told;

    json_array_append_new(fake_broker.file_asks, take_asked);
    told = answer(fake_broker.file_answers, NULL, e);
    if (!json_is_null(told))
        return told;
    err_set(e, ERR_NOT_FOUND, "there is none");
    return NULL;
}

json_t *broker_list_folder(const struct broker_client *c, const struct broker_listing *l,
                           struct err *e)
{
    return answer_file(json_pack("{s:s, s:s, s:s, s:s, s:s*, s:b, s:s*, s:I}", "op", "list_folder",
                                 "tenant", c->tenant, "conversationId", l->conversation, "folder",
                                 l->folder, "glob", l->glob, "recursive", l->recursive, "after",
                                 l->after, "max", (json_int_t)l->max),
                       e);
}

json_t *broker_delete_file(const struct broker_client *c, const char *conversation,
                           const char *name, bool recursive, struct err *e)
{
    return answer_file(json_pack("{s:s, s:s, s:s, s:s, s:b}", "op", "delete", "tenant", c->tenant,
                                 "conversationId", conversation, "name", name, "recursive",
                                 recursive),
                       e);
}

json_t *broker_move_file(const struct broker_client *c, const char *conversation, const char *from,
                         const char *to, bool replace, struct err *e)
{
    return answer_file(json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "op", "move", "tenant",
                                 c->tenant, "conversationId", conversation, "from", from, "to", to,
                                 "replace", replace),
                       e);
}

json_t *broker_create_upload(const struct broker_client *c, const char *conversation,
                             const char *filename, uint64_t size, struct err *e)
{
    return answer_file(json_pack("{s:s, s:s, s:s, s:s, s:I}", "op", "create_upload", "tenant",
                                 c->tenant, "conversationId", conversation, "name", filename,
                                 "size", (json_int_t)size),
                       e);
}

json_t *broker_import_url(const struct broker_client *c, const char *conversation, const char *url,
                          const char *filename, struct err *e)
{
    return answer_file(json_pack("{s:s, s:s, s:s, s:s, s:s*}", "op", "import_url", "tenant",
                                 c->tenant, "conversationId", conversation, "url", url, "name",
                                 filename),
                       e);
}

int broker_open_file(const struct broker_client *c, const char *conversation, const char *name,
                     struct stat *out, struct err *e)
{
    const char *encoded = json_string_value(json_object_get(fake_broker.files, name));

    (void)c;
    (void)conversation;
    fake_broker.opens++;
    if (!encoded)
        return err_set(e, ERR_NOT_FOUND, "no such file");
    AUTO_FD int fd = make_file(encoded);
    fstat(fd, out);
    return TAKE_FD(fd);
}

int broker_open_linked(const struct broker_client *c, const char *conversation, const char *name,
                       struct stat *out, char **out_url, struct err *e)
{
    int fd = broker_open_file(c, conversation, name, out, e);

    if (fd >= 0)
        *out_url = mem_printf("https://x.test/%s", name);
    return fd;
}

json_t *broker_list_files(const struct broker_client *c, const json_t *conversations,
                          const json_t *after, size_t max, struct err *e)
{
    json_t *page = json_array_get(fake_broker.pages, 0);
    json_t *asked_after = after ? json_deep_copy(after) : json_null();

    json_array_append_new(fake_broker.lists,
                          json_pack("{s:s, s:O, s:o, s:I}", "tenant", c->tenant, "conversations",
                                    conversations, "after", asked_after, "max", (json_int_t)max));
    if (!page) {
        *e = fake_broker.trouble;
        return NULL;
    }
    json_incref(page); /* the queue lets go of it */
    json_array_remove(fake_broker.pages, 0);
    return page;
}

json_t *broker_names(const struct broker_client *c, const char *conversation, const char *prefix,
                     size_t max, struct err *e)
{
    json_array_append_new(fake_broker.lists,
                          json_pack("{s:s, s:s?, s:s, s:I}", "tenant", c->tenant, "conversationId",
                                    conversation, "prefix", prefix, "max", (json_int_t)max));
    if (!fake_broker.names) {
        *e = fake_broker.trouble;
        return NULL;
    }
    return json_deep_copy(fake_broker.names);
}

static json_t *archive_answer(json_t *take_asked, struct err *e)
{
    json_array_append_new(fake_broker.asked, take_asked);
    if (fake_broker.archive)
        return json_deep_copy(fake_broker.archive);
    *e = fake_broker.trouble;
    return NULL;
}

json_t *broker_archive_link(const struct broker_client *c, const char *conversation,
                            const char *folder, const char *format, struct err *e)
{
    return archive_answer(json_pack("{s:s, s:s, s:s, s:s, s:s}", "op", "archive_link", "tenant",
                                    c->tenant, "conversationId", conversation, "folder", folder,
                                    "format", format),
                          e);
}

json_t *broker_unpack(const struct broker_client *c, const struct broker_unpack_want *want,
                      struct err *e)
{
    struct stat st = {.st_size = -1};

    if (!want->archive)
        fstat(want->archive_fd, &st);
    return archive_answer(json_pack("{s:s, s:s, s:s, s:s, s:s?, s:I, s:b}", "op", "unpack",
                                    "tenant", c->tenant, "conversationId", want->conversation,
                                    "folder", want->folder, "archive", want->archive, "size",
                                    (json_int_t)st.st_size, "replace", want->replace),
                          e);
}

json_t *broker_runners(const struct broker_client *c, struct err *e)
{
    (void)c;
    fake_broker.runner_questions++;
    if (!fake_broker.runners) {
        *e = fake_broker.trouble;
        return NULL;
    }
    return json_deep_copy(fake_broker.runners);
}

int broker_ping(const struct broker_client *c, struct err *e)
{
    (void)c;
    if (fake_broker.trouble.kind == ERR_NONE)
        return 0;
    *e = fake_broker.trouble;
    return -1;
}

json_t *broker_delete_conversation(const struct broker_client *c, const char *conversation,
                                   struct err *e)
{
    (void)c;
    (void)conversation;
    err_set(e, ERR_UNAVAILABLE, "the fake broker deletes no conversations");
    return NULL;
}
