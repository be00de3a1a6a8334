/* "sandcgi backup", "restore" and "purge": what an administrator does with conversations. */
#include "config.h"

#include "common/sandbox/archive/backup.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/protocol/client_files.h"
#include "common/records/kept_runs.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/state/retention.h"
#include "common/sandbox/state/state.h"
#include "fcgi/commands.h"
#include "fcgi/process/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MIB (1024.0 * 1024.0)

static int check_file(const struct backup_words *w, const char *what, struct err *e)
{
    return w->file ? 0
                   : err_set(e, ERR_INVALID, "the backup's file is missing (-: standard %s)", what);
}

static int print_failure(const struct err *e)
{
    fprintf(stderr, "sandcgi: %s\n", e->text);
    return 1;
}

/* count: of conversations that it has changed or read. */
static void audit(const struct settings *s, const struct backup_words *w, enum audit_act act,
                  uint64_t count)
{
    const struct audit_place place = audit_place_of(s);
    const struct log_field fields[] = {{.name = "tenant", .text = w->tenant ? w->tenant : ""},
                                       {.name = "file", .text = w->file ? w->file : ""},
                                       {.name = "conversations", .number = (int64_t)count}};

    audit_tell(&place, act, fields, ARRAY_LEN(fields), "%s",
               act == AUDIT_BACKUP    ? "conversations backed up"
               : act == AUDIT_RESTORE ? "conversations restored"
                                      : "conversations removed");
}

/* ---- SANDBOX_ROOT ---- */

/* What is made belongs to the account that the server runs as. */
static int become_owner(const struct settings *s, struct err *e)
{
    struct stat st;

    if (stat(s->sandbox_root, &st) < 0)
        return errno == ENOENT ? 0 : err_errno(e, "SANDBOX_ROOT=%s", s->sandbox_root);
    const struct account owner = {st.st_uid, st.st_gid};
    if (geteuid() != 0 && geteuid() != owner.uid)
        return err_set(e, ERR_DENIED,
                       "this needs root, or the server's account, which owns SANDBOX_ROOT=%s",
                       s->sandbox_root);
    if (geteuid() != 0 || owner.uid == 0)
        return 0;
    if (account_become(&owner, e) < 0)
        return -1;
    (void)prctl(PR_SET_PDEATHSIG, 0); /* as an administrator's command it may outlive a shell */
    return 0;
}

static int load_settings(const char *config_path, struct settings *out, struct err *e)
{
    if (settings_load(out, config_path, e) < 0)
        return -1;
    audit_note_user();
    log_setup(LOG_LEVEL_ERROR, "command"); /* the commands say themselves what they do */
    if (become_owner(out, e) == 0)
        return 0;
    settings_clear(out);
    return -1;
}

static int open_root(const struct settings *s, struct sandbox_root *out, struct err *e)
{
    if (sandbox_root_open(out, s->sandbox_root, s->sandbox_host_path, s->file_secret,
                          s->public_base_url, s->sandbox_uid, s->sandbox_gid, s->web_gid, e) < 0)
        return -1;
    out->bounds = s->bounds;
    out->bounds.total_bytes = 0; /* the server's matter */
    if (!*s->old_secret)
        return 0;
    return sandbox_root_keep_old(out, s->old_secret, s->old_secret_until, e);
}

/* ---- backup ---- */

static bool ends_in(const char *text, const char *end)
{
    const size_t len = strlen(text), n = strlen(end);

    return len > n && strcmp(text + len - n, end) == 0;
}

static int format_of(const char *file, enum backup_format *out, struct err *e)
{
    if (strcmp(file, "-") == 0 || ends_in(file, ".tar"))
        *out = BACKUP_TAR;
    else if (ends_in(file, ".tar.gz"))
        *out = BACKUP_TAR_GZ;
    else if (ends_in(file, ".tar.zst"))
        *out = BACKUP_TAR_ZST;
    else
        return err_set(e, ERR_INVALID,
                       "the backup's name must end in .tar, .tar.gz or .tar.zst, not '%s'", file);
    return 0;
}

/* A new file for its owner alone. */
static int create_file(const char *file, struct err *e)
{
    if (strcmp(file, "-") == 0)
        return isatty(STDOUT_FILENO)
                   ? err_set(e, ERR_INVALID, "a backup is not for a terminal; name a file")
                   : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? err_errno(e, "%s cannot be made", file) : fd;
}

static void say_left_out(const struct backup_sum *sum)
{
    const struct {
        uint64_t n;
        const char *what;
    } notes[] = {
        {sum->left_out, "links, special files, too deep or unreadable ones were left out"},
        {sum->changed, "files changed while they were copied"},
        {sum->unknown, "directories belong to no conversation that is known, and were left out"},
        {sum->skipped, "conversations are there already, and stay as they are"},
    };

    for (size_t i = 0; i < ARRAY_LEN(notes); i++)
        if (notes[i].n > 0)
            fprintf(stderr, "sandcgi: note: %" PRIu64 " %s\n", notes[i].n, notes[i].what);
}

static void say_sum(const char *done, const struct backup_sum *sum)
{
    fprintf(stderr, "%s: %" PRIu64 " conversations, %" PRIu64 " files, %.1f MiB\n", done,
            sum->conversations, sum->files, (double)sum->bytes / MIB);
    say_left_out(sum);
}

static int write_backup(const struct backup_words *w, const struct settings *s, int fd,
                        enum backup_format format, struct err *e)
{
    struct sandbox_root root;
    struct backup_sum sum;

    if (access(s->sandbox_root, F_OK) < 0)
        return err_errno(e, "SANDBOX_ROOT=%s", s->sandbox_root);
    if (open_root(s, &root, e) < 0)
        return -1;
    int rc = backup_write(&root, w->tenant, format, fd, &sum, e);
    sandbox_root_close(&root);
    if (rc == 0 && fsync(fd) < 0 && errno != EINVAL && errno != EROFS) /* of a pipe */
        rc = err_errno(e, "%s", w->file);
    if (rc == 0)
        say_sum("backed up", &sum);
    if (rc == 0)
        audit(s, w, AUDIT_BACKUP, sum.conversations);
    return rc;
}

int backup_run(const char *config_path, const struct backup_words *w)
{
    struct err e = ERR_INIT;
    struct settings s;
    enum backup_format format;

    if (check_file(w, "output", &e) < 0 || format_of(w->file, &format, &e) < 0)
        return print_failure(&e);
    AUTO_FD int fd = create_file(w->file, &e); /* with the rights of the start */
    if (fd < 0)
        return print_failure(&e);
    int rc = load_settings(config_path, &s, &e);
    if (rc == 0) {
        rc = write_backup(w, &s, fd, format, &e);
        settings_clear(&s);
    }
    if (rc == 0)
        return 0;
    /* In a folder that is root's it can only be emptied. */
    if (strcmp(w->file, "-") != 0 && unlink(w->file) < 0 && ftruncate(fd, 0) < 0)
        fprintf(stderr, "sandcgi: %s is not whole; remove it\n", w->file);
    return print_failure(&e);
}

/* ---- restore ---- */

struct restoring {
    struct settings *settings;
    const struct sandbox_root *root;
};

/* Of the server, or of a broker of our own: warm containers are released, files in use stay. */
static int find_broker(struct settings *s, const char *tenant, struct broker_client *out,
                       struct err *e)
{
    if (private_broker_ensure(s, false, e) < 0)
        return -1;
    *out = (struct broker_client){
        .path = s->broker, .tenant = tenant, .cancel_fd = -1, .leave_fd = -1};
    return 0;
}

static int exchange_files(void *ctx, const char *tenant, const char *conversation,
                          const char *staged, struct err *e)
{
    const struct restoring *r = ctx;
    struct broker_client client;

    if (find_broker(r->settings, tenant, &client, e) < 0)
        return -1;
    return broker_exchange_conversation(&client, conversation, staged, e);
}

static void forget_runs(void *ctx, const char *tenant, const char *conversation, int64_t before)
{
    const struct restoring *r = ctx;

    kept_runs_remove(r->root, tenant, conversation, before);
}

/* A broker of our own has no time to remove what it has moved away. */
static void end_broker(const struct sandbox_root *root)
{
    private_broker_end();
    if (private_broker_is_ours())
        trash_empty(root);
}

static void make_broker_small(struct settings *s)
{
    s->limits_check = LIMITS_TRUST;
    s->pool.n = 0;
}

static int open_backup(const char *file, struct err *e)
{
    int fd = strcmp(file, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                    : open(file, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? err_errno(e, "%s cannot be opened", file) : fd;
}

static int read_backup(const struct backup_words *w, struct settings *s, int fd, struct err *e)
{
    struct sandbox_root root;
    struct restoring r = {s, &root};
    const struct restore_want want = {.tenant = w->tenant,
                                      .conversation = w->conversation,
                                      .replace = w->replace,
                                      .skip_existing = w->skip_existing,
                                      .exchange = exchange_files,
                                      .forget_runs = forget_runs,
                                      .ctx = &r};
    struct backup_sum sum;

    if (open_root(s, &root, e) < 0)
        return -1;
    make_broker_small(s);
    int rc = backup_restore(&root, fd, &want, &sum, e);
    end_broker(&root);
    sandbox_root_close(&root);
    if (rc == 0)
        say_sum("restored", &sum);
    if (rc == 0)
        audit(s, w, AUDIT_RESTORE, sum.conversations);
    return rc;
}

int restore_run(const char *config_path, const struct backup_words *w)
{
    struct err e = ERR_INIT;
    struct settings s;

    if (w->replace && w->skip_existing)
        err_set(&e, ERR_INVALID, "--replace and --skip-existing exclude each other");
    if (e.kind != ERR_NONE || check_file(w, "input", &e) < 0)
        return print_failure(&e);
    AUTO_FD int fd = open_backup(w->file, &e);
    if (fd < 0 || load_settings(config_path, &s, &e) < 0)
        return print_failure(&e);
    int rc = read_backup(w, &s, fd, &e);
    settings_clear(&s);
    return rc < 0 ? print_failure(&e) : 0;
}

/* ---- purge ---- */

struct purge {
    const struct backup_words *words;
    int64_t before; /* last used before then; INT64_MAX: any */
    struct state_record *items;
    size_t n;
};

static void purge_clear(struct purge *p)
{
    for (size_t i = 0; i < p->n; i++)
        state_record_clear(&p->items[i]);
    free(p->items);
}

static int check_purge(const struct backup_words *w, int64_t *out_before, struct err *e)
{
    uint64_t age_ms;

    *out_before = INT64_MAX;
    if (!w->tenant && !w->older_than)
        return err_set(e, ERR_INVALID,
                       "say what to remove: --tenant T, perhaps with "
                       "--conversation C, or --older-than TIME such as 30d");
    if (w->conversation && !w->tenant)
        return err_set(e, ERR_INVALID, "--conversation needs --tenant");
    if (!w->older_than)
        return 0;
    if (parse_duration_ms(w->older_than, &age_ms) < 0)
        return err_set(e, ERR_INVALID, "--older-than must be a time such as 30d, not '%s'",
                       w->older_than);
    *out_before = clock_unix_s() - (int64_t)(age_ms / 1000);
    return 0;
}

static bool is_meant(const struct purge *p, const struct state_record *r, int64_t last_used)
{
    const struct backup_words *w = p->words;

    return (!w->tenant || strcmp(w->tenant, r->tenant) == 0) &&
           (!w->conversation || strcmp(w->conversation, r->conversation) == 0) &&
           last_used < p->before;
}

static int find_meant(struct purge *p, const struct sandbox_root *root, struct err *e)
{
    AUTO_RETENTION struct retention all = {0};

    if (retention_gather(root, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) {
        struct state_record r = {0};
        struct err unknown = ERR_INIT;
        if (state_read(root, all.items[i].name, &r, &unknown) == 0 &&
            is_meant(p, &r, all.items[i].last_used)) {
            p->items = mem_resize(p->items, p->n + 1, sizeof *p->items);
            p->items[p->n++] = r;
        } else {
            state_record_clear(&r);
        }
    }
    return 0;
}

static bool is_confirmed(const struct purge *p)
{
    char answer[16] = "";

    if (p->words->yes)
        return true;
    if (!isatty(STDIN_FILENO)) {
        fputs("sandcgi: nothing was removed: without a terminal, confirm by --yes\n", stderr);
        return false;
    }
    fprintf(stderr, "Remove %zu conversations with their files and results? [y/N] ", p->n);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int remove_conversation(struct settings *s, const struct state_record *r, struct err *e)
{
    struct broker_client client;

    if (find_broker(s, r->tenant, &client, e) < 0)
        return -1;
    json_auto_t *done = broker_delete_conversation(&client, r->conversation, e);
    return done ? 0 : err_wrap(e, "conversation %s of %s", r->conversation, r->tenant);
}

/* One that is in use stays. */
static int remove_meant(const struct purge *p, const struct sandbox_root *root, struct settings *s)
{
    size_t kept = 0;

    make_broker_small(s);
    for (size_t i = 0; i < p->n; i++) {
        struct err e = ERR_INIT;
        if (remove_conversation(s, &p->items[i], &e) == 0) {
            printf("removed %s %s\n", p->items[i].tenant, p->items[i].conversation);
            continue;
        }
        kept++;
        fprintf(stderr, "sandcgi: kept: %s\n", e.text);
    }
    end_broker(root);
    audit(s, p->words, AUDIT_PURGE, p->n - kept);
    printf("%zu of %zu conversations were removed\n", p->n - kept, p->n);
    return kept > 0;
}

static int purge(struct purge *p, const struct sandbox_root *root, struct settings *s,
                 struct err *e)
{
    if (find_meant(p, root, e) < 0)
        return print_failure(e);
    for (size_t i = 0; (p->words->dry_run || !p->words->yes) && i < p->n; i++)
        printf("%s %s\n", p->items[i].tenant, p->items[i].conversation);
    if (p->n == 0)
        puts("there is nothing to remove");
    if (p->n == 0 || p->words->dry_run)
        return 0;
    fflush(stdout);
    return is_confirmed(p) ? remove_meant(p, root, s) : 1;
}

int purge_run(const char *config_path, const struct backup_words *w)
{
    struct err e = ERR_INIT;
    struct settings s;
    struct sandbox_root root;
    struct purge p = {.words = w};

    if (check_purge(w, &p.before, &e) < 0 || load_settings(config_path, &s, &e) < 0)
        return print_failure(&e);
    int result = 1;
    if (open_root(&s, &root, &e) < 0) {
        print_failure(&e);
    } else {
        result = purge(&p, &root, &s, &e);
        sandbox_root_close(&root);
    }
    purge_clear(&p);
    settings_clear(&s);
    return result;
}
