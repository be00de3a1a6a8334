#include "config.h"

#include "common/engine/psandbox_frame.h"

#include "common/engine/entry_frame.h"

#include <inttypes.h>
#include <string.h>

#define ID_LEN   4
#define PART_MAX ((size_t)65536) /* of data in one record; any cut would do */

/* The kinds of frames, and how long they are. */
struct kind {
    char tag;
    enum engine_psandbox_kind kind;
    size_t min, max; /* payload without the id */
};

static const struct kind kinds[] = {
    {'W', ENGINE_PSANDBOX_UP, 0, 0},
    {'O', ENGINE_PSANDBOX_OUT, 1, PSANDBOX_FRAME_MAX - ID_LEN},
    {'E', ENGINE_PSANDBOX_ERR, 1, PSANDBOX_FRAME_MAX - ID_LEN},
    {'K', ENGINE_PSANDBOX_CONTROL, 1, PSANDBOX_FRAME_MAX - ID_LEN},
    {'R', ENGINE_PSANDBOX_ENDED, 1, ENTRY_REPORT_MAX},
    {'F', ENGINE_PSANDBOX_FAILED, 1, ENTRY_REPORT_MAX},
};

ssize_t psandbox_frame_take(const char *data, size_t len, struct engine_psandbox_event *out,
                            struct err *e)
{
    const struct kind *kind = NULL;
    struct entry_report report;
    size_t size;

    for (size_t i = 0; len > 0 && i < ARRAY_LEN(kinds); i++)
        if (kinds[i].tag == data[0])
            kind = &kinds[i];
    if (len > 0 && !kind)
        return err_set(e, ERR_PROTOCOL, "the container sent a frame of unknown kind");
    if (len < ENTRY_RECORD_HEAD)
        return 0;
    size = frame_u32(data + 1);
    if (size < ID_LEN + kind->min || size > ID_LEN + kind->max)
        return err_set(e, ERR_PROTOCOL, "the container sent a frame over its limit");
    if (len < ENTRY_RECORD_HEAD + size)
        return 0;
    *out = (struct engine_psandbox_event){.kind = kind->kind,
                                          .id = frame_u32(data + ENTRY_RECORD_HEAD),
                                          .data = data + ENTRY_RECORD_HEAD + ID_LEN,
                                          .len = size - ID_LEN};
    if (kind->kind == ENGINE_PSANDBOX_ENDED) {
        if (entry_report_parse(out->data, out->len, &report, e) < 0)
            return -1;
        entry_report_outcome(&report, &out->outcome);
    }
    return (ssize_t)(ENTRY_RECORD_HEAD + size);
}

static void add_head(struct buf *out, char tag, uint32_t id, size_t len)
{
    buf_add_char(out, tag);
    frame_add_u32(out, ID_LEN + len);
    frame_add_u32(out, id);
}

void psandbox_write(char tag, uint32_t id, const void *data, size_t len, struct buf *out)
{
    const char *p = data;

    do {
        size_t part = len < PART_MAX ? len : PART_MAX;

        add_head(out, tag, id, part);
        if (part > 0)
            buf_add(out, p, part);
        p += part;
        len -= part;
    } while (len > 0);
}

static void add_item(struct buf *out, char letter, const char *text)
{
    buf_add_char(out, letter);
    buf_add(out, text, strlen(text) + 1);
}

/* A command as items of a letter and a text, each ended by a NUL. */
static int add_items(const struct engine_command *command, struct buf *items, struct err *e)
{
    if (command->n_argv == 0 || !*command->argv[0])
        return err_set(e, ERR_INVALID, "a command needs the name of a program");
    if (command->timeout_ms > 0)
        buf_addf(items, "T%" PRIu64 "%c", command->timeout_ms, 0);
    if (command->cwd)
        add_item(items, 'D', command->cwd);
    if (command->control)
        add_item(items, 'K', "");
    for (size_t i = 0; i < command->n_env; i++) {
        if (command->env[i][0] == '=' || !strchr(command->env[i], '='))
            return err_set(e, ERR_INVALID, "a variable of the environment needs a name and '='");
        add_item(items, 'E', command->env[i]);
    }
    for (size_t i = 0; i < command->n_argv; i++)
        add_item(items, 'A', command->argv[i]);
    if (!buf_ok(items))
        return err_set(e, ERR_LIMIT, "command and environment are over %zu bytes", items->max);
    return 0;
}

int psandbox_write_command(uint32_t id, const struct engine_command *command, struct buf *out,
                           struct err *e)
{
    AUTO_BUF struct buf items = BUF_INIT(PSANDBOX_RECORD_MAX - ID_LEN);
    size_t before = out->len;

    if (add_items(command, &items, e) < 0)
        return -1;
    if (command->input_len > out->max)
        return err_set(e, ERR_LIMIT, "the command's input is over %zu bytes", out->max);
    if (command->input_len > 0)
        psandbox_write('I', id, command->input, command->input_len, out);
    add_head(out, 'X', id, items.len);
    buf_add(out, items.data, items.len);
    if (buf_ok(out))
        return 0;
    out->failed = false;
    out->len = before;
    return err_set(e, ERR_LIMIT, "the container does not take its input: too much is pending");
}
