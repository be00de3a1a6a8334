#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/server/grant_list.h"
#include "fcgi/oauth/server/store.h"
#include "fcgi/process/resources.h"
#include "fcgi/tokens/token_edit.h"
#include "fcgi/tokens/token_table.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ACT_ADD      0 /* of acts */
#define EXIT_WORDS   2
#define EXIT_UNTOLD  3
#define DAY_S        86400
#define EXPIRES_DAYS 36500

static const char usage[] =
    "usage: sandcgi token add [--tenant NAME] [--expires DATE|TIME] [--scope NAME,...]\n"
    "       sandcgi token list [--tenant NAME] [--json]\n"
    "       sandcgi token revoke ID | --tenant NAME\n"
    "\n"
    "add prints a new token, once: the file holds its hash. Calls that run are not ended by "
    "revoke.\n"
    "With SANDCGI_OAUTH=builtin list and revoke concern what OAuth clients were allowed, too.\n"
    "\n"
    "  --tenant NAME     owner of conversations and files; of add: default\n"
    "  --expires WHEN    2027-01-31 (its beginning, UTC), 90d, 12h or 30m; without it: never\n"
    "  --scope NAME,...  what the token allows, of: " SCOPE_NAMES "; without it: all\n"
    "  --token-stdin     add the token on standard input, which the file then holds as it is\n"
    "  --json            list as JSON\n"
    "  --file FILE       the file, without settings (default: SANDCGI_TOKENS_FILE)\n"
    "  --reload COMMAND  has nginx read it again (default: SANDCGI_TOKENS_RELOAD)\n"
    "  --no-reload       nginx reads it at its next reload\n"
    "  --config FILE     the settings (default: $SANDCGI_CONFIG, or " SETTINGS_FILE ")\n"
    "\n"
    "Exit status: 1: nothing has changed. 2: wrong words. 3: the file has changed, but nginx "
    "could\n"
    "not be told: the change counts from nginx's next reload.\n";

struct order {
    const char *act, *tenant, *expires, *scope, *file, *reload, *config, *id;
    bool from_stdin, as_json, no_reload;
    bool by_server; /* the server itself reads the file */
    char *path;     /* of the file, without links; NULL: there is none, but grants */
    int grants_fd;  /* folder of the authorization server; -1: there is none */
    struct settings settings;
    bool has_settings;
    struct audit_place place; /* of settings */
};

/* ---- what is said ---- */

static void audit(const struct order *o, enum audit_act act, const struct token *t)
{
    char scopes[SCOPE_TEXT_MAX];

    scopes_format(t->scopes, scopes);
    const struct log_field fields[] = {{.name = "tenant", .text = t->tenant},
                                       {.name = "id", .text = t->id},
                                       {.name = "scopes", .text = scopes},
                                       {.name = "file", .text = o->path}};
    audit_tell(&o->place, act, fields, ARRAY_LEN(fields),
               act == AUDIT_TOKEN_ADD ? "token added" : "token revoked");
}

static bool run_command(const char *command)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        dup2(STDERR_FILENO, STDOUT_FILENO); /* which has the token alone */
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* After everything is said: a token that was not shown would be lost. */
static int tell_nginx(const struct order *o)
{
    const char *command = o->reload ? o->reload : o->has_settings ? o->settings.tokens_reload : "";

    if (o->no_reload || (o->by_server && !*command))
        return 0;
    if (*command && run_command(command))
        return 0;
    fprintf(stderr,
            "sandcgi: %s has changed, but nginx could not be told (%s%s%s): the change counts from "
            "its next reload\n",
            o->path, *command ? "\"" : "", *command ? command : "SANDCGI_TOKENS_RELOAD is not set",
            *command ? "\" failed" : "");
    return EXIT_UNTOLD;
}

/* ---- add ---- */

/* A day, or a time from now, as Unix time. */
static int parse_expires(const char *text, int64_t *out, struct err *e)
{
    const size_t len = strlen(text);
    const bool bare = text[strspn(text, "0123456789")] == '\0'; /* a year, perhaps */
    struct tm tm = {0};
    uint64_t ms;
    const char *end = strptime(text, "%Y-%m-%d", &tm);

    if (len == 10 && end && !*end)
        *out = timegm(&tm);
    else if (!bare && parse_duration_ms(text, &ms) == 0 && ms >= 1000 &&
             ms / 1000 <= (uint64_t)EXPIRES_DAYS * DAY_S)
        *out = clock_unix_s() + (int64_t)(ms / 1000);
    else
        return err_set(
            e, ERR_INVALID,
            "--expires must be a day such as 2027-01-31 or a time such as 90d, 12h or 30m, "
            "of at most %d days, not \"%.40s\"",
            EXPIRES_DAYS, text);
    if (*out <= clock_unix_s())
        return err_set(e, ERR_INVALID, "--expires %.40s is past", text);
    return 0;
}

static int read_own(struct token *out, char text[TOKEN_TEXT_MAX + 1], struct err *e)
{
    AUTO_BUF struct buf input = BUF_INIT(2 * TOKEN_TEXT_MAX);

    if (fdio_read_to_end(STDIN_FILENO, &input, e) < 0)
        return err_wrap(e, "the token on standard input");
    size_t len = strcspn(buf_str(&input), "\r\n");
    snprintf(text, TOKEN_TEXT_MAX + 1, "%.*s", (int)(len > TOKEN_TEXT_MAX ? 0 : len),
             buf_str(&input));
    if (input.len > 0)
        explicit_bzero(input.data, input.len);
    return token_own_init(text, out, e);
}

static int make_token(const struct order *o, struct token *out, char text[TOKEN_TEXT_MAX + 1],
                      struct err *e)
{
    snprintf(out->tenant, sizeof out->tenant, "%s", o->tenant ? o->tenant : "default");
    out->scopes = o->scope ? token_scopes_parse(o->scope) : SCOPE_ALL;
    out->made_s = clock_unix_s();
    if (!out->scopes)
        return err_set(e, ERR_INVALID, "--scope must be of: " SCOPE_NAMES ", not \"%.40s\"",
                       o->scope);
    if (o->expires && o->from_stdin)
        return err_set(e, ERR_INVALID, "--expires: a token of your own has no end; revoke it");
    if (o->expires && parse_expires(o->expires, &out->expires_s, e) < 0)
        return -1;
    return o->from_stdin ? read_own(out, text, e) : token_make(out, text, e);
}

static int run_add(const struct order *o, struct err *e)
{
    char text[TOKEN_TEXT_MAX + 1] = "", scopes[SCOPE_TEXT_MAX];
    struct token token = {0};
    const struct token_added add = {&token, text};
    bool changed = false;

    if (make_token(o, &token, text, e) < 0 ||
        token_edit(o->path, &add, NULL, NULL, NULL, &changed, e) < 0)
        return -1;
    bool shown = token.own || (puts(text) >= 0 && fflush(stdout) == 0);
    explicit_bzero(text, sizeof text);
    if (!changed)
        return 0;
    audit(o, AUDIT_TOKEN_ADD, &token);
    scopes_format(token.scopes, scopes);
    fprintf(stderr, "sandcgi: token %s of tenant %s is in %s (%s)\n", token.id, token.tenant,
            o->path, scopes);
    if (!shown)
        return err_set(e, ERR_IO, "the token could not be printed: sandcgi token revoke %s",
                       token.id);
    return tell_nginx(o);
}

/* ---- revoke ---- */

/* Returns how many there were, or -1. */
static int revoke_grants(const struct order *o, struct err *e)
{
    json_t *row;
    size_t i;

    if (o->grants_fd < 0)
        return 0;
    json_auto_t *gone = grant_list_revoke(o->grants_fd, o->id, o->tenant, e);
    if (!gone)
        return -1;
    json_array_foreach(gone, i, row)
    {
        const char *id = json_get_string(row, "id"), *tenant = json_get_string(row, "tenant");
        const struct log_field fields[] = {{.name = "tenant", .text = tenant},
                                           {.name = "grant", .text = id}};
        audit_tell(&o->place, AUDIT_OAUTH_REVOKE, fields, ARRAY_LEN(fields), "grant revoked");
        fprintf(stderr, "sandcgi: grant %s of tenant %s is revoked\n", id, tenant);
    }
    return (int)json_array_size(gone);
}

/* Is the token meant by the words? */
static bool is_meant(const void *ctx, const struct token *t)
{
    const struct order *o = ctx;

    return o->id ? strcmp(t->id, o->id) == 0 : strcmp(t->tenant, o->tenant) == 0;
}

static int run_revoke(const struct order *o, struct err *e)
{
    struct token_list gone = {0};
    bool changed = false;
    int n = revoke_grants(o, e);

    if (n < 0)
        return -1;
    if (o->path && token_edit(o->path, NULL, is_meant, o, &gone, &changed, e) < 0)
        return -1;
    for (size_t i = 0; i < gone.n; i++) {
        audit(o, AUDIT_TOKEN_REVOKE, &gone.items[i]);
        fprintf(stderr, "sandcgi: token %s of tenant %s is no longer in %s\n", gone.items[i].id,
                gone.items[i].tenant, o->path);
    }
    token_list_clear(&gone);
    if (!changed && n == 0)
        return err_set(e, ERR_NOT_FOUND, "%s has no token with this %s; see: sandcgi token list",
                       o->path ? o->path : "the server", o->id ? "id" : "tenant");
    return changed ? tell_nginx(o) : 0;
}

/* ---- list ---- */

static void day_text(int64_t unix_s, const char *none, char out[32])
{
    const time_t time = (time_t)unix_s;
    struct tm tm;

    if (unix_s)
        strftime(out, 32, "%Y-%m-%d %H:%M", gmtime_r(&time, &tm));
    else
        snprintf(out, 32, "%s", none);
}

static void print_table(const struct token_list *list)
{
    char scopes[SCOPE_TEXT_MAX], made[32], expires[32];

    printf("%-12s  %-20s  %-17s  %-16s  %s\n", "ID", "TENANT", "SCOPES", "CREATED (UTC)",
           "EXPIRES (UTC)");
    for (size_t i = 0; i < list->n; i++) {
        const struct token *t = &list->items[i];
        scopes_format(t->scopes, scopes);
        day_text(t->made_s, "-", made);
        day_text(t->expires_s, "never", expires);
        printf("%-12s  %-20s  %-17s  %-16s  %s%s\n", t->id, t->tenant, scopes, made, expires,
               t->own                                          ? " (stored as it is)"
               : t->expires_s && t->expires_s < clock_unix_s() ? " (expired)"
                                                               : "");
    }
}

static void print_grants(const json_t *grants)
{
    char made[32], expires[32];
    json_t *row;
    size_t i;

    json_array_foreach(grants, i, row)
    {
        const json_t *client = json_object_get(row, "client");
        char scopes[SCOPE_TEXT_MAX];
        scopes_format(scopes_parse(json_get_string(row, "scope")), scopes);
        day_text(json_get_integer(row, "createdAt", 0), "-", made);
        day_text(json_get_integer(row, "expiresAt", 0), "-", expires);
        printf("%-12s  %-20s  %-17s  %-16s  %s (OAuth: %s, %s)\n", json_get_string(row, "id"),
               json_get_string(row, "tenant"), scopes, made, expires,
               json_get_string(client, "name"), json_get_string(client, "place"));
    }
}

static json_t *scopes_json(unsigned scopes)
{
    json_t *array = json_array();
    char text[SCOPE_TEXT_MAX], *rest = text, *word;

    scopes_format(scopes, text);
    while ((word = strsep(&rest, ",")))
        json_array_append_new(array, json_string(word));
    return array;
}

static void print_json(const struct token_list *list, const json_t *grants)
{
    json_auto_t *array = json_array();
    json_t *row;
    size_t n;

    for (size_t i = 0; i < list->n; i++) {
        const struct token *t = &list->items[i];
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:b}", "id", t->id, "tenant",
                             t->tenant, "scopes", scopes_json(t->scopes), "createdAt",
                             t->made_s ? json_integer(t->made_s) : json_null(), "expiresAt",
                             t->expires_s ? json_integer(t->expires_s) : json_null(), "expired",
                             t->expires_s && t->expires_s < clock_unix_s(), "storedAsIs", t->own));
    }
    json_array_foreach(grants, n, row)
    {
        json_object_set_new(row, "scopes",
                            scopes_json(scopes_parse(json_get_string(row, "scope"))));
        json_object_del(row, "scope");
        json_array_append(array, row);
    }
    json_dumpf(array, stdout, JSON_INDENT(2));
    putchar('\n');
}

static int run_list(const struct order *o, struct err *e)
{
    struct token_list list = {0};
    json_auto_t *grants = o->grants_fd < 0 ? json_array() : grant_list(o->grants_fd, o->tenant, e);

    if (!grants ||
        (o->path && access(o->path, F_OK) == 0 && token_list_read(o->path, &list, e) < 0))
        return -1;
    size_t all = list.n;
    list.n = 0;
    for (size_t i = 0; i < all; i++)
        if (!o->tenant || strcmp(list.items[i].tenant, o->tenant) == 0)
            list.items[list.n++] = list.items[i];
    if (o->as_json)
        print_json(&list, grants);
    else {
        print_table(&list);
        print_grants(grants);
    }
    if (o->path)
        fprintf(stderr, "sandcgi: %zu tokens in %s\n", list.n, o->path);
    if (o->grants_fd >= 0)
        fprintf(stderr, "sandcgi: %zu grants of OAuth clients\n", json_array_size(grants));
    token_list_clear(&list);
    return 0;
}

/* ---- the words ---- */

static int wrong_words(const char *problem)
{
    fprintf(stderr, "sandcgi token: %s; see sandcgi token --help\n", problem);
    return EXIT_WORDS;
}

enum {
    OPT_TENANT = 1,
    OPT_EXPIRES,
    OPT_SCOPE,
    OPT_STDIN,
    OPT_JSON,
    OPT_FILE,
    OPT_RELOAD,
    OPT_NO_RELOAD,
    OPT_CONFIG,
    OPT_HELP
};
static const struct option options[] = {{"tenant", required_argument, NULL, OPT_TENANT},
                                        {"expires", required_argument, NULL, OPT_EXPIRES},
                                        {"scope", required_argument, NULL, OPT_SCOPE},
                                        {"token-stdin", no_argument, NULL, OPT_STDIN},
                                        {"json", no_argument, NULL, OPT_JSON},
                                        {"file", required_argument, NULL, OPT_FILE},
                                        {"reload", required_argument, NULL, OPT_RELOAD},
                                        {"no-reload", no_argument, NULL, OPT_NO_RELOAD},
                                        {"config", required_argument, NULL, OPT_CONFIG},
                                        {"help", no_argument, NULL, OPT_HELP},
                                        {0}};

/* 0: go on; else the exit status, plus one. */
static int take_option(struct order *o, int option)
{
    const char **texts[] = {
        [OPT_TENANT] = &o->tenant, [OPT_EXPIRES] = &o->expires, [OPT_SCOPE] = &o->scope,
        [OPT_FILE] = &o->file,     [OPT_RELOAD] = &o->reload,   [OPT_CONFIG] = &o->config};
    bool *flags[] = {
        [OPT_STDIN] = &o->from_stdin, [OPT_JSON] = &o->as_json, [OPT_NO_RELOAD] = &o->no_reload};

    if (option == OPT_HELP) {
        fputs(usage, stdout);
        return 1;
    }
    if (option <= 0 || option > OPT_HELP)
        return 1 + EXIT_WORDS;
    if ((size_t)option < ARRAY_LEN(texts) && texts[option])
        *texts[option] = optarg;
    else
        *flags[option] = true;
    return 0;
}

/* The file, and what goes with it, from the words or from the settings. */
static int find_file(struct order *o, size_t act, struct err *e)
{
    if (!o->file) {
        if (settings_load(&o->settings, o->config, e) < 0)
            return -1;
        o->has_settings = true;
        o->place = audit_place_of(&o->settings);
        o->file = o->settings.tokens_file;
        o->by_server = o->settings.auth == SETTINGS_AUTH_TOKEN;
        AUTO_FREE char *folder = mem_printf("%s/" STORE_FOLDER, o->settings.sandbox_root);
        if (o->settings.access.builtin)
            o->grants_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    log_set_role("token");
    if (!*o->file && o->grants_fd >= 0 && act != ACT_ADD)
        return 0;
    if (!*o->file)
        return err_set(e, ERR_INVALID,
                       "SANDCGI_TOKENS_FILE is not set; set it to the file that nginx includes "
                       "(TOKENS_FILE of the site), or name it with --file");
    o->path = realpath(o->file, NULL);
    if (!o->path)
        o->path = mem_strdup(o->file);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(const struct order *o, struct err *e); /* the exit status, or -1 */
} acts[] = {{"add", run_add}, {"list", run_list}, {"revoke", run_revoke}};

static int run_order(struct order *o, size_t act)
{
    struct err e = ERR_INIT;
    int status = find_file(o, act, &e);

    if (status == 0)
        status = acts[act].run(o, &e);
    if (status < 0)
        fprintf(stderr, "sandcgi: %s\n", e.text);
    free(o->path);
    auto_close_fd(&o->grants_fd);
    if (o->has_settings)
        settings_clear(&o->settings);
    return status < 0 ? 1 : status;
}

int token_run(char *const *words)
{
    struct order o = {.config = settings_default_file(), .grants_fd = -1};
    int n = 0, option, end;
    size_t act = 0;

    while (words[n])
        n++;
    log_setup(LOG_LEVEL_INFO, "token");
    log_set_format(LOG_FORMAT_TEXT);
    /* getopt takes words[-1], which is "token", for the program's name. */
    while ((option = getopt_long(n + 1, (char **)words - 1, "h", options, NULL)) != -1)
        if ((end = take_option(&o, option == 'h' ? OPT_HELP : option)) > 0)
            return end - 1;
    words += optind - 1;
    n -= optind - 1;
    while (n > 0 && act < ARRAY_LEN(acts) && strcmp(words[0], acts[act].name) != 0)
        act++;
    if (n < 1 || act == ARRAY_LEN(acts))
        return wrong_words("add, list or revoke is expected");
    bool revoke = acts[act].run == run_revoke;
    o.id = n > 1 ? words[1] : NULL;
    if (n > (revoke ? 2 : 1))
        return wrong_words("there is a word too many");
    if (revoke && !o.id == !o.tenant)
        return wrong_words("revoke needs the ID of a token, or --tenant");
    if (o.tenant && !token_tenant_is_valid(o.tenant))
        return wrong_words(
            "a tenant's name is 1 to 64 letters, digits, dots, dashes or underscores, "
            "beginning with a letter or digit");
    return run_order(&o, act);
}
