#include "config.h"

#include "tests/bench/floor.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/engine/docker_container.h"
#include "common/engine/docker_frame.h"
#include "common/engine/entry_frame.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>

#define API "/v1.40"

void floor_open(struct floor *f, const char *socket, const struct engine_spec *spec,
                const struct engine_program *program)
{
    *f = (struct floor){.socket = socket, .spec = *spec, .program = *program};
    wire_open(&f->api, socket);
}

void floor_close(struct floor *f)
{
    wire_close(&f->api);
}

static void call(struct floor *f, const char *method, const char *path, const struct buf *body,
                 struct buf *reply)
{
    AUTO_BUF struct buf request = BUF_INIT(1 << 20);
    AUTO_BUF struct buf answer = BUF_INIT(1 << 20);

    wire_request(&request, method, path, "", body ? buf_str(body) : NULL, body ? body->len : 0);
    int status = wire_call(&f->api, request.data, request.len, &answer);
    if (status >= 400)
        bench_die("the engine answers %d to %s: %s", status, path, buf_str(&answer));
    if (reply)
        buf_add(reply, buf_str(&answer), answer.len);
}

static char *create(struct floor *f, const struct buf *body)
{
    AUTO_BUF struct buf reply = BUF_INIT(65536);
    AUTO_FREE char *path = mem_printf(API "/containers/create?name=" CONTAINER_NAME_PREFIX "%s",
                                      f->spec.run_id);
    struct err e;

    call(f, "POST", path, body, &reply);
    json_auto_t *answer = json_parse(buf_str(&reply), reply.len, 8, &e);
    const char *id = answer ? json_get_string(answer, "Id") : NULL;
    if (!container_id_ok(id))
        bench_die("the engine does not tell the container's id");
    return mem_strdup(id);
}

/* Leaves in w->in what came behind the head. */
static void attach(struct floor *f, const char *id, struct wire *w)
{
    AUTO_BUF struct buf request = BUF_INIT(4096);
    AUTO_FREE char *path = mem_printf(
        API "/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1", id);
    struct wire_reply reply;
    size_t head;

    wire_open(w, f->socket);
    wire_request(&request, "POST", path, "Connection: Upgrade\r\nUpgrade: tcp\r\n", NULL, 0);
    wire_send(w, request.data, request.len);
    while (!(head = wire_parse(buf_str(&w->in), w->in.len, &reply)))
        if (!wire_receive(w))
            bench_die("the engine closed the attached stream");
    if (reply.status != 101)
        bench_die("the engine answers %d to attach", reply.status);
    buf_drop_front(&w->in, head);
}

struct listener {
    struct entry_frame entry;
    struct engine_sink sink;
};

static bool drop_output(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    (void)ctx;
    (void)stream;
    (void)data;
    (void)len;
    return true;
}

static enum frame_push take_payload(void *ctx, enum engine_stream stream, const char *data,
                                    size_t len, struct err *e)
{
    struct listener *l = ctx;

    if (stream != ENGINE_STDOUT)
        bench_die("the entry program complains: %.*s", (int)len, data);
    return entry_frame_push(&l->entry, data, len, &l->sink, e);
}

static void read_to_report(struct wire *w)
{
    struct listener l = {.entry = {.handed = true}, .sink = {.output = drop_output}};
    struct docker_frame_out out = {.payload = take_payload, .ctx = &l};
    struct docker_frame frame = {0};
    struct err e = ERR_INIT;

    while (!l.entry.reported) {
        if (docker_frame_push(&frame, buf_str(&w->in), w->in.len, &out, &e) == FRAME_BROKEN)
            bench_die("the container's stream: %s", e.text);
        buf_reset(&w->in);
        if (!l.entry.reported && !wire_receive(w))
            bench_die("the container ended without a report");
    }
    if (l.entry.report.exit_code != 0)
        bench_die("the program ended with %d", l.entry.report.exit_code);
}

int64_t floor_run(struct floor *f)
{
    AUTO_BUF struct buf body = BUF_INIT(1 << 20);
    AUTO_BUF struct buf envelope = BUF_INIT(1 << 20);
    AUTO_FREE char *run_id = mem_printf("floor-%d-%u", (int)getpid(), f->runs++);
    AUTO_FREE char *id = NULL;
    AUTO_FREE char *start = NULL;
    AUTO_FREE char *remove = NULL;
    struct wire stream;
    struct err e;

    f->spec.run_id = run_id;
    f->spec.deadline_unix = clock_unix_s() + 60;
    int64_t began = clock_mono_us();
    buf_add_str(&envelope, ENTRY_MAGIC);
    if (container_body(&f->spec, &body, &e) < 0 || entry_write(&f->program, &envelope, &e) < 0)
        bench_die("%s", e.text);
    id = create(f, &body);
    attach(f, id, &stream);
    start = mem_printf(API "/containers/%s/start", id);
    call(f, "POST", start, NULL, NULL);
    wire_send(&stream, envelope.data, envelope.len);
    read_to_report(&stream);
    int64_t ended = clock_mono_us();

    wire_close(&stream);
    remove = mem_printf(API "/containers/%s?force=1&v=1", id);
    call(f, "DELETE", remove, NULL, NULL);
    return ended - began;
}
