#include "config.h"

#include "fcgi/process/control.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/sock.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ORDER_MAX 32
#define ORDER_MS  1000

const char *const order_names[N_ORDERS] = {[ORDER_NONE] = "",
                                           [ORDER_RELOAD] = "reload",
                                           [ORDER_RESTART] = "restart",
                                           [ORDER_STOP] = "stop",
                                           [ORDER_STOP_NOW] = "stop-now"};

char *control_path(const char *broker)
{
    const char *slash = strrchr(broker, '/');

    return mem_printf("%.*scontrol.sock", slash ? (int)(slash + 1 - broker) : 0, broker);
}

static void post(int fd, const char *word, const char *text)
{
    struct err left = ERR_INIT; /* the peer does not wait any longer */
    AUTO_FREE char *message = mem_printf("%s%s", word, text);

    sock_post_message(fd, message, strlen(message), -1, &left);
}

void control_note(int fd, const char *text)
{
    if (fd >= 0)
        post(fd, CONTROL_NOTE, text);
}

void control_answer(int *fd, const struct err *wrong)
{
    if (*fd >= 0)
        post(*fd, wrong ? CONTROL_REFUSED : CONTROL_DONE, wrong ? wrong->text : "");
    auto_close_fd(fd);
}

static int read_order(int fd, enum order *out, pid_t *out_pid, uid_t *out_uid, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(ORDER_MAX);

    if (sock_peer(fd, out_uid, out_pid, e) < 0)
        return -1;
    if (*out_uid != 0 && *out_uid != geteuid())
        return err_set(e, ERR_DENIED, "this needs root, or the server's account");
    if (sock_recv_message(fd, &text, NULL, deadline_in_ms(ORDER_MS), e) < 0)
        return -1;
    for (*out = ORDER_RELOAD; *out < N_ORDERS; ++*out)
        if (strcmp(buf_str(&text), order_names[*out]) == 0)
            return 0;
    return err_set(e, ERR_INVALID, "this version of the server does not know the order");
}

enum order control_take(int listen_fd, int *out_fd, pid_t *out_pid, uid_t *out_uid)
{
    AUTO_FD int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    enum order order = ORDER_NONE;
    struct err e = ERR_INIT;

    if (fd < 0)
        return ORDER_NONE;
    if (read_order(fd, &order, out_pid, out_uid, &e) < 0) {
        control_answer(&fd, &e);
        return ORDER_NONE;
    }
    *out_fd = TAKE_FD(fd);
    return order;
}
