#include "config.h"

#include "common/broker/rooms.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <sys/socket.h>

#define ROOMS_MAX   512 /* far more than jobs and uploads */
#define MESSAGE_MAX 4096

struct room {
    struct room *next;
    struct rooms *rooms;
    int fd;
    struct sock_inbox inbox;
    struct loop_watch watch;
    struct room_row row;
};

static void room_drop(struct room *room)
{
    struct room **at = &room->rooms->first;

    while (*at != room)
        at = &(*at)->next;
    *at = room->next;
    room->rooms->n--;
    room_books_remove(&room->rooms->books, &room->row);
    loop_remove(room->rooms->loop, &room->watch);
    auto_close_fd(&room->fd);
    sock_inbox_clear(&room->inbox);
    free(room);
}

static uint64_t member_bytes(const json_t *message, const char *name)
{
    json_int_t n = json_get_integer(message, name, 0);

    return n > 0 ? (uint64_t)n : 0;
}

static int name_row(struct room_row *row, const json_t *message, struct err *e)
{
    const char *tenant = json_get_string(message, "tenant");
    const char *sandbox_dir = json_get_string(message, "sandboxDir");

    if (!tenant || !sandbox_dir || !state_name_ok(sandbox_dir))
        return err_set(e, ERR_PROTOCOL, "room is wanted for no sandbox");
    room_row_name(row, tenant, sandbox_dir);
    row->now = (struct usage){.bytes = member_bytes(message, "usedBytes"),
                              .files = member_bytes(message, "usedFiles"),
                              .partial = json_get_bool(message, "usedPartial", 0) != 0};
    row->tenant_bytes = member_bytes(message, "tenantBytes");
    row->others_bytes = member_bytes(message, "othersBytes");
    return 0;
}

static json_t *answer_new(struct room *room, const json_t *message)
{
    struct err e = ERR_INIT;

    if (!room->row.named && name_row(&room->row, message, &e) < 0)
        return wire_error_new(&e);
    if (json_object_get(message, "landed"))
        room_books_land(&room->rooms->books, &room->row, member_bytes(message, "landed"));
    else if (room_books_take(&room->rooms->books, &room->row, room->rooms->root,
                             member_bytes(message, "bytes"), member_bytes(message, "there"),
                             &e) < 0)
        return wire_error_new(&e);
    return wire_result_new(json_object());
}

static void on_readable(void *owner, void *item, uint32_t events)
{
    struct room *room = item;
    struct err e = ERR_INIT;
    int whole = sock_inbox_take(&room->inbox, room->fd, &e);
    json_auto_t *message = whole > 0 ? wire_parse(&room->inbox.message, &e) : NULL;

    (void)owner;
    (void)events;
    if (whole == 0)
        return;
    json_auto_t *answer = message ? answer_new(room, message) : NULL;
    if (answer && wire_post(room->fd, answer, -1, &e) == 0)
        return;
    if (e.kind != ERR_CANCELLED) /* the end of its owner */
        log_warn("room for a content: %s", e.text);
    room_drop(room);
}

int rooms_open(struct rooms *rooms, struct err *e)
{
    int pair[2];

    if (rooms->n == ROOMS_MAX)
        return err_set(e, ERR_BUSY, "too many files are on their way; try again in a while");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "socketpair");
    AUTO_FD int theirs = pair[1];
    struct room *room = mem_alloc(sizeof *room);
    *room = (struct room){.next = rooms->first,
                          .rooms = rooms,
                          .fd = pair[0],
                          .inbox = SOCK_INBOX_INIT(MESSAGE_MAX),
                          .watch = LOOP_WATCH_INIT};
    rooms->first = room;
    rooms->n++;
    room_books_add(&rooms->books, &room->row);
    if (loop_add(rooms->loop, &room->watch, room->fd, EPOLLIN, on_readable, room, e) < 0) {
        room_drop(room);
        return -1;
    }
    return TAKE_FD(theirs);
}

void rooms_clear(struct rooms *rooms)
{
    while (rooms->first)
        room_drop(rooms->first);
}
