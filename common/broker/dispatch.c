#include "config.h"

#include "common/base/log.h"
#include "common/broker/broker.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

/* Every worker asks for it before its first run: not worth a process. */
static void tell_runners(struct broker *b, int take_fd, const json_t *head)
{
    const struct job_world world = {.runners = &b->housekeeper.runners,
                                    .engine_trouble = b->housekeeper.trouble};
    struct err e = ERR_INIT;
    json_t *list = job_runners(&world, &e);
    (void)head;
    reply_send(take_fd, list ? wire_result_new(list) : wire_error_new(&e));
}

/* OP_BY_MAIN; each takes the connection. */
static void (*const handlers[OP_COUNT])(struct broker *b, int take_fd, const json_t *head) = {
    [OP_RUN] = run_queue_begin,
    [OP_SESSION] = psandboxes_session,
    [OP_ADOPT_RUN] = child_io_adopt,
    [OP_RUNNERS] = tell_runners,
    [OP_CREATE_PSANDBOX] = psandboxes_create,
    [OP_ADOPT_PSANDBOX] = psandboxes_adopt,
    [OP_DELETE_CONVERSATION] = prune_begin,
};

/* Hands the connection to the process that carries out the operation; false: there is none. */
static bool hand_over(struct broker *b, enum op_by by, int fd, const json_t *head)
{
    if (by == OP_BY_RUN)
        return child_io_hand(b, fd, head);
    return by == OP_BY_PSANDBOX && psandboxes_hand(b, fd, head);
}

void dispatch_call(struct broker *b, int take_fd, const json_t *head, int take_passed_fd)
{
    AUTO_FD int fd = take_fd;
    AUTO_FD int passed = take_passed_fd;
    struct err e = ERR_INIT;
    enum broker_op op = op_of(head);

    if (job_limits_check(b, head, &e) < 0) {
        reply_send_error(TAKE_FD(fd), &e);
        return;
    }
    if (op_row(op)->by == OP_BY_MAIN) {
        handlers[op](b, TAKE_FD(fd), head);
        return;
    }
    if (hand_over(b, op_row(op)->by, fd, head))
        return;
    if (spawn_job(b, fd, head, passed, &e) < 0)
        log_error("%s", e.text); /* the end of the connection says it */
    if (op == OP_PUT)
        warm_note_upload(b, head);
}
