#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/sock.h"
#include "common/fetch/fetch.h"
#include "common/fetch/site.h"
#include "common/index/proxy.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/archive/backup.h"
#include "common/sandbox/links/file_link.h"
#include "common/tools/tools.h"
#include "fcgi/commands.h"
#include "fcgi/doctor/check.h"
#include "fcgi/hub/events.h"
#include "fcgi/process/resources.h"
#include "fcgi/stdio/desktop.h"

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

    if (settings_load(&settings, config_path, &e) < 0 || choose_tools(&settings, &e) < 0)
        return print_error(&e);
    log_setup((enum log_level)settings.log_level, http ? "cgi" : "stdio");
    log_set_format((enum log_format)settings.log_format);
    settings.limits_check = LIMITS_TRUST; /* not at each start of a client */
    if (http)
        settings.pool.n = 0; /* the process ends before a warm container could be used */
    if (private_broker_ensure(&settings, &e) == 0 &&
        app_init(&app, &settings, http, NULL, &e) == 0) {
        if (http) {
            /* Sessions outlive a CGI process. Without write access there are none. */
            AUTO_FD int sessions_fd = sessions_dir_open(&settings, &self, &none);
            if (sessions_fd < 0)
                log_debug("no sessions: %s", none.text);
            app_set_sessions(&app, sessions_fd);
            cgi_serve(&app);
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
        buf_addf(&text, "%s=", row->name);
        conf_format(row, &settings, &text);
        buf_add_char(&text, '\n');
    }
    fputs(buf_str(&text), stdout);
    settings_clear(&settings);
    return 0;
}

static int run_check(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    struct findings found = {0};
    if (print_values(config_path) > 0)
        return 1;
    if (settings_load(&settings, config_path, &e) < 0)
        return print_error(&e);
    for (const char *line = settings.notes; *line; line += strcspn(line, "\n") + 1)
        fprintf(stderr, "sandcgi: note: %.*s\n", (int)strcspn(line, "\n"), line);
    check_settings(&settings, config_path, &found);
    for (size_t i = 0; i < found.n; i++)
        fprintf(stderr, "sandcgi: %s%s%s%s\n", found.items[i].state == FINDING_NOTE ? "note: " : "",
                found.items[i].text, *found.items[i].mend ? ": " : "", found.items[i].mend);
    bool wrong = findings_count(&found, FINDING_WRONG) > 0;
    findings_clear(&found);
    settings_clear(&settings);
    return wrong;
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
    int result = here && guard_find(&settings, &e) < 0
                     ? print_error(&e)
                     : status_show(&settings, config_path, as_json, watch);
    settings_clear(&settings);
    return result;
}

static const char *wait_time; /* --wait */

static int run_drain(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    uint64_t wait_ms;
    if (settings_load(&settings, config_path, &e) < 0)
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

static bool as_man;    /* --man */
static bool as_values; /* --values */

static int run_settings(const char *config_path)
{
    if (as_values)
        return print_values(config_path);
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);
    if (as_man)
        conf_print_man(settings_table, &text);
    else
        conf_print_markdown(settings_table, &text);
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

static int run_backup(void)
{
    return backup_run(words);
}

static int run_restore(void)
{
    return restore_run(words);
}

static int run_purge(void)
{
    return purge_run(words);
}

static int run_help(void);
static int run_help_settings(void);

static int run_version(void)
{
    puts("sandcgi " PACKAGE_VERSION);
    return 0;
}

static const struct command {
    const char *name;
    int (*run)(const char *config_path); /* NULL: run_plain */
    const char *help;
    int (*run_plain)(void); /* without settings */
} commands[] = {
    {"serve", serve_run, "run guard, master, broker, hub and FastCGI workers, behind a web server",
     NULL},
    {"stdio", run_stdio,
     "serve one MCP client on standard input and output (--tools NAMES: see TOOLS)", NULL},
    {"cgi", run_cgi, "serve one request as a CGI program (also if GATEWAY_INTERFACE is set)", NULL},
    {"check", run_check, "check the settings and what they name here; print them without secrets",
     NULL},
    {"file-key", run_file_key,
     "print the lines for nginx with the key of files' URLs (FILE_KEY_CONF)", NULL},
    {"status", run_status,
     "print the state of the running server (--watch; --json; --here: fail if another container's)",
     NULL},
    {"drain", run_drain,
     "stop the server when no program runs; until then /readyz answers 503 (--wait TIME)", NULL},
    {"doctor", run_doctor,
     "look for what is wrong, and say what mends it (--json; --quiet: nothing else; --nginx "
     "FOLDER)",
     NULL},
    {"setup", NULL, "put the server into an nginx that is there already (setup nginx --help)",
     run_setup},
    {"token", NULL, "make, list and revoke tokens (token --help)", run_token},
    {"oauth", NULL, "set the passphrase that allows clients (oauth --help; SANDCGI_OAUTH=builtin)",
     run_oauth},
    {"nodes", NULL, "keep the edge's list of nodes (nodes --help; nginx/cluster.md)", run_nodes},
    {"backup", NULL, "write conversations to FILE.tar[.gz|.zst], or to - (--tenant T)", run_backup},
    {"restore", NULL,
     "restore conversations from a backup's file, or from - (--tenant T, --replace)", run_restore},
    {"purge", NULL,
     "remove conversations: --tenant T [--conversation C], --older-than TIME (--dry-run, --yes)",
     run_purge},
    {"settings", run_settings,
     "print all settings as a Markdown table (--man: as roff; --values: NAME=VALUE as they are)",
     NULL},
    {"fetch", NULL, "used by the server itself, for import_url", fetch_process_main},
    {SITE_WATCH_COMMAND, NULL, "used by the server itself, for the certificate", site_watch_main},
    {INDEX_PROXY_COMMAND, NULL, "used by the server itself, for install_package", index_proxy_main},
    {"help", NULL, "print this (help settings: all settings with their meaning)", run_help},
    {"help-settings", NULL, "print all settings with their meaning", run_help_settings},
    {"version", NULL, "print the version", run_version},
};

static int run_help(void)
{
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);
    buf_add_str(&text, "Usage: sandcgi COMMAND [--config FILE]\n\n"
                       "FILE is by default $SANDCGI_CONFIG; or " SETTINGS_FILE
                       ", if it is there, but not\n"
                       "for serve, stdio and cgi.\n\nCommands:\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        buf_addf(&text, "  %-13s %s\n", commands[i].name, commands[i].help);
    buf_add_str(&text,
                "\nSettings are lines KEY=VALUE in FILE, which the environment overrides: see "
                "sandcgi --help-settings, and sandcgi.conf(5).\n");
    fputs(buf_str(&text), stdout);
    return 0;
}

static int run_help_settings(void)
{
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);

    buf_add_str(&text, "Settings (lines KEY=VALUE in FILE; the environment overrides):\n");
    conf_print_help(settings_table, &text);
    fputs(buf_str(&text), stdout);
    return 0;
}

static const struct command *find_command(const char *name)
{
    name += strncmp(name, "--", 2) == 0 ? 2 : 0; /* --help, --version */
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

/* All that follow it. */
static bool takes_words(const struct command *c)
{
    return c->run_plain == run_setup || c->run_plain == run_token || c->run_plain == run_oauth ||
           c->run_plain == run_nodes || c->run_plain == run_backup || c->run_plain == run_restore ||
           c->run_plain == run_purge;
}

/* Its settings are named, or those of the program that starts it. */
static bool is_server(const struct command *c)
{
    return c->run == serve_run || c->run == run_stdio || c->run == run_cgi;
}

static int print_usage(const char *problem)
{
    fprintf(stderr, "sandcgi: %s; see sandcgi --help\n", problem);
    return 2;
}

int main(int argc, char **argv)
{
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
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            config_path = argv[++i];
        else if (command && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0))
            return run_help();
        else if (strcmp(argv[i], "settings") == 0 && command && command->run_plain == run_help)
            return run_help_settings();
        else if (strcmp(argv[i], "--json") == 0 && command &&
                 (command->run == run_status || command->run == run_doctor))
            as_json = true;
        else if (strcmp(argv[i], "--watch") == 0 && command && command->run == run_status)
            watch = true;
        else if (strcmp(argv[i], "--here") == 0 && command && command->run == run_status)
            here = true;
        else if (strcmp(argv[i], "--wait") == 0 && i + 1 < argc && command &&
                 command->run == run_drain)
            wait_time = argv[++i];
        else if (strcmp(argv[i], "--quiet") == 0 && command && command->run == run_doctor)
            quiet = true;
        else if (strcmp(argv[i], "--nginx") == 0 && i + 1 < argc && command &&
                 command->run == run_doctor)
            nginx_folder = argv[++i];
        else if (strcmp(argv[i], "--man") == 0 && command && command->run == run_settings)
            as_man = true;
        else if (strcmp(argv[i], "--values") == 0 && command && command->run == run_settings)
            as_values = true;
        else if (strcmp(argv[i], "--tools") == 0 && i + 1 < argc && command &&
                 command->run == run_stdio)
            tools = argv[++i];
        else if (!command && (command = find_command(argv[i]))) {
            words = argv + i + 1;
            if (takes_words(command))
                break;
        } else
            return print_usage("unknown command or option");
    }
    if (!config_path)
        config_path = !command || is_server(command) ? getenv("SANDCGI_CONFIG")
                                                     : settings_default_file();
    if (!command && getenv("GATEWAY_INTERFACE") && getenv("REQUEST_METHOD"))
        return run_cgi(config_path);
    if (!command && sock_is_listening(STDIN_FILENO)) /* spawn-fcgi */
        return serve_run(config_path);
    if (!command)
        return print_usage("a command is missing");
    return command->run ? command->run(config_path) : command->run_plain();
}
