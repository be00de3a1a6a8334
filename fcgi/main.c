#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/remedy.h"
#include "common/base/sock.h"
#include "common/base/version.h"
#include "common/fetch/fetch.h"
#include "common/fetch/site.h"
#include "common/index/proxy.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/archive/backup.h"
#include "common/sandbox/links/file_link.h"
#include "common/tools/tools.h"
#include "fcgi/command_line.h"
#include "fcgi/commands.h"
#include "fcgi/hub/events.h"
#include "fcgi/process/settings_check.h"
#include "fcgi/stdio/desktop.h"
#include "fcgi/way.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PRINT_MAX (256u * 1024)

static int print_error(const struct err *e)
{
    fprintf(stderr, "sandcgi: %s\n", e->text);
    return 1;
}

static const char *tools; /* --tools; NULL: the setting TOOLS */

static int choose_tools(struct settings *s, struct err *e)
{
    if (tools && (s->toolset = toolset_find(tools)) < 0)
        return err_set(e, ERR_INVALID, "--tools must be one of: %s", TOOLSET_NAMES);
    return 0;
}

/* CGI and stdio: one process with one front end, and a broker that runs or a private one. */
static int run_single(const char *config_path, bool http)
{
    struct err e = ERR_INIT;
    struct settings settings;
    const struct account self = {.uid = geteuid(), .gid = getegid()};
    struct err none = ERR_INIT;
    struct app app;
    int result = -1;

    if (!http)
        remedy_find_way(way_stdio);
    if (settings_load(&settings, config_path, &e) < 0 || choose_tools(&settings, &e) < 0)
        return print_error(&e);
    log_setup((enum log_level)settings.log_level, http ? "cgi" : "stdio");
    log_set_format((enum log_format)settings.log_format);
    settings.limits_check = LIMITS_TRUST; /* not at each start of a client */
    if (http)
        settings.pool.n = 0; /* the process ends before a warm container could be used */
    if (private_broker_ensure(&settings, http, &e) == 0 &&
        app_init(&app, &settings, http, NULL, &e) == 0) {
        if (http) {
            /* Sessions outlive a CGI process. Without write access there are none. */
            AUTO_FD int sessions_fd = sessions_dir_open(&settings, &self, &none);
            if (sessions_fd < 0)
                log_debug("no sessions: %s", none.text);
            app_set_sessions(&app, sessions_fd);
            cgi_serve(&app);
            private_broker_let_go();
            result = 0;
        } else {
            AUTO_FD int events_fd = private_broker_is_ours()
                                        ? events_listen(settings.events, &self, &none)
                                        : -1;
            if (none.kind != ERR_NONE)
                log_warn("no notifications of changed runners: %s", none.text);
            result = stdio_serve(&app, events_fd, &e);
        }
        app_clear(&app);
    }
    private_broker_end();
    settings_clear(&settings);
    return result < 0 ? print_error(&e) : 0;
}

/* Without settings, as a desktop client starts it. */
static int run_stdio(const char *config_path)
{
    struct err e = ERR_INIT;
    AUTO_FREE char *own = NULL;

    if (!config_path && !getenv("SANDBOX_ROOT") && !(own = desktop_settings(&e)))
        return print_error(&e);
    return run_single(own ? own : config_path, false);
}

static int run_cgi(const char *config_path)
{
    return run_single(config_path, true);
}

static int print_values(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    if (settings_load(&settings, config_path, &e) < 0)
        return print_error(&e);
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);
    for (const struct conf_row *row = settings_table; row->name; row++) {
        if (row->flags & CONF_FIXED)
            continue;
        buf_addf(&text, "%s=", row->name);
        conf_format(row, &settings, &text);
        buf_add_char(&text, '\n');
    }
    fputs(buf_str(&text), stdout);
    settings_clear(&settings);
    return 0;
}

static bool as_values; /* --values */

static int run_check(const char *config_path)
{
    return as_values && print_values(config_path) > 0 ? 1 : settings_check_print_file(config_path);
}

/* The lines that nginx includes (FILE_KEY_CONF). */
static int run_file_key(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    struct file_key key;
    if (settings_load(&settings, config_path, &e) < 0)
        return print_error(&e);
    int rc = file_key_derive(settings.file_secret, &key, &e);
    const bool old_links = clock_unix_s() < settings.old_secret_until;
    settings_clear(&settings);
    if (rc < 0)
        return print_error(&e);
    printf("set $sandcgi_file_key \"%s\";\n", key.text);
    if (old_links) /* nginx checks with one key; workers check the others' */
        puts("set $sandcgi_old_links old;");
    return 0;
}

static bool as_json; /* --json */
static bool watch;   /* --watch */
static bool here;    /* --here */

static int run_status(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    if (settings_load(&settings, config_path, &e) < 0)
        return print_error(&e);
    int result = here && guard_find(settings.broker, &e) < 0
                     ? print_error(&e)
                     : status_show(&settings, config_path, as_json, watch);
    settings_clear(&settings);
    return here && result == STATUS_NO_ENGINE ? 0 : result; /* to end it would help nothing */
}

static const char *wait_time; /* --wait */

static int run_drain(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    uint64_t wait_ms;
    if (settings_load_places(&settings, config_path, &e) < 0)
        return print_error(&e);
    wait_ms = settings.limits.timeout_max_ms;
    int result = 2;
    if (wait_time && parse_duration_ms(wait_time, &wait_ms) < 0)
        fputs("sandcgi: --wait must be a time like 500ms, 30s or 5m\n", stderr);
    else
        result = drain_run(&settings, wait_ms);
    settings_clear(&settings);
    return result;
}

static bool quiet;               /* --quiet */
static const char *nginx_folder; /* --nginx */

static int run_doctor(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    if (settings_load(&settings, config_path, &e) < 0)
        return doctor_show_error(&e, as_json);
    int result = doctor_show(&settings, config_path, nginx_folder, as_json, quiet);
    settings_clear(&settings);
    return result;
}

static int run_prove(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    if (settings_load(&settings, config_path, &e) < 0) {
        print_error(&e);
        return PROVE_UNTRIED;
    }
    int result = prove_run(&settings, quiet);
    settings_clear(&settings);
    return result;
}

static bool as_man; /* --man */

static const char *wanted; /* --get */

/* Prints one value as the file has it, of secrets, too; 1: it is not there. */
static int print_one(const char *config_path)
{
    struct err e = ERR_INIT;
    AUTO_FREE char *text = NULL;

    if (!config_path || conf_file_value(config_path, wanted, &text, &e) < 0) {
        print_error(&e);
        return 3;
    }
    if (!text)
        return 1;
    puts(text);
    return 0;
}

static int run_settings(const char *config_path)
{
    if (wanted)
        return print_one(config_path);
    if (as_values)
        return print_values(config_path);
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);
    if (as_man)
        conf_print_man(settings_table, settings_groups, &text);
    else
        conf_print_markdown(settings_table, settings_groups, &text);
    fputs(buf_str(&text), stdout);
    return 0;
}

static char *const *words; /* that follow the command */

static int run_setup(void)
{
    return setup_run(words);
}

static int run_token(void)
{
    return token_run(words);
}

static int run_oauth(void)
{
    return oauth_run(words);
}

static int run_nodes(void)
{
    return nodes_run(words);
}

static struct backup_words chosen;

static int run_backup(const char *config_path)
{
    return backup_run(config_path, &chosen);
}

static int run_restore(const char *config_path)
{
    return restore_run(config_path, &chosen);
}

static int run_purge(const char *config_path)
{
    return purge_run(config_path, &chosen);
}

static int run_version(void)
{
    printf("sandcgi %s\n", sandcgi_version);
    return 0;
}

static int run_reload(const char *config_path)
{
    return reload_run(config_path, wait_time);
}

static int run_stop(const char *config_path)
{
    return stop_run(config_path, wait_time);
}

static const char *lines; /* --lines */
static bool follow;       /* --follow */

static int run_logs(const char *config_path)
{
    return logs_run(config_path, lines, follow);
}

static int run_help(void);

static const struct command commands[] = {
    {"serve", EVERYDAY | NEEDS_FILE, serve_run, NULL, "", "run the server, behind a web server"},
    {"stdio", EVERYDAY | NEEDS_FILE, run_stdio, NULL, "",
     "serve one MCP client on standard input and output"},
    {"cgi", EVERYDAY | NEEDS_FILE, run_cgi, NULL, "",
     "serve one request as a CGI program (also if GATEWAY_INTERFACE is set)"},
    {"status", EVERYDAY, run_status, NULL, "",
     "print the state of the running server (exit status 1: none runs, 3: no engine answers it)"},
    {"logs", EVERYDAY, run_logs, NULL, "", "show the last lines of the server's log"},
    {"check", EVERYDAY, run_check, NULL, "", "check the settings, and that what they name is here"},
    {"doctor", EVERYDAY, run_doctor, NULL, "", "look for what is wrong, and say what mends it"},
    {"prove", EVERYDAY, run_prove, NULL, "",
     "try the walls around programs with programs that mean harm, and say which hold"},
    {"reload", EVERYDAY, run_reload, NULL, "",
     "have the server take up new settings, or a new program, without a lost call"},
    {"restart", EVERYDAY, restart_run, NULL, "", "stop the server and start it again"},
    {"stop", EVERYDAY, run_stop, NULL, "", "stop the server when the running programs have ended"},
    {"setup", ADMINISTRATION | OWN_HELP, NULL, run_setup, "nginx",
     "put the server into an nginx that is there already"},
    {"token", ADMINISTRATION | OWN_HELP, NULL, run_token, "", "make, list and revoke tokens"},
    {"oauth", ADMINISTRATION | OWN_HELP, NULL, run_oauth, "",
     "set the passphrase that allows clients (SANDCGI_OAUTH=builtin)"},
    {"backup", ADMINISTRATION, run_backup, NULL, "FILE",
     "write conversations to FILE.tar[.gz|.zst], or to - (standard output)"},
    {"restore", ADMINISTRATION, run_restore, NULL, "FILE",
     "restore conversations from a backup's file, or from - (standard input)"},
    {"purge", ADMINISTRATION, run_purge, NULL, "",
     "remove conversations of a tenant, or unused ones"},
    {"drain", ADMINISTRATION, run_drain, NULL, "",
     "stop the server when no program runs; until then /readyz answers 503"},
    {"nodes", ADMINISTRATION | OWN_HELP, NULL, run_nodes, "", "keep the edge's list of nodes"},
    {"settings", ADMINISTRATION, run_settings, NULL, "", "print all settings as a Markdown table"},
    {"help", ADMINISTRATION | OWN_WORDS, NULL, run_help, "[settings | COMMAND]",
     "print this, all settings with their meaning, or a command's options"},
    {"version", ADMINISTRATION, NULL, run_version, "", "print the version"},
    {"file-key", INNER, run_file_key, NULL, "",
     "print the lines for nginx with the key of files' URLs (FILE_KEY_CONF)"},
    {"fetch", INNER | OWN_WORDS, NULL, fetch_process_main, "", "the server's own, for import_url"},
    {SITE_WATCH_COMMAND, INNER | OWN_WORDS, NULL, site_watch_main, "",
     "the server's own, for the certificate"},
    {INDEX_PROXY_COMMAND, INNER | OWN_WORDS, NULL, index_proxy_main, "",
     "the server's own, for install_package"},
    {.name = NULL},
};

/* One whose name is no option is the operand. */
static const struct option options[] = {
    {"stdio", "--tools", "NAMES", &tools, NULL, "the tools to offer, instead of TOOLS"},
    {"status doctor", "--json", NULL, NULL, &as_json, "print JSON"},
    {"status", "--watch", NULL, NULL, &watch, "print it again every two seconds"},
    {"status", "--here", NULL, NULL, &here,
     "fail when it runs in another container; the engine does not count"},
    {"logs", "--lines", "N", &lines, NULL, "how many lines (100)"},
    {"logs", "--follow", NULL, NULL, &follow, "go on with the lines that come"},
    {"check settings", "--values", NULL, NULL, &as_values,
     "print the settings as NAME=VALUE, without secrets"},
    {"doctor prove", "--quiet", NULL, NULL, &quiet, "print only what is wrong"},
    {"doctor", "--nginx", "FOLDER", &nginx_folder, NULL, "where nginx's files of the server are"},
    {"reload", "--wait", "TIME", &wait_time, NULL, "how long it may take (60s)"},
    {"stop", "--wait", "TIME", &wait_time, NULL,
     "end the running programs after that time (SANDBOX_TIMEOUT_MAX)"},
    {"drain", "--wait", "TIME", &wait_time, NULL,
     "end the running programs after that time (SANDBOX_TIMEOUT_MAX)"},
    {"settings", "--get", "NAME", &wanted, NULL, "print what the file says of it"},
    {"settings", "--man", NULL, NULL, &as_man, "print them as roff"},
    {"backup restore", "FILE", NULL, &chosen.file, NULL,
     "its name ends in .tar, .tar.gz or .tar.zst; -: standard output or input"},
    {"backup restore purge", "--tenant", "T", &chosen.tenant, NULL, "of that tenant alone"},
    {"restore", "--replace", NULL, NULL, &chosen.replace,
     "replace files of conversations that are there"},
    {"restore", "--skip-existing", NULL, NULL, &chosen.skip_existing,
     "leave conversations that are there as they are"},
    {"restore purge", "--conversation", "C", &chosen.conversation, NULL, "that conversation alone"},
    {"purge", "--older-than", "TIME", &chosen.older_than, NULL,
     "those that were not used for that time"},
    {"purge", "--dry-run", NULL, NULL, &chosen.dry_run, "say what would be removed"},
    {"purge", "--yes", NULL, NULL, &chosen.yes, "do not ask"},
    {.name = NULL},
};

/* of: a command; NULL: all. */
static int print_help(const struct command *of)
{
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);

    command_help(commands, options, of, &text);
    fputs(buf_str(&text), stdout);
    return 0;
}

static int print_settings_help(void)
{
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);

    buf_add_str(&text, "Settings (lines KEY=VALUE in FILE; the environment overrides):\n");
    conf_print_help(settings_table, settings_groups, &text);
    fputs(buf_str(&text), stdout);
    return 0;
}

static int run_help(void)
{
    if (*words && strcmp(*words, "settings") == 0)
        return print_settings_help();
    const struct command *of = *words ? command_find(commands, *words) : NULL;
    return *words && !of ? command_refuse(commands, *words) : print_help(of);
}

static int print_usage(const char *problem)
{
    fprintf(stderr, "sandcgi: %s; see sandcgi --help\n", problem);
    return 2;
}

/* The options of the command, and --config, also before it. Returns the exit status; -1: go on. */
static int read_words(char **argv, const struct command **command, const char **config_path)
{
    for (char **at = argv + 1; *at; at++) {
        const struct option *option = *command ? option_find(options, *command, *at) : NULL;
        if (!*command && (*command = command_find(commands, strcmp(*at, "-h") ? *at : "help"))) {
            words = at + 1;
            if (command_asks_help(*command, words))
                return print_help(*command);
            if ((*command)->kind & (OWN_WORDS | OWN_HELP))
                return -1;
        } else if (strcmp(*at, "--config") == 0) {
            if (!at[1])
                return print_usage("--config needs a value");
            *config_path = *++at;
        } else if (option && option->flag) {
            *option->flag = true;
        } else if (option && *option->name != '-' && !*option->text) {
            *option->text = *at;
        } else if (option && *option->name == '-' && at[1]) {
            *option->text = *++at;
        } else {
            return *command ? option_refuse(*command, *at, option) : command_refuse(commands, *at);
        }
    }
    return -1;
}

/* Of a command without --config; to_free: what is to be freed behind it. */
static const char *usual_settings(const struct command *command, char **to_free)
{
    if (!command || command->kind & NEEDS_FILE)
        return getenv("SANDCGI_CONFIG");
    const char *path = settings_default_file();
    if (!path && !getenv("SANDBOX_ROOT"))
        *to_free = desktop_settings_find();
    return path ? path : *to_free;
}

int main(int argc, char **argv)
{
    AUTO_FREE char *own = NULL;
    const char *config_path = NULL;
    const struct command *command = NULL;

    /* In every process: a write to a pipe or socket whose reader has gone fails with EPIPE, also
     * one to the log. Programs that we execute are this one, which begins here again. */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    json_set_alloc_funcs(mem_alloc_raw, free); /* else objects would lack members */
    /* Started by the broker only; not a command. */
    if (argc == 2 && strcmp(argv[1], UNPACK_READER_COMMAND) == 0)
        return unpack_reader_main();
    if (argc == 2 && strcmp(argv[1], BACKUP_READER_COMMAND) == 0)
        return backup_reader_main();
    fdio_fill_standard();
    remedy_find_way(way_find);
    const int status = read_words(argv, &command, &config_path);
    if (status >= 0)
        return status;
    if (!config_path)
        config_path = usual_settings(command, &own);
    if (!command && getenv("GATEWAY_INTERFACE") && getenv("REQUEST_METHOD"))
        return run_cgi(config_path);
    if (!command && sock_is_listening(STDIN_FILENO)) /* spawn-fcgi */
        return serve_run(config_path);
    if (!command)
        return print_usage("a command is missing");
    return command->run ? command->run(config_path) : command->run_plain();
}
