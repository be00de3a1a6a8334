#include "config.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/fetch/fetch.h"
#include "common/index/proxy.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/links/file_link.h"
#include "common/tools/tools.h"
#include "fcgi/commands.h"
#include "fcgi/hub/events.h"
#include "fcgi/process/resources.h"

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

static bool guarded; /* --guard */

static int run_serve(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings *settings = mem_alloc(sizeof *settings);
    if (settings_load(settings, config_path, &e) == 0)
        return master_run(settings, config_path, guarded);
    free(settings);
    return print_error(&e);
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
    if (http)
        settings.pool.n = 0; /* the process ends before a warm container could be used */
    if (private_broker_ensure(&settings, &e) == 0 && app_init(&app, &settings, http, &e) == 0) {
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

static int run_stdio(const char *config_path)
{
    return run_single(config_path, false);
}

static int run_cgi(const char *config_path)
{
    return run_single(config_path, true);
}

static int run_check(const char *config_path)
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

/* The line that nginx includes (FILE_KEY_CONF). */
static int run_file_key(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    struct file_key key;
    if (settings_load(&settings, config_path, &e) < 0)
        return print_error(&e);
    int rc = file_key_derive(settings.file_secret, &key, &e);
    settings_clear(&settings);
    if (rc < 0)
        return print_error(&e);
    printf("set $sandcgi_file_key \"%s\";\n", key.text);
    return 0;
}

static bool as_json; /* --json */

static int run_status(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;
    if (settings_load(&settings, config_path, &e) < 0)
        return print_error(&e);
    int result = status_show(&settings, as_json);
    settings_clear(&settings);
    return result;
}

static bool as_man; /* --man */

static int run_settings(void)
{
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);
    if (as_man)
        conf_print_man(settings_table, &text);
    else
        conf_print_markdown(settings_table, &text);
    fputs(buf_str(&text), stdout);
    return 0;
}

static int run_help(void);

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
    {"serve", run_serve,
     "run master, broker, hub and FastCGI workers, behind a web server (--guard: with a parent "
     "that "
     "restarts a killed master)",
     NULL},
    {"stdio", run_stdio,
     "serve one MCP client on standard input and output (--tools NAMES: see TOOLS)", NULL},
    {"cgi", run_cgi, "serve one request as a CGI program (also if GATEWAY_INTERFACE is set)", NULL},
    {"check", run_check, "check the settings and print them without secrets", NULL},
    {"file-key", run_file_key,
     "print the line for nginx with the key of files' URLs (FILE_KEY_CONF)", NULL},
    {"status", run_status, "print the state of the running server (--json: for programs)", NULL},
    {"settings", NULL, "print all settings as a Markdown table (--man: as roff)", run_settings},
    {"fetch", NULL, "used by the server itself, for import_url", fetch_process_main},
    {INDEX_PROXY_COMMAND, NULL, "used by the server itself, for install_package", index_proxy_main},
    {"help", NULL, "print this", run_help},
    {"version", NULL, "print the version", run_version},
};

static int run_help(void)
{
    AUTO_BUF struct buf text = BUF_INIT(PRINT_MAX);
    buf_add_str(&text,
                "Usage: sandcgi COMMAND [--config FILE (default: $SANDCGI_CONFIG)]\n\nCommands:\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        buf_addf(&text, "  %-10s %s\n", commands[i].name, commands[i].help);
    buf_add_str(&text, "\nSettings (lines KEY=VALUE in FILE; the environment overrides):\n");
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
    fdio_fill_standard();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            config_path = argv[++i];
        else if (strcmp(argv[i], "--guard") == 0 && command && command->run == run_serve)
            guarded = true;
        else if (strcmp(argv[i], "--json") == 0 && command && command->run == run_status)
            as_json = true;
        else if (strcmp(argv[i], "--man") == 0 && command && command->run_plain == run_settings)
            as_man = true;
        else if (strcmp(argv[i], "--tools") == 0 && i + 1 < argc && command &&
                 command->run == run_stdio)
            tools = argv[++i];
        else if (!command && (command = find_command(argv[i])))
            continue;
        else
            return print_usage("unknown command or option");
    }
    if (!config_path)
        config_path = getenv("SANDCGI_CONFIG");
    if (!command && getenv("GATEWAY_INTERFACE") && getenv("REQUEST_METHOD"))
        return run_cgi(config_path);
    if (!command && sock_is_listening(STDIN_FILENO)) /* spawn-fcgi */
        return run_serve(config_path);
    if (!command)
        return print_usage("a command is missing");
    return command->run ? command->run(config_path) : command->run_plain();
}
