#include "config.h"

#include "common/base/log.h"
#include "common/broker/broker.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <string.h>
#include <sys/socket.h>

void reply_send(int take_fd, json_t *take_reply)
{
    struct err e = ERR_INIT;
    if (wire_post(take_fd, take_reply, -1, &e) < 0)
        log_debug("the caller left before the answer: %s", e.text);
    json_decref(take_reply);
    shutdown(take_fd, SHUT_RDWR);
    auto_close_fd(&take_fd);
}

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

/* An operation that the main process sees to itself; each takes the connection. */
static const struct {
    const char *name;
    void (*begin)(struct broker *b, int take_fd, const json_t *head);
} calls[] = {
    {"run", run_queue_begin},
    {"runners", tell_runners},
    {"adopt", child_io_adopt},
    {"delete_conversation", prune_begin},
    {"create_sandbox", psandboxes_create},
    {"session", psandboxes_session},
    {"adopt_sandbox", psandboxes_adopt},
};

/* What goes to somebody who lives; when there is nobody, a job says what became of them. */
static const struct {
    const char *name;
    bool (*hand)(struct broker *b, int fd, const json_t *head);
} handed_over[] = {
    {"get_run", child_io_hand},        {"cancel_run", child_io_hand},
    {"exec", psandboxes_hand},         {"close_psandbox", psandboxes_hand},
    {"sandbox_logs", psandboxes_hand},
};

/* Everything else is a short piece of work in a process of its own. */
static void begin_job(struct broker *b, int fd, const json_t *head, int passed_fd)
{
    struct err e = ERR_INIT;
    if (spawn_job(b, fd, head, passed_fd, &e) < 0)
        log_error("%s", e.text); /* the end of the connection says it */
}

void dispatch_call(struct broker *b, int take_fd, const json_t *head, int take_passed_fd)
{
    AUTO_FD int fd = take_fd;
    AUTO_FD int passed = take_passed_fd;
    struct err e = ERR_INIT;
    const char *op = json_get_string(head, "op");

    if (!op)
        op = "";
    if (job_limits_check(b, head, &e) < 0) {
        reply_send(TAKE_FD(fd), wire_error_new(&e));
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (strcmp(op, calls[i].name) == 0) {
            calls[i].begin(b, TAKE_FD(fd), head);
            return;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(handed_over); i++)
        if (strcmp(op, handed_over[i].name) == 0 && handed_over[i].hand(b, fd, head))
            return;
    begin_job(b, fd, head, passed);
    if (strcmp(op, "put") == 0)
        warm_note_upload(b, head);
}
