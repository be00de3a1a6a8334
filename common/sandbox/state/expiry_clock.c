#include "config.h"

#include "common/sandbox/state/expiry_clock.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/staging.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define HOUR_S     3600
#define WAIT_MAX_S (2 * HOUR_S)
#define WAIT_PARTS 8
#define FILE_NAME  "clock"
#define FILE_MAX   512
#define FILE_DEPTH 4
#define BOOT_ID    "/proc/sys/kernel/random/boot_id"
#define BOOT_LEN   36

int64_t expiry_wait_s(int64_t ttl_s)
{
    if (ttl_s < HOUR_S)
        return 0;
    return ttl_s / WAIT_PARTS < WAIT_MAX_S ? ttl_s / WAIT_PARTS : WAIT_MAX_S;
}

int64_t expiry_clock_look(struct expiry_clock *c, int64_t ttl_s, struct expiry_look look)
{
    int64_t wait_s = expiry_wait_s(ttl_s);

    if (wait_s == 0)
        return look.unix_s;
    if (c->latest.unix_s == 0 || look.mono_s < c->latest.mono_s) {
        *c = (struct expiry_clock){.latest = look};
    } else if (look.mono_s - c->latest.mono_s >= wait_s) {
        c->sure = c->latest;
        c->latest = look;
    }
    return c->sure.unix_s < look.unix_s ? c->sure.unix_s : look.unix_s;
}

/* ---- .state/clock: the boot, and both looks ---- */

static void read_boot(char out[BOOT_LEN + 1])
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct err e = ERR_INIT;

    out[0] = '\0';
    if (fdio_read_file(BOOT_ID, &text, &e) == 0)
        snprintf(out, BOOT_LEN + 1, "%s", buf_str(&text));
}

static struct expiry_look look_of(const json_t *record, const char *name)
{
    const json_t *look = json_object_get(record, name);

    return (struct expiry_look){.mono_s = json_get_integer(look, "mono", 0),
                                .unix_s = json_get_integer(look, "unix", 0)};
}

/* A file of another boot, or that makes no sense, is none. */
static struct expiry_clock load(int dir_fd, const char *boot)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    AUTO_FD int fd = openat(dir_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct err e = ERR_INIT;

    if (fd < 0 || fdio_read_to_end(fd, &text, &e) < 0)
        return (struct expiry_clock){0};
    json_auto_t *record = json_parse(buf_str(&text), text.len, FILE_DEPTH, &e);
    const char *written = json_get_string(record, "boot");
    if (!written || strcmp(written, boot) != 0)
        return (struct expiry_clock){0};
    return (struct expiry_clock){.sure = look_of(record, "sure"),
                                 .latest = look_of(record, "latest")};
}

static json_t *look_new(const struct expiry_look *look)
{
    return json_pack("{s:I, s:I}", "mono", (json_int_t)look->mono_s, "unix",
                     (json_int_t)look->unix_s);
}

static int save(const struct sandbox_root *root, int dir_fd, const char *boot,
                const struct expiry_clock *c, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    AUTO_STAGED struct staged file = STAGED_INIT;
    AUTO_FD int fd = staging_create_file(root, &file);
    json_auto_t *record = json_pack("{s:s, s:o, s:o}", "boot", boot, "sure", look_new(&c->sure),
                                    "latest", look_new(&c->latest));

    if (fd < 0)
        return err_errno(e, "cannot be made");
    if (json_write(record, &text) < 0)
        return err_set(e, ERR_LIMIT, "is over %d bytes", FILE_MAX);
    if (fdio_write_all(fd, text.data, text.len, e) < 0)
        return -1;
    if (staged_move(&file, dir_fd, FILE_NAME, STAGED_MOVE_REPLACE) < 0)
        return err_errno(e, "cannot be put in its place");
    return 0;
}

int64_t expiry_now(const struct sandbox_root *root, struct expiry_look look)
{
    AUTO_FD int dir_fd = openat(root->fd, STATE_DIR,
                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct err e = ERR_INIT;
    char boot[BOOT_LEN + 1];

    read_boot(boot);
    struct expiry_clock before = load(dir_fd, boot), c = before;
    int64_t now = expiry_clock_look(&c, root->bounds.ttl_s, look);
    if (memcmp(&c, &before, sizeof c) != 0 && save(root, dir_fd, boot, &c, &e) < 0)
        log_warn(STATE_DIR "/" FILE_NAME " %s: files expire later", e.text);
    return now;
}
