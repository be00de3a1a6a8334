#include "config.h"

#include "fcgi/oauth/server/documents.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/privsep.h"
#include "common/base/sock.h"
#include "common/fetch/fetch.h"
#include "fcgi/process/sockets.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FETCH_MS  5000
#define TALK_MS   2000  /* for the question, which is there already */
#define ANSWER_MS 20000 /* FETCH_MS, and the start and end of a process on a busy machine */
#define IN_FD     3     /* where questions come from */
#define GOOD      '+'   /* begins an answer, before the document */
#define BAD       '-'   /* before the reason */

/* ---- the process ---- */

static int fetch_into(const char *url, int conn, struct buf *answer, struct err *e)
{
    const struct fetch_limits limits = {
        .max_bytes = DOCUMENT_MAX, .timeout_ms = FETCH_MS, .no_redirects = true};
    AUTO_FD int file = memfd_create("document", MFD_CLOEXEC);

    if (file < 0)
        return err_errno(e, "memfd_create");
    if (fetch_in_process(url, file, conn, &limits, e) < 0)
        return -1;
    if (lseek(file, 0, SEEK_SET) < 0)
        return err_errno(e, "lseek");
    return fdio_read_to_end(file, answer, e);
}

static void serve_one(int conn)
{
    AUTO_BUF struct buf url = BUF_INIT(FETCH_URL_MAX);
    AUTO_BUF struct buf answer = BUF_INIT(DOCUMENT_MAX + 1);
    struct err e = ERR_INIT;

    if (sock_recv_message(conn, &url, NULL, deadline_in_ms(TALK_MS), &e) < 0)
        return;
    buf_add_char(&answer, GOOD);
    if (fetch_into(buf_str(&url), conn, &answer, &e) < 0) {
        buf_reset(&answer);
        buf_addf(&answer, "%c%s", BAD, e.text);
    }
    sock_send_message(conn, answer.data, answer.len, -1, &e);
}

/* It has its end of the pair and the log: not the folder of keys, nor a socket that others connect
 * to. It starts a process for each document, which gives up the rest (fetch.h). */
static int enter(int in_fd, const struct account *account, struct err *e)
{
    const int kept[] = {-1, -1, STDERR_FILENO, in_fd};

    if (privsep_keep_fds(kept, ARRAY_LEN(kept)) < 0)
        return err_errno(e, "descriptors cannot be closed");
    return account_become(account, e);
}

__attribute__((noreturn)) static void documents_main(int in_fd, const struct account *account,
                                                     pid_t parent)
{
    struct pollfd p = {.fd = IN_FD, .events = POLLIN};
    struct err e = ERR_INIT;

    log_set_role("documents");
    if (enter(in_fd, account, &e) < 0) {
        log_error("the process that fetches documents: %s", e.text);
        _exit(1);
    }
    while (getppid() == parent) {
        if (poll(&p, 1, -1) < 0 && errno != EINTR)
            break;
        if (p.revents & (POLLHUP | POLLERR))
            break;
        AUTO_FD int conn = p.revents ? sock_accept_over(IN_FD) : -1;
        if (conn >= 0)
            serve_one(conn);
    }
    _exit(0);
}

/* ---- its parent ---- */

int documents_start(const struct account *account, struct err *e)
{
    pid_t parent = getpid();
    int pair[2];

    if (pair_open(pair, e) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[1]);
        documents_main(pair[0], account, parent);
    }
    close(pair[0]);
    if (pid < 0) {
        close(pair[1]);
        return err_errno(e, "fork");
    }
    return pair[1];
}

int document_fetch(int fetch_fd, const char *url, struct buf *out, struct err *e)
{
    AUTO_BUF struct buf answer = BUF_INIT(DOCUMENT_MAX + 1);
    AUTO_FD int conn = sock_connect_over(fetch_fd, e);

    if (conn < 0 || sock_send_message(conn, url, strlen(url), -1, e) < 0 ||
        sock_recv_message(conn, &answer, NULL, deadline_in_ms(ANSWER_MS), e) < 0)
        return -1;
    if (answer.len == 0 || answer.data[0] != GOOD)
        return err_set(e, ERR_NOT_FOUND, "%s", answer.len > 0 ? answer.data + 1 : "no answer");
    buf_add(out, answer.data + 1, answer.len - 1);
    return buf_ok(out) ? 0 : err_set(e, ERR_LIMIT, "the document is over %zu bytes", out->max);
}
