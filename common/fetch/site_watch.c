#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/privsep.h"
#include "common/base/remedy.h"
#include "common/fetch/site.h"

#include <curl/curl.h>
#include <string.h>
#include <sys/socket.h>

#define FIRST_MS   10000
#define AGAIN_MS   600000 /* when the site has not answered */
#define DAILY_MS   86400000
#define LOOK_MS    60000 /* a look takes at the most */
#define URL_MAX    4096
#define TEXT_MAX   1024
#define ANSWERED   "ok" /* before the fault */
#define MEMORY_MAX (512u << 20)

/* ---- the process: reads the URL; writes "ok" and the fault, or nothing: no answer ---- */

static int give_up_rights(struct err *e)
{
    const struct privsep_limit limits[] = {{RLIMIT_AS, MEMORY_MAX}, {RLIMIT_FSIZE, 0}};
    const struct privsep_needs needs = {
        .files = privsep_network_files, .folder_fd = -1, .families = privsep_network_families};

    if (privsep_drop_rights() < 0 || privsep_bound(limits, ARRAY_LEN(limits)) < 0)
        return err_set(e, ERR_INTERNAL, "rights cannot be given up");
    return privsep_confine(&needs, e);
}

int site_watch_main(void)
{
    AUTO_BUF struct buf url = BUF_INIT(URL_MAX), said = BUF_INIT(TEXT_MAX);
    struct fetch_site site;
    struct err e = ERR_INIT;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (fdio_read_to_end(STDIN_FILENO, &url, &e) < 0 || give_up_rights(&e) < 0 ||
        fetch_site(buf_str(&url), NULL, &site, &e) < 0)
        return 1;
    buf_add_str(&said, ANSWERED);
    fetch_site_fault(&site, clock_unix_s(), &said);
    return fdio_write_all(STDOUT_FILENO, said.data, said.len, &e) < 0;
}

/* ---- its parent ---- */

void site_watch_init(struct site_watch *w)
{
    *w = (struct site_watch){.due = deadline_in_ms(FIRST_MS), .fd = -1};
}

static int begin(struct site_watch *w, const char *url, struct err *e)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "socketpair");
    AUTO_FD int theirs = pair[1];
    AUTO_FD int ours = pair[0];
    const int fds[] = {theirs, theirs, -1};
    AUTO_FREE char *health = mem_printf("%s/healthz", url);
    if (fdio_write_all(ours, health, strlen(health), e) < 0)
        return -1;
    shutdown(ours, SHUT_WR);
    w->pid = privsep_start(SITE_WATCH_COMMAND, fds, ARRAY_LEN(fds), e);
    if (w->pid < 0)
        return -1;
    w->fd = TAKE_FD(ours);
    return 0;
}

/* What it has said: nothing more comes when it has ended. */
static bool end(struct site_watch *w)
{
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    struct err e = ERR_INIT;

    privsep_end(w->pid);
    const bool answered = fdio_read_to_end(w->fd, &said, &e) == 0 &&
                          strncmp(buf_str(&said), ANSWERED, strlen(ANSWERED)) == 0;
    auto_close_fd(&w->fd);
    if (answered && said.len > strlen(ANSWERED))
        log_warn("%s: clients refuse it; %s says more", buf_str(&said) + strlen(ANSWERED),
                 remedy(REMEDY_DOCTOR));
    return answered;
}

void site_watch_go_on(struct site_watch *w, const char *url)
{
    struct err e = ERR_INIT;

    if (w->fd >= 0)
        w->due = deadline_in_ms(end(w) ? DAILY_MS : AGAIN_MS);
    else if (begin(w, url, &e) == 0)
        w->due = deadline_in_ms(LOOK_MS);
    else {
        log_debug("the site's certificate: %s", e.text);
        w->due = deadline_in_ms(AGAIN_MS);
    }
}

void site_watch_clear(struct site_watch *w)
{
    if (w->fd >= 0)
        privsep_end(w->pid);
    auto_close_fd(&w->fd);
}
