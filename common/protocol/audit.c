#include "config.h"

#include "common/protocol/audit.h"

#include "common/base/auto.h"
#include "common/protocol/client_call.h"
#include "common/rpc/json.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#define TEXT_MAX    512
#define LINE_MAX    2048
#define ANSWER_MS   3000
#define SYSLOG_PATH "/dev/log"

static const struct {
    const char *name;
    enum log_level level;
    bool told; /* a command sends it */
} acts[AUDIT_ACTS] = {
    [AUDIT_RUN] = {"run", LOG_LEVEL_INFO, false},
    [AUDIT_START] = {"start", LOG_LEVEL_INFO, false},
    [AUDIT_START_REFUSED] = {"start-refused", LOG_LEVEL_ERROR, false},
    [AUDIT_RELOAD] = {"reload", LOG_LEVEL_INFO, false},
    [AUDIT_RELOAD_REFUSED] = {"reload-refused", LOG_LEVEL_ERROR, false},
    [AUDIT_RESTART] = {"restart", LOG_LEVEL_INFO, false},
    [AUDIT_RESTART_REFUSED] = {"restart-refused", LOG_LEVEL_ERROR, false},
    [AUDIT_STOP] = {"stop", LOG_LEVEL_INFO, false},
    [AUDIT_DRAIN] = {"drain", LOG_LEVEL_INFO, false},
    [AUDIT_TAKE_OVER] = {"take-over", LOG_LEVEL_INFO, false},
    [AUDIT_TOKEN_ADD] = {"token-add", LOG_LEVEL_INFO, true},
    [AUDIT_TOKEN_REVOKE] = {"token-revoke", LOG_LEVEL_INFO, true},
    [AUDIT_OAUTH_PASSPHRASE] = {"oauth-passphrase", LOG_LEVEL_INFO, true},
    [AUDIT_OAUTH_CODE] = {"oauth-code", LOG_LEVEL_INFO, true},
    [AUDIT_OAUTH_REVOKE] = {"oauth-revoke", LOG_LEVEL_INFO, true},
    [AUDIT_BACKUP] = {"backup", LOG_LEVEL_INFO, true},
    [AUDIT_RESTORE] = {"restore", LOG_LEVEL_INFO, true},
    [AUDIT_PURGE] = {"purge", LOG_LEVEL_INFO, true},
    [AUDIT_NODES] = {"nodes", LOG_LEVEL_INFO, false},
};

/* What a line may say; number: else a text. */
static const struct {
    const char *name;
    bool number;
} known_fields[AUDIT_FIELDS] = {{"tenant", false}, {"id", false},    {"scopes", false},
                                {"file", false},   {"grant", false}, {"conversations", true},
                                {"nodes", true}};

static struct {
    bool noted;
    uid_t uid;
} user;

const char *audit_name(enum audit_act act)
{
    return acts[act].name;
}

/* ---- a line ---- */

static void write_line(enum audit_act act, const struct log_field *fields, size_t n, pid_t pid,
                       uid_t uid, const char *text)
{
    struct log_field all[AUDIT_FIELDS + 3] = {{.name = "audit", .text = acts[act].name}};
    size_t used = 1;

    for (size_t i = 0; i < n && i < AUDIT_FIELDS; i++)
        all[used++] = fields[i];
    if (pid > 0) {
        all[used++] = (struct log_field){.name = "uid", .number = uid};
        all[used++] = (struct log_field){.name = "pid", .number = pid};
    }
    log_with(acts[act].level, all, used, "%s", text);
}

void audit_log(enum audit_act act, const struct log_field *fields, size_t n, pid_t pid, uid_t uid,
               const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    write_line(act, fields, n, pid, uid, text);
}

/* ---- a command's ---- */

void audit_note_user(void)
{
    user.noted = true;
    user.uid = getuid();
}

static int send_line(const char *broker, enum audit_act act, const struct log_field *fields,
                     size_t n, const char *text)
{
    const struct broker_client client = {
        .path = broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = ANSWER_MS};
    json_t *said = json_object();
    struct err none = ERR_INIT;

    for (size_t i = 0; i < n; i++)
        json_object_set_new(said, fields[i].name,
                            fields[i].text ? json_string(fields[i].text)
                                           : json_integer(fields[i].number));
    json_auto_t *done = client_ask(&client, &none, OP_AUDIT, "{s:s, s:s, s:I, s:o}", "act",
                                   acts[act].name, "text", text, "uid", (json_int_t)user.uid,
                                   "fields", said);
    return done ? 0 : -1;
}

/* The line, where standard error leads for as long. */
static void write_into(int fd, enum audit_act act, const struct log_field *fields, size_t n,
                       const char *text)
{
    AUTO_FD int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

    if (before < 0 || dup2(fd, STDERR_FILENO) < 0)
        return;
    write_line(act, fields, n, getpid(), user.uid, text);
    dup2(before, STDERR_FILENO);
}

static int write_syslog(enum audit_act act, const struct log_field *fields, size_t n,
                        const char *text)
{
    char line[LINE_MAX + 1];
    struct stat st;
    int ends[2];

    if (stat(SYSLOG_PATH, &st) < 0 || !S_ISSOCK(st.st_mode) || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    AUTO_FD int in = ends[0], out = ends[1];
    write_into(out, act, fields, n, text);
    auto_close_fd(&out);
    ssize_t len = read(in, line, LINE_MAX);
    if (len <= 1)
        return -1;
    line[len - 1] = '\0'; /* the newline */
    openlog("sandcgi", LOG_PID, LOG_DAEMON);
    syslog(LOG_NOTICE, "%s", line);
    closelog();
    return 0;
}

void audit_tell(const struct audit_place *place, enum audit_act act, const struct log_field *fields,
                size_t n, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!user.noted)
        audit_note_user();
    if (place->broker && *place->broker && send_line(place->broker, act, fields, n, text) == 0)
        return;
    log_setup(LOG_LEVEL_INFO, "command");
    if (place->log_file && *place->log_file) {
        AUTO_FD int fd = open(place->log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY,
                              0640);
        if (fd >= 0) {
            log_set_format(place->json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
            write_into(fd, act, fields, n, text);
            return;
        }
    }
    if (write_syslog(act, fields, n, text) < 0)
        write_line(act, fields, n, getpid(), user.uid, text);
}

/* ---- in the server ---- */

static enum audit_act act_named(const char *name)
{
    size_t i = 0;

    while (name && i < AUDIT_ACTS && !(acts[i].told && strcmp(acts[i].name, name) == 0))
        i++;
    return name ? (enum audit_act)i : AUDIT_ACTS;
}

int audit_take(const json_t *head, pid_t pid, uid_t uid, struct err *e)
{
    const json_t *said = json_object_get(head, "fields");
    enum audit_act act = act_named(json_get_string(head, "act"));
    const char *text = json_get_string(head, "text");
    struct log_field fields[AUDIT_FIELDS];
    size_t n = 0;

    if (act == AUDIT_ACTS || !text)
        return err_set(e, ERR_INVALID, "no such act");
    for (size_t i = 0; i < ARRAY_LEN(known_fields); i++) {
        const json_t *value = json_object_get(said, known_fields[i].name);
        if (known_fields[i].number ? json_is_integer(value) : json_is_string(value))
            fields[n++] = (struct log_field){.name = known_fields[i].name,
                                             .text = json_string_value(value),
                                             .number = json_integer_value(value)};
    }
    write_line(act, fields, n, pid, (uid_t)json_get_integer(head, "uid", (json_int_t)uid), text);
    return 0;
}
