#include "config.h"

#include "fcgi/doctor/web.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/remedy.h"
#include "common/mcp/call.h"
#include "common/rpc/json.h"
#include "common/sandbox/links/file_link.h"
#include "common/sandbox/sandbox.h"
#include "fcgi/commands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER     "/etc/nginx/sandcgi" /* of "sandcgi setup nginx" */
#define VALUES_MAX 65536
#define KEY_MAX    4096
#define TEXT_MAX   4096 /* bytes of the script's answer */

/* ---- what the scripts of nginx/ say ---- */

/* Runs the program with these arguments; its output is added to out. Its exit status, or -1. */
static int ask_program(char *const *arguments, struct buf *out)
{
    int pipe_fds[2], status;
    struct err e = ERR_INIT;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -1;
    AUTO_FD int from = pipe_fds[0];
    AUTO_FD int to = pipe_fds[1];
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(to, STDOUT_FILENO) >= 0 && dup2(to, STDERR_FILENO) >= 0)
            execvp(arguments[0], arguments);
        _exit(127);
    }
    if (pid < 0)
        return -1;
    auto_close_fd(&to);
    int rc = fdio_read_to_end(from, out, &e);
    auto_close_fd(&from);
    if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || rc < 0)
        return -1;
    return WEXITSTATUS(status);
}

/* The same of nginx/NAME. */
static int ask_script(const char *name, const char *first, const char *second, struct buf *out)
{
    AUTO_FREE char *script = script_find(name);
    AUTO_FREE char *one = mem_strdup(first), *two = mem_strdup(second);

    return ask_program((char *[]){script, one, two, NULL}, out);
}

static void replace_newlines(char *text)
{
    for (char *c = text; (c = strchr(c, '\n'));)
        *c = c[1] ? ' ' : '\0';
}

static void look_at_files(const char *folder, struct findings *out)
{
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    int status = ask_script("nginx/render.sh", "--check", folder, &said);
    AUTO_FREE char *names = buf_take(&said);

    replace_newlines(names);
    if (status == 0)
        findings_add(out, FINDING_OK, "nginx", "", "the files in %s are those of this version",
                     folder);
    else if (status == 1 && !strstr(names, "render.sh"))
        findings_add(out, FINDING_WRONG, "nginx", remedy(REMEDY_SITE),
                     "this version makes other files than those in %s: %s", folder, names);
    else
        findings_add(out, FINDING_NOTE, "nginx", remedy(REMEDY_SITE),
                     "the files in %s cannot be compared: %s", folder, names);
}

/* Its version and its modules. There may be none on this machine's PATH. */
static void look_at_program(struct findings *out)
{
    static const char we[] = "sandcgi setup: ";
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    int status = ask_script("nginx/setup-nginx.sh", "nginx", "--check", &said);
    AUTO_FREE char *problem = buf_take(&said);
    const char *text = strstr(problem, we);

    replace_newlines(problem);
    if (status == 1 && text && !strstr(text, "is missing: install it"))
        findings_add(out, FINDING_WRONG, "nginx", "", "%s", text + strlen(we));
}

/* As nginx sees its files itself. It may read them all only as root, or as who owns the folder. */
static void look_at_syntax(const char *folder, struct findings *out)
{
    static const char emerg[] = "[emerg] ";
    AUTO_FREE char *own = mem_printf("%s/nginx.conf", folder); /* of an nginx of start.sh's */
    AUTO_BUF struct buf said = BUF_INIT(TEXT_MAX);
    char program[] = "nginx", test[] = "-t", option[] = "-c";
    char *arguments[] = {program, test, access(own, F_OK) == 0 ? option : NULL, own, NULL};
    struct stat st;

    if (geteuid() != 0 && (stat(folder, &st) < 0 || st.st_uid != geteuid()))
        return;
    const int status = ask_program(arguments, &said);
    AUTO_FREE char *text = buf_take(&said);
    char *why = strstr(text, emerg);
    if (status == 0)
        findings_add(out, FINDING_OK, "nginx", "", "it accepts its configuration");
    else if (why) { /* else there is none on the PATH */
        why += strlen(emerg);
        why += strspn(why, "0123456789#: "); /* its process */
        why[strcspn(why, "\n")] = '\0';
        findings_add(out, FINDING_WRONG, "nginx", remedy(REMEDY_SITE),
                     "it refuses its configuration, and would not start again: %s", why);
    }
}

/* ---- the values ---- */

/* Of the line NAME=VALUE; heap, fallback without one. */
static char *value_of(const char *values, const char *name, const char *fallback)
{
    const size_t len = strlen(name);

    for (const char *line = values; line && *line;) {
        const char *end = strchrnul(line, '\n');
        if (strncmp(line, name, len) == 0 && line[len] == '=')
            return mem_strndup(line + len + 1, (size_t)(end - line) - len - 1);
        line = *end ? end + 1 : NULL;
    }
    return mem_strdup(fallback);
}

static void look_at_socket(const char *values, const char *name, const char *setting,
                           const char *socket, struct findings *out)
{
    AUTO_FREE char *nginx = value_of(values, name, "");
    AUTO_FREE char *ours = mem_printf("%s%s", *socket == '/' ? "unix:" : "", socket);

    if (strcmp(nginx, ours) != 0)
        findings_add(out, FINDING_WRONG, "nginx", remedy(REMEDY_SITE),
                     "nginx passes calls to %s, but %s is %s", *nginx ? nginx : "no socket",
                     setting, *ours ? ours : "empty");
}

static void look_at_size(const char *values, const char *name, const char *initial,
                         const char *setting, uint64_t ours, struct findings *out)
{
    AUTO_FREE char *nginx = value_of(values, name, initial);
    uint64_t bytes;

    if (parse_bytes(nginx, &bytes) == 0 && bytes < ours)
        findings_add(out, FINDING_WRONG, "nginx", remedy(REMEDY_SITE),
                     "nginx takes bodies of up to %s (%s), less than %s", nginx, name, setting);
}

static void look_at_values(const struct settings *s, const char *values, struct findings *out)
{
    AUTO_FREE char *is_signed = value_of(values, "SIGNED_URLS", "");
    AUTO_FREE char *root = value_of(values, "SANDBOX_ROOT", s->sandbox_root);

    look_at_socket(values, "BACKEND", "SANDCGI_LISTEN", s->listen, out);
    look_at_socket(values, "HUB", "SANDCGI_HUB", s->hub, out);
    look_at_size(values, "BODY_MAX", "16m", "SANDCGI_MAX_BODY", s->max_body, out);
    look_at_size(values, "UPLOAD_MAX", "2g", "SANDBOX_UPLOAD_MAX", s->limits.upload_max, out);
    if ((*is_signed != '\0') != (s->url_ttl_ms > 0))
        findings_add(out, FINDING_WRONG, "nginx", remedy(REMEDY_SITE),
                     "SIGNED_URLS of nginx is %s, but SANDBOX_URL_TTL is %s0: files are not found",
                     *is_signed ? "1" : "empty", s->url_ttl_ms > 0 ? "above " : "");
    if (strcmp(root, s->sandbox_root) != 0)
        findings_add(out, FINDING_WRONG, "nginx", remedy(REMEDY_SITE),
                     "nginx serves files of %s, but SANDBOX_ROOT is %s", root, s->sandbox_root);
}

/* Files' URLs are made by one key and checked by the other. */
static void look_at_key(const struct settings *s, const char *values, struct findings *out)
{
    AUTO_FREE char *path = value_of(values, "FILE_KEY_CONF", "");
    AUTO_BUF struct buf text = BUF_INIT(KEY_MAX);
    struct err e = ERR_INIT;
    struct file_key key;

    if (!*path || fdio_read_file(path, &text, &e) < 0 ||
        file_key_derive(s->file_secret, &key, &e) < 0)
        return; /* for root only */
    const bool old_links = clock_unix_s() < s->old_secret_until;
    if (!strstr(buf_str(&text), key.text) ||
        (old_links && !strstr(buf_str(&text), "$sandcgi_old_links")))
        findings_add(out, FINDING_WRONG, "nginx", remedy(REMEDY_SITE),
                     "nginx checks files' URLs with the key of another FILE_SECRET");
    explicit_bzero(&key, sizeof key);
    explicit_bzero(text.data, text.len);
}

void web_look_at_nginx(const struct settings *s, const char *folder, struct findings *out)
{
    AUTO_BUF struct buf values = BUF_INIT(VALUES_MAX);
    struct err e = ERR_INIT;

    if (s->auth != SETTINGS_AUTH_NGINX || remedy_way() == WAY_COMPOSE)
        return;
    if (!folder && access(FOLDER, F_OK) < 0) {
        if (remedy_way() != WAY_START_SH)
            look_at_syntax(FOLDER, out);
        return;
    }
    folder = folder ? folder : FOLDER;
    AUTO_FREE char *path = mem_printf("%s/values", folder);
    if (fdio_read_file(path, &values, &e) < 0) {
        findings_add(out, FINDING_NOTE, "nginx", remedy(REMEDY_SITE),
                     "nginx's files were not compared: %s", e.text);
        look_at_syntax(folder, out);
        return;
    }
    look_at_program(out);
    look_at_files(folder, out);
    look_at_values(s, buf_str(&values), out);
    look_at_key(s, buf_str(&values), out);
    look_at_syntax(folder, out);
}

/* ---- the account ---- */

/* "\nGid:\t33\t33…" of a process's status. */
static bool has_group(const char *status, gid_t gid)
{
    AUTO_FREE char *line = mem_printf("\nGid:\t%ju\t", (uintmax_t)gid);

    return strstr(status, line) != NULL;
}

/* Is it a web server, or of this server? */
static bool is_expected(const char *status)
{
    static const char *const names[] = {"nginx", "apache2", "httpd", "lighttpd", "sandcgi"};
    const char *name = status + strlen("Name:\t");

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0 && name[strlen(names[i])] == '\n')
            return true;
    return false;
}

void web_look_at_account(const struct settings *s, struct findings *out)
{
    DIR *processes = s->web_gid ? opendir("/proc") : NULL;

    for (struct dirent *one; processes && (one = readdir(processes));) {
        AUTO_BUF struct buf status = BUF_INIT(TEXT_MAX);
        AUTO_FREE char *path = mem_printf("/proc/%s/status", one->d_name);
        struct err e = ERR_INIT;
        if (*one->d_name < '1' || *one->d_name > '9' || fdio_read_file(path, &status, &e) < 0 ||
            !has_group(buf_str(&status), s->web_gid) || is_expected(buf_str(&status)))
            continue;
        const char *name = buf_str(&status) + strlen("Name:\t");
        findings_add(out, FINDING_NOTE, "account",
                     "give that program an account and a group of its own",
                     "process %s (%.*s) has the web server's group: it can call as any tenant, "
                     "and read the files of all",
                     one->d_name, (int)strcspn(name, "\n"), name);
        break;
    }
    if (processes)
        closedir(processes);
}

/* ---- the name ---- */

/* "host" of "https://host:port/path", and of "https://[::1]"; heap. */
static char *host_of(const char *url)
{
    const char *at = strstr(url, "://");

    at = at ? at + 3 : url;
    return *at == '[' ? mem_strndup(at + 1, strcspn(at + 1, "]"))
                      : mem_strndup(at, strcspn(at, ":/"));
}

bool web_look_at_name(const struct settings *s, struct findings *out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    AUTO_FREE char *host = host_of(s->public_base_url);
    struct addrinfo *found = NULL;
    char address[NI_MAXHOST] = "";

    /* A container may not know the names that clients know. */
    if (strcmp(s->public_base_url, SANDBOX_LOCAL_URLS) == 0 || remedy_way() == WAY_COMPOSE)
        return true;
    int rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc != 0) {
        findings_add(out, FINDING_WRONG, "dns",
                     "add the name to DNS or /etc/hosts, or correct PUBLIC_BASE_URL",
                     "the host %s of PUBLIC_BASE_URL has no address: %s", host, gai_strerror(rc));
        return false;
    }
    (void)getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0,
                      NI_NUMERICHOST);
    findings_add(out, FINDING_OK, "dns", "", "%s is %s", host, address);
    freeaddrinfo(found);
    return true;
}

/* ---- a stream ---- */

#define FRONT                                                                                      \
    "proxy_buffering off; in the web server before nginx, or fastcgi_pass_header "                 \
    "X-Accel-Buffering; in nginx's location"

/* A listening, whose first event the hub sends at once. */
static json_t *listen_new(void)
{
    return json_pack("{s:s, s:i, s:s, s:{s:{s:b, s:b, s:b}, s:{s:s, s:{}}}}", "jsonrpc", "2.0",
                     "id", 1, "method", "subscriptions/listen", "params", "notifications",
                     "toolsListChanged", 1, "promptsListChanged", 1, "resourcesListChanged", 1,
                     "_meta", MCP_META_VERSION, mcp_revision_name(MCP_2026_07_28),
                     MCP_META_CAPABILITIES);
}

static int ask_for_stream(const struct settings *s, const char *url, bool trusted,
                          struct fetch_stream *out, struct err *e)
{
    AUTO_FREE char *token = mem_printf("Authorization: Bearer %s", s->api_token);
    AUTO_FREE char *revision = mem_printf("MCP-Protocol-Version: %s",
                                          mcp_revision_name(MCP_2026_07_28));
    const char *headers[] = {token,
                             revision,
                             "Mcp-Method: subscriptions/listen",
                             "Content-Type: application/json",
                             "Accept: application/json, text/event-stream",
                             NULL};
    AUTO_BUF struct buf body = BUF_INIT(TEXT_MAX);
    json_auto_t *listen = listen_new();

    if (json_write(listen, &body) < 0)
        return err_set(e, ERR_INTERNAL, "no memory for a look at a stream");
    int rc = fetch_stream(url, trusted, headers, buf_str(&body), out, e);
    explicit_bzero(token, strlen(token));
    return rc;
}

static void not_checked(struct findings *out, const char *mend, const char *why)
{
    findings_add(out, FINDING_NOTE, "stream", mend, "not checked: %s", why);
}

void web_look_at_stream(const struct settings *s, const struct fetch_site *site,
                        struct findings *out)
{
    AUTO_FREE char *url = mem_printf("%s/mcp", s->public_base_url);
    const bool trusted = strncmp(url, "https:", 6) == 0 && !*site->wrong;
    struct fetch_stream seen;
    struct err e = ERR_INIT;

    if (!*s->hub)
        not_checked(out, "", "SANDCGI_HUB is empty, so there is no stream that lasts");
    else if (!*s->api_token)
        not_checked(out, "set MCP_API_TOKEN for this command", "it needs a token");
    else if (ask_for_stream(s, url, trusted, &seen, &e) < 0)
        not_checked(out, "", e.text);
    else if (seen.foreign)
        not_checked(out, "",
                    "the token is not sent to another machine without a trusted certificate");
    else if (seen.status == 401)
        not_checked(out, remedy(REMEDY_TOKEN), "the site does not know MCP_API_TOKEN");
    else if (seen.status == 0 || (seen.is_stream && !seen.began))
        findings_add(
            out, FINDING_WRONG, "stream", FRONT,
            "the first event of a stream from %s does not arrive: a web server keeps it back", url);
    else if (seen.is_stream)
        findings_add(out, FINDING_OK, "stream", "", "events from %s arrive at once", url);
    else
        findings_add(out, FINDING_NOTE, "stream", "",
                     "not checked: %s answers %ld without a stream", url, seen.status);
}

/* ---- ports ---- */

static int try_to_listen(const struct addrinfo *at)
{
    const int yes = 1;
    AUTO_FD int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, 1) < 0 ? -1 : 0;
}

static void look_at_port(const char *setting, const char *address, struct findings *out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    const char *colon = strrchr(address, ':');
    struct addrinfo *at = NULL;

    if (!colon || strchr(address, '/'))
        return; /* a path, or none */
    AUTO_FREE char *host = *address == '[' ? mem_strndup(address + 1, strcspn(address + 1, "]"))
                                           : mem_strndup(address, (size_t)(colon - address));
    if (getaddrinfo(*host ? host : NULL, colon + 1, &hints, &at) != 0)
        return;
    AUTO_FREE char *mend = mem_printf("ss -ltnp sport = :%s shows it; stop it, or set another port",
                                      colon + 1);
    if (try_to_listen(at) < 0)
        findings_add(out, FINDING_WRONG, "ports", mend, "%s=%s: %s", setting, address,
                     errno == EADDRINUSE ? "another program has the port" : strerror(errno));
    else
        findings_add(out, FINDING_OK, "ports", "", "%s=%s is free", setting, address);
    freeaddrinfo(at);
}

void web_look_at_ports(const struct settings *s, struct findings *out)
{
    look_at_port("SANDCGI_LISTEN", s->listen, out);
    look_at_port("SANDCGI_HUB", s->hub, out);
    look_at_port("SANDCGI_METRICS", s->metrics, out);
}
