#include "config.h"

#include "common/protocol/run_body.h"

#include "common/base/mem.h"
#include "common/protocol/entry_record.h"

#include <string.h>

#define LENGTH_LEN 4 /* of a message */

/* ---- writing ---- */

static int add_args(const struct run_request *r, struct buf *out, struct err *e)
{
    for (size_t i = 0; i < r->n_args; i++) {
        const struct run_text *arg = &r->args[i];

        if (memchr(arg->data, 0, arg->len))
            return err_set(e, ERR_INVALID, "args: every argument must be a string without NUL");
        entry_item_add('A', arg->data, arg->len, out);
    }
    return 0;
}

static int add_env(const struct run_request *r, struct buf *out, struct err *e)
{
    for (size_t i = 0; i < r->n_env; i++) {
        const struct run_env *v = &r->env[i];

        if (!*v->name || strchr(v->name, '='))
            return err_set(e, ERR_INVALID, "environment: a name is empty or has a '='");
        AUTO_FREE char *text = mem_printf("%s=%s", v->name, v->value);
        entry_item_add('E', text, strlen(text), out);
    }
    return 0;
}

int run_body_write(const struct run_request *r, const char *cwd, struct buf *out, struct err *e)
{
    size_t from = out->len;

    buf_add_u32(out, 0);
    if (r->code.data)
        entry_record_add('C', 0, r->code.data, r->code.len, out);
    if (r->input.len > 0)
        entry_record_add('I', 0, r->input.data, r->input.len, out);
    size_t at = entry_record_begin('X', 0, out);
    if (cwd)
        entry_item_add('D', cwd, strlen(cwd), out);
    if (add_args(r, out, e) < 0 || add_env(r, out, e) < 0)
        return -1;
    if (entry_record_end(at, out) < 0)
        return err_set(e, ERR_LIMIT, "arguments and environment are over %zu bytes",
                       ENTRY_RECORD_MAX);
    size_t len = out->len - from - LENGTH_LEN;
    if (!buf_ok(out) || len > WIRE_MESSAGE_MAX)
        return err_set(e, ERR_LIMIT, "code, stdin, arguments and environment are over %u bytes",
                       WIRE_MESSAGE_MAX);
    u32_put(out->data + from, (uint32_t)len);
    return 0;
}

/* ---- taking apart ---- */

static int take_item(struct run_body *b, char letter, const char *text)
{
    const char *mark = strchr(text, '=');

    if (letter == 'A')
        b->args[b->n_args++] = text;
    else if (letter == 'E' && mark && mark > text)
        b->env[b->n_env++] = text;
    else if (letter == 'D' && !b->cwd)
        b->cwd = text;
    else
        return -1;
    return 0;
}

/* Items of at least a letter, each ended by a NUL. */
static int take_items(struct run_body *b, const char *items, size_t len)
{
    const char *end = items + len;
    size_t n = 0;

    if (len > 0 && end[-1])
        return -1;
    for (const char *at = items; at < end; at += strlen(at) + 1)
        n++;
    b->args = mem_array(n + 1, sizeof *b->args);
    b->env = mem_array(n + 1, sizeof *b->env);
    for (const char *at = items; at < end; at += strlen(at) + 1)
        if (!*at || take_item(b, *at, at + 1) < 0)
            return -1;
    return 0;
}

/* Code comes before input; only the code of a run without any is an empty record. */
static int take_record(struct run_body *b, const struct entry_record *r)
{
    if (r->id != 0)
        return -1;
    if (r->tag == 'C' && b->input_len == 0 && (r->len > 0 || b->streams_len == 0)) {
        b->has_code = true;
        b->code_len += r->len;
        return 0;
    }
    if (r->tag == 'I' && r->len > 0) {
        b->input_len += r->len;
        return 0;
    }
    return r->tag == 'X' ? take_items(b, r->data, r->len) : -1;
}

int run_body_take(struct run_body *b, struct err *e)
{
    const struct buf *m = &b->message;
    struct entry_record r = {0};
    ssize_t n = 0;

    for (size_t at = 0; r.tag != 'X'; at += (size_t)n) {
        n = entry_record_take(buf_str(m) + at, m->len - at, &r);
        if (n <= 0 || take_record(b, &r) < 0 || (r.tag == 'X' && at + (size_t)n != m->len))
            return err_set(e, ERR_INVALID, "what the call wants to run makes no sense");
        if (r.tag != 'X')
            b->streams_len = at + (size_t)n;
    }
    return 0;
}

void run_body_clear(struct run_body *b)
{
    buf_clear(&b->message);
    free(b->args);
    free(b->env);
    *b = RUN_BODY_INIT;
}

/* ---- its beginning ---- */

/* Text has no such bytes; input that has them was made to. */
bool run_body_begins(const unsigned char *data, size_t len)
{
    static const struct {
        unsigned char from, to;
    } bounds[RUN_BODY_HEAD] = {{0, WIRE_MESSAGE_MAX >> 24},
                               {0, 255},
                               {0, 255},
                               {0, 255},
                               {'C', 'X'},
                               {0, 0},
                               {0, ENTRY_RECORD_MAX >> 16},
                               {0, 255},
                               {0, 255},
                               {0, 0},
                               {0, 0},
                               {0, 0},
                               {0, 0}};

    for (size_t i = 0; i < len && i < RUN_BODY_HEAD; i++)
        if (data[i] < bounds[i].from || data[i] > bounds[i].to)
            return false;
    return len > 0;
}
