#include "config.h"

#include "fcgi/doctor/denials.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <unistd.h>

#define AUDIT_LOG                                                                                  \
    "/var/log/audit/audit.log" /* of auditd, which takes the lines from the kernel's */
#define LOG_MAX  (1024 * 1024) /* bytes of a log's end */
#define READ_ALL 3             /* SYSLOG_ACTION_READ_ALL of syslog(2) */
#define DAY_S    86400

/* ---- a line ---- */

/* The kernel writes text that is not ASCII in hexadecimal; what is there all the same is replaced.
 */
static void copy(char *out, size_t size, const char *from, size_t len)
{
    snprintf(out, size, "%.*s", (int)(len < size ? len : size - 1), from);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c > '~')
            *c = '?';
}

/* The value behind " NAME=", with or without quotes. */
static void take(const char *line, const char *name, char *out, size_t size)
{
    const char *at = line;
    size_t len = strlen(name);

    out[0] = '\0';
    while ((at = strstr(at, name)) && (at == line || at[-1] != ' ' || at[len] != '='))
        at += len;
    if (!at)
        return;
    at += len + 1;
    len = *at == '"' ? strcspn(++at, "\"") : strcspn(at, " \n");
    copy(out, size, at, len);
}

static bool take_selinux(const char *line, const char *denied, struct denial *out)
{
    const char *open = strchr(denied, '{');
    const char *close = open ? strchr(open, '}') : NULL;

    if (!close || strstr(line, "permissive=1"))
        return false;
    open += strspn(open, "{ ");
    while (close > open && close[-1] == ' ')
        close--;
    copy(out->what, sizeof out->what, open, close > open ? (size_t)(close - open) : 0);
    take(line, "path", out->target, sizeof out->target);
    if (!*out->target)
        take(line, "name", out->target, sizeof out->target);
    take(line, "scontext", out->profile, sizeof out->profile);
    out->module = "SELinux";
    return true;
}

/* The moment in "audit(SECONDS.MS:SERIAL)"; 0: there is none. */
static int64_t take_time(const char *line)
{
    const char *at = strstr(line, "audit(");
    char digits[16] = "";
    uint64_t unix_s;

    if (!at)
        return 0;
    at += strlen("audit(");
    const size_t len = strspn(at, "0123456789");
    if (len < sizeof digits)
        copy(digits, sizeof digits, at, len);
    return parse_u64(digits, 0, INT64_MAX, &unix_s) == 0 ? (int64_t)unix_s : 0;
}

bool denial_read(const char *line, struct denial *out)
{
    const char *denied = strstr(line, "avc:  denied ");

    *out = (struct denial){.unix_s = take_time(line)};
    take(line, "comm", out->program, sizeof out->program);
    if (denied)
        return take_selinux(line, denied, out);
    if (!strstr(line, "apparmor=\"DENIED\""))
        return false;
    out->module = "AppArmor";
    take(line, "operation", out->what, sizeof out->what);
    take(line, "name", out->target, sizeof out->target);
    take(line, "profile", out->profile, sizeof out->profile);
    return true;
}

/* ---- the logs ---- */

static void add_kernel_log(struct buf *out)
{
    char *room = buf_reserve(out, LOG_MAX);
    int n = room ? klogctl(READ_ALL, room, LOG_MAX) : -1;

    if (n > 0)
        buf_grew(out, (size_t)n);
    buf_add_char(out, '\n');
}

static void add_audit_log(struct buf *out)
{
    AUTO_FD int fd = open(AUDIT_LOG, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct err e = ERR_INIT;

    if (fd >= 0 && (lseek(fd, -LOG_MAX, SEEK_END) >= 0 || lseek(fd, 0, SEEK_SET) >= 0))
        (void)fdio_read_to_end(fd, out, &e);
}

/* ---- whom a denial concerns ---- */

static bool is_one_of(const char *program, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(program, *names) == 0)
            return true;
    return false;
}

/* Is path the server's: in SANDBOX_ROOT, or a socket? */
static bool is_of_server(const struct settings *s, const char *path)
{
    const size_t len = strlen(s->sandbox_root);

    return (strncmp(path, s->sandbox_root, len) == 0 && (path[len] == '/' || !path[len])) ||
           (*path == '/' && (strcmp(path, s->listen) == 0 || strcmp(path, s->hub) == 0 ||
                             strcmp(path, s->broker) == 0));
}

static enum finding_state weigh(const struct settings *s, const struct denial *d)
{
    static const char *const ours[] = {"sandcgi", NULL};
    static const char *const web[] = {"nginx", "apache2", "httpd", "lighttpd", NULL};

    if (d->unix_s < clock_unix_s() - DAY_S)
        return FINDING_OK;
    if (is_one_of(d->program, ours) || is_of_server(s, d->target))
        return FINDING_WRONG;
    return is_one_of(d->program, web) ? FINDING_NOTE : FINDING_OK;
}

static bool first_byte_is(const char *path, char byte)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    char found;

    return fd >= 0 && read(fd, &found, 1) == 1 && found == byte;
}

static void say(struct findings *out, enum finding_state state, const struct denial *d)
{
    AUTO_FREE char *mend =
        strcmp(d->module, "SELinux") == 0
            ? mem_strdup("ausearch -m avc -ts today | audit2allow -M sandcgi && semodule -i "
                         "sandcgi.pp")
            : mem_printf("aa-logprof allows it in the profile %s; then: systemctl reload apparmor",
                         d->profile);

    findings_add(out, state, "denied", mend, "%s (%s) denied %s: %s %s", d->module, d->profile,
                 *d->program ? d->program : "a program", d->what, d->target);
}

void denials_look(const struct settings *s, struct findings *out)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * LOG_MAX);
    enum finding_state worst = FINDING_OK;
    struct denial one, latest = {0};
    const bool selinux = first_byte_is("/sys/fs/selinux/enforce", '1');

    add_kernel_log(&text);
    add_audit_log(&text);
    buf_add_char(&text, '\n');
    for (char *rest = text.data, *line; rest && (line = strsep(&rest, "\n"));) {
        const enum finding_state state = denial_read(line, &one) ? weigh(s, &one) : FINDING_OK;
        if (state == FINDING_OK || state < worst)
            continue;
        worst = state;
        latest = one;
    }
    if (worst != FINDING_OK)
        say(out, worst, &latest);
    else if (selinux || first_byte_is("/sys/module/apparmor/parameters/enabled", 'Y'))
        findings_add(out, FINDING_OK, "denied", "", "nothing by %s, as far as the log tells",
                     selinux ? "SELinux" : "AppArmor");
}
