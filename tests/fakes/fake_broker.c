#include "config.h"

#include "tests/fakes/fake_broker.h"

#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/fdio.h"

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
    fake_broker = (struct fake_broker){
        .run_results = json_array(),
        .files = json_object(),
        .runs = json_array(),
        .puts = json_array(),
        .pages = json_array(),
        .lists = json_array(),
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

void fake_broker_set_names(const char *text)
{
    json_decref(fake_broker.names);
    fake_broker.names = load(text);
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
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:b, s:I, s:I, s:o, s:o}", "tenant", r->tenant,
                     "conversation", r->conversation, "language", r->language, "code",
                     text_or_null(r->code), "stdin", text_or_null(r->input), "network", r->network,
                     "timeoutMs", (json_int_t)r->timeout_ms, "keepBytes", (json_int_t)r->keep_bytes,
                     "args", args, "env", env);
}

json_t *broker_run(const struct broker_client *c, const struct run_request *request, struct err *e)
{
    json_t *result = json_array_get(fake_broker.run_results, 0);

    json_array_append_new(fake_broker.runs, request_to_json(request));
    for (int i = 0; c->tick && i < fake_broker.ticks; i++)
        c->tick(c->tick_ctx);
    if (!result) {
        *e = fake_broker.trouble;
        return NULL;
    }
    json_incref(result); /* the queue lets go of it */
    json_array_remove(fake_broker.run_results, 0);
    return result;
}

json_t *broker_put_file(const struct broker_client *c, const char *tenant, const char *conversation,
                        const char *name, int fd, size_t size, struct err *e)
{
    AUTO_BUF struct buf content = BUF_INIT(64u * 1024 * 1024);

    (void)c;
    if (fake_broker.trouble.kind != ERR_NONE) {
        *e = fake_broker.trouble;
        return NULL;
    }
    if (fdio_read_to_end(fd, &content, e) < 0)
        return NULL;
    assert(content.len == size);
    json_array_append_new(fake_broker.puts, json_pack("{s:s, s:s, s:s, s:s%}", "tenant", tenant,
                                                      "conversation", conversation, "name", name,
                                                      "content", buf_str(&content), content.len));
    return json_pack("{s:s, s:I, s:s}", "name", name, "size", (json_int_t)size, "url",
                     "https://x.test/files/ab/file");
}

int broker_open_file(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *name, struct stat *out, struct err *e)
{
    const char *encoded = json_string_value(json_object_get(fake_broker.files, name));
    AUTO_BUF struct buf content = BUF_INIT(64u * 1024 * 1024);
    AUTO_FD int fd = memfd_create("file", MFD_CLOEXEC);

    (void)c;
    (void)tenant;
    (void)conversation;
    fake_broker.opens++;
    if (!encoded)
        return err_set(e, ERR_NOT_FOUND, "no such file");
    if (b64_decode(encoded, strlen(encoded), &content) < 0 ||
        fdio_write_all(fd, content.data, content.len, e) < 0)
        return -1;
    lseek(fd, 0, SEEK_SET);
    fstat(fd, out);
    return TAKE_FD(fd);
}

json_t *broker_list_files(const struct broker_client *c, const char *tenant, const json_t *after,
                          size_t max, struct err *e)
{
    json_t *page = json_array_get(fake_broker.pages, 0);
    json_t *asked_after = after ? json_deep_copy(after) : json_null();

    (void)c;
    json_array_append_new(fake_broker.lists, json_pack("{s:s, s:o, s:I}", "tenant", tenant, "after",
                                                       asked_after, "max", (json_int_t)max));
    if (!page) {
        *e = fake_broker.trouble;
        return NULL;
    }
    json_incref(page); /* the queue lets go of it */
    json_array_remove(fake_broker.pages, 0);
    return page;
}

json_t *broker_names(const struct broker_client *c, const char *tenant, const char *conversation,
                     const char *prefix, size_t max, struct err *e)
{
    (void)c;
    json_array_append_new(fake_broker.lists,
                          json_pack("{s:s, s:s?, s:s, s:I}", "tenant", tenant, "conversation",
                                    conversation, "prefix", prefix, "max", (json_int_t)max));
    if (!fake_broker.names) {
        *e = fake_broker.trouble;
        return NULL;
    }
    return json_deep_copy(fake_broker.names);
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
