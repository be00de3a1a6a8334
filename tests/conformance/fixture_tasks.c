/*
 * Tools whose work goes on as a task (io.modelcontextprotocol/tasks). Nothing goes on in fact: what
 * a task's status is follows from its age, its answers and whether it was cancelled, which all
 * workers see in memory that they share with the process that started them.
 */
#include "config.h"

#include "tests/conformance/fixtures.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ID_HEAD       FIXTURE_TASK_PREFIX
#define PLACES        256 /* the oldest task gives way */
#define TTL_MS        600000
#define POLL_MS       200
#define QUESTIONS_MAX 2
#define INLINE_MAX_MS 900

/* What a tool's tasks come to. */
struct work {
    const char *questions[QUESTIONS_MAX]; /* keys; what they ask is a boolean of the same name */
    size_t n_questions;
    int ms;
    bool is_error; /* of the result */
    int code;      /* it fails with this JSON-RPC error; 0: it does not */
    const char *text;
};

struct place {
    char id[MCP_TASK_ID_MAX + 1];
    char tenant[64], name[64];
    const struct work *work;
    int64_t created_ms; /* Unix time */
    struct deadline done;
    atomic_uint answered; /* bits of the questions */
    atomic_bool cancelled;
};

static struct table {
    atomic_uint next;
    struct place places[PLACES];
} * table;

/* Before any process is forked. */
__attribute__((constructor)) static void share_table(void)
{
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        abort();
}

/* ---- asking for a task ---- */

static struct place *find(const struct mcp_tool_call *call, const char *id, struct err *e)
{
    for (size_t i = 0; i < PLACES; i++) {
        struct place *p = &table->places[i];
        if (*id && strcmp(p->id, id) == 0 && strcmp(p->tenant, call->tenant) == 0)
            return p;
    }
    err_set(e, ERR_NOT_FOUND, "no such fixture");
    return NULL;
}

static bool is_open(const struct place *p, size_t question)
{
    return question < p->work->n_questions && !(p->answered & 1u << question);
}

static enum mcp_task_status status_of(const struct place *p)
{
    if (p->cancelled)
        return MCP_TASK_CANCELLED;
    if (is_open(p, 0) || is_open(p, 1))
        return MCP_TASK_INPUT;
    if (!deadline_passed(p->done))
        return MCP_TASK_WORKING;
    return p->work->code ? MCP_TASK_FAILED : MCP_TASK_COMPLETED;
}

static void add_questions(const struct place *p, struct mcp_task *out)
{
    struct mcp_need need = {.requests = NULL};

    for (size_t i = 0; i < p->work->n_questions; i++)
        if (is_open(p, i))
            mcp_need_add(&need, p->work->questions[i], "elicitation/create",
                         fixture_question("Please confirm", p->work->questions[i], "boolean"));
    out->requests = need.requests;
}

static int get(const struct mcp_tool_call *call, const char *id, bool brief, struct mcp_task *out,
               struct err *e)
{
    const struct place *p = find(call, id, e);

    (void)brief;
    if (!p)
        return -1;
    snprintf(out->id, sizeof out->id, "%s", id);
    out->status = status_of(p);
    out->created_ms = out->updated_ms = p->created_ms;
    out->ttl_ms = TTL_MS;
    out->poll_ms = POLL_MS;
    out->code = p->work->code;
    if (out->status == MCP_TASK_FAILED)
        out->message = mem_strdup(p->work->text);
    if (out->status == MCP_TASK_INPUT)
        add_questions(p, out);
    if (out->status == MCP_TASK_COMPLETED) {
        fixture_say(&out->result, "%s %s", p->work->text, p->name);
        out->result.is_error = p->work->is_error;
    }
    return 0;
}

static int update(const struct mcp_tool_call *call, const char *id, const json_t *responses,
                  struct err *e)
{
    struct place *p = find(call, id, e);

    if (!p)
        return -1;
    for (size_t i = 0; i < p->work->n_questions; i++)
        if (json_is_object(json_object_get(responses, p->work->questions[i])))
            p->answered |= 1u << i;
    return 0;
}

static int cancel(const struct mcp_tool_call *call, const char *id, struct err *e)
{
    struct place *p = find(call, id, e);

    if (!p)
        return -1;
    if (status_of(p) == MCP_TASK_WORKING || status_of(p) == MCP_TASK_INPUT)
        p->cancelled = true;
    return 0;
}

const struct mcp_tasks fixture_tasks = {.get = get, .update = update, .cancel = cancel};

/* ---- making one ---- */

/* name is told in the result. */
static void begin(const struct mcp_tool_call *call, const struct work *work, int ms,
                  const char *name, struct mcp_result *out)
{
    struct place *p = &table->places[table->next++ % PLACES];
    char hex[33];

    crypto_random_hex(16, hex);
    *p = (struct place){
        .work = work, .created_ms = clock_unix_s() * 1000, .done = deadline_in_ms(ms)};
    snprintf(p->tenant, sizeof p->tenant, "%s", call->tenant);
    snprintf(p->name, sizeof p->name, "%s", name ? name : "");
    snprintf(p->id, sizeof p->id, ID_HEAD "%s", hex);
    struct mcp_task task = {.created_ms = p->created_ms,
                            .updated_ms = p->created_ms,
                            .ttl_ms = TTL_MS,
                            .poll_ms = POLL_MS};
    snprintf(task.id, sizeof task.id, "%s", p->id);
    out->task = mcp_task_created(&task);
}

static const char *text_argument(const struct mcp_tool_call *call, const char *name)
{
    const char *text = json_get_string(call->arguments, name);

    return text ? text : "";
}

#define STRING_SCHEMA(name)                                                                        \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"string\"}}}"
#define SECONDS_SCHEMA                                                                             \
    "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"},"                      \
    "\"label\":{\"type\":\"string\"}}}"

static void call_greet(const struct mcp_tool_call *call, struct mcp_result *out)
{
    fixture_say(out, "Hello, %s!", text_argument(call, "name"));
}

static void call_slow(const struct mcp_tool_call *call, struct mcp_result *out)
{
    static const struct work work = {.text = "Computed"};
    int ms = (int)(json_number_value(json_object_get(call->arguments, "seconds")) * 1000);

    if (call->can_task) {
        begin(call, &work, ms, text_argument(call, "label"), out);
        return;
    }
    fixture_sleep_ms(ms < INLINE_MAX_MS ? ms : INLINE_MAX_MS);
    fixture_say(out, "Computed %s", text_argument(call, "label"));
}

static void call_failing(const struct mcp_tool_call *call, struct mcp_result *out)
{
    static const struct work work = {.ms = 1000, .is_error = true, .text = "This job fails"};

    begin(call, &work, work.ms, NULL, out);
}

static void call_protocol_error(const struct mcp_tool_call *call, struct mcp_result *out)
{
    static const struct work work = {
        .ms = 1000, .code = RPC_INTERNAL_ERROR, .text = "This job ends in a protocol error"};

    begin(call, &work, work.ms, NULL, out);
}

static void call_confirm(const struct mcp_tool_call *call, struct mcp_result *out)
{
    static const struct work work = {.questions = {"confirm"}, .n_questions = 1, .text = "Deleted"};

    begin(call, &work, 0, text_argument(call, "filename"), out);
}

static void call_multi(const struct mcp_tool_call *call, struct mcp_result *out)
{
    static const struct work work = {
        .questions = {"first", "second"}, .n_questions = 2, .text = "Both were answered"};

    begin(call, &work, 0, NULL, out);
}

static void call_ask_first(const struct mcp_tool_call *call, struct mcp_result *out)
{
    static const struct work work = {.ms = 500, .text = "Hello,"};
    const char *name = json_string_value(fixture_filled(call->elicitation, "user_name", "name"));

    if (name)
        begin(call, &work, work.ms, name, out);
    else
        mcp_need_add(&out->need, "user_name", "elicitation/create",
                     fixture_question("What is your name?", "name", "string"));
}

#define TOOL(c_name, function, schema, required)                                                   \
    static const struct mcp_tool c_name = {.name = #c_name,                                        \
                                           .task_required = required,                              \
                                           .describe = fixture_describe,                           \
                                           .input_schema = schema,                                 \
                                           .call = function}

TOOL(greet, call_greet, STRING_SCHEMA("name"), false);
TOOL(slow_compute, call_slow, SECONDS_SCHEMA, false);
TOOL(failing_job, call_failing, fixture_no_arguments, true);
TOOL(protocol_error_job, call_protocol_error, fixture_no_arguments, true);
TOOL(confirm_delete, call_confirm, STRING_SCHEMA("filename"), true);
TOOL(multi_input, call_multi, fixture_no_arguments, true);
TOOL(test_tool_with_task, call_ask_first, fixture_no_arguments, true);

const struct mcp_tool *const fixture_task_tools[] = {
    &greet,          &slow_compute, &failing_job,         &protocol_error_job,
    &confirm_delete, &multi_input,  &test_tool_with_task, NULL,
};
