#include "config.h"

#include "fcgi/settings.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/tools/toolset.h"

#include <limits.h>
#include <string.h>

#define FIELD(f)   offsetof(struct settings, f)
#define KIB        1024ull
#define MIB        (1024ull * KIB)
#define GIB        (1024ull * MIB)
#define SECRET_MIN 32
#define HOUR_MS    3600000ull

/* clang-format off */
const struct conf_row settings_table[] = {
    {"SANDBOX_ROOT", CONF_STRING, FIELD(sandbox_root), "", 0, 0, NULL, CONF_REQUIRED,
     "Directory of the conversations' files."},
    {"SANDBOX_HOST_PATH", CONF_STRING, FIELD(sandbox_host_path), "", 0, 0, NULL, 0,
     "The same directory as the container engine's host sees it, when that differs (server in a container)."},
    {"FILE_SECRET", CONF_STRING, FIELD(file_secret), "", 0, 0, NULL, CONF_REQUIRED | CONF_SECRET,
     "Key of the unguessable directory names, at least 32 characters. A new one makes old files unreachable."},
    {"PUBLIC_BASE_URL", CONF_STRING, FIELD(public_base_url), "", 0, 0, NULL, CONF_REQUIRED,
     "What stands in front of /files/... in download links, e.g. https://sandbox.example.org."},
    {"MCP_API_TOKEN", CONF_STRING, FIELD(api_token), "", 0, 0, NULL, CONF_SECRET,
     "Bearer token of the tenant \"default\" (checked by nginx, or by the workers with SANDCGI_AUTH=token)."},
    {"TOOLS", CONF_CHOICE, FIELD(tools), "sandcgi", 0, 0, TOOLSET_NAMES, 0,
     "Which tools are offered: ours (sandcgi), or those of another server whose clients come here (runner, session, container, interpreter). A web server may choose per place (SANDCGI_TOOLS)."},
    {"SANDCGI_LOCAL_DIRS", CONF_STRING, FIELD(local_dirs), "", 0, 4096, NULL, 0,
     "Directories of this machine, separated by commas, that copy_project and its kin may use besides the client's roots; with stdio only."},
    {"SANDCGI_AUTH", CONF_CHOICE, FIELD(auth), "nginx", 0, 0, "nginx|token", 0,
     "Who checks tokens: our nginx site, or the workers themselves (under another web server)."},
    {"SANDCGI_TOKENS_FILE", CONF_STRING, FIELD(tokens_file), "", 0, 0, NULL, 0,
     "With SANDCGI_AUTH=token: a file of lines \"tenant token\" besides MCP_API_TOKEN."},
    {"SANDCGI_SECRET_FILE", CONF_STRING, FIELD(secret_file), "", 0, 0, NULL, 0,
     "With SANDCGI_AUTH=nginx: the file with the secret that nginx sends along, so that nobody else is believed."},
    {"SANDCGI_ALLOWED_ORIGINS", CONF_STRING, FIELD(allowed_origins), "", 0, 0, NULL, 0,
     "Origins of browser pages that may call /mcp, separated by commas, besides PUBLIC_BASE_URL's own."},
    {"SANDCGI_ALLOWED_HOSTS", CONF_STRING, FIELD(allowed_hosts), "", 0, 0, NULL, 0,
     "Names under which /mcp may be called (Host header), separated by commas, besides PUBLIC_BASE_URL's and this machine's own (localhost); * is any."},
    {"SANDCGI_LISTEN", CONF_STRING, FIELD(listen), "/run/sandcgi/fastcgi.sock", 0, 107, NULL, CONF_REQUIRED,
     "FastCGI socket: a path, or ADDRESS:PORT."},
    {"SANDCGI_LISTEN_MODE", CONF_MODE, FIELD(listen_mode), "0660", 0, 0, NULL, 0,
     "Permissions of the FastCGI socket."},
    {"SANDCGI_LISTEN_GROUP", CONF_STRING, FIELD(listen_group), "", 0, 64, NULL, 0,
     "Group of the FastCGI socket: the web server's."},
    {"SANDCGI_BROKER", CONF_STRING, FIELD(broker), "/run/sandcgi/broker.sock", 0, 107, NULL, CONF_REQUIRED,
     "Socket between the workers and the broker."},
    {"SANDCGI_HUB", CONF_STRING, FIELD(hub), "", 0, 107, NULL, 0,
     "FastCGI socket for streams that wait (GET /mcp, subscriptions/listen), with the same mode and group; empty: no such streams."},
    {"SANDCGI_EVENTS", CONF_STRING, FIELD(events), "", 0, 107, NULL, 0,
     "Datagram socket on which the hub hears what has changed; empty: events.sock beside SANDCGI_BROKER."},
    {"SANDCGI_MAX_STREAMS", CONF_NUMBER, FIELD(max_streams), "2000", 1, 100000, NULL, 0,
     "Streams that may wait at the same time; more are answered 429."},
    {"SANDCGI_SESSION_TTL", CONF_DURATION, FIELD(session_ttl_ms), "24h", 60000, 8760 * HOUR_MS, NULL, 0,
     "How long a session of the older protocol revisions lasts without a request."},
    {"SANDCGI_WORKERS", CONF_NUMBER, FIELD(workers), "80", 1, 1000, NULL, 0,
     "FastCGI worker processes; each serves one request at a time, so as many as may run and "
     "wait together (SANDBOX_MAX_RUNS, SANDBOX_QUEUE)."},
    {"SANDCGI_USER", CONF_STRING, FIELD(user), "", 0, 64, NULL, 0,
     "Account of the workers when started as root."},
    {"SANDCGI_MAX_BODY", CONF_BYTES, FIELD(max_body), "16m", 64 * KIB, GIB, NULL, 0,
     "Largest request body."},
    {"SANDCGI_LOG_LEVEL", CONF_CHOICE, FIELD(log_level), "info", 0, 0, "error|warn|info|debug", 0,
     "How much is logged (never tokens, code, environment values or output)."},
    {"DOCKER_HOST", CONF_STRING, FIELD(docker_host), "", 0, 255, NULL, 0,
     "Container engine: unix:///path or tcp://host:port; empty is unix:///var/run/docker.sock."},
    {"DOCKER_TLS_VERIFY", CONF_BOOL, FIELD(docker_tls_verify), "false", 0, 0, NULL, 0,
     "Speak TLS with the engine and check its certificate."},
    {"DOCKER_CERT_PATH", CONF_STRING, FIELD(docker_cert_path), "", 0, 0, NULL, 0,
     "Directory with ca.pem, cert.pem and key.pem for that."},
    {"SANDBOX_INSTANCE", CONF_STRING, FIELD(instance), "", 0, 64, NULL, 0,
     "Name that marks our containers; empty derives one from SANDBOX_ROOT."},
    {"SANDBOX_IMAGES", CONF_STRING, FIELD(images), "sandcgi-runner-*,runner-*,mcp-sandbox-runner-*", 0, 0, NULL, CONF_REQUIRED,
     "Image repositories that may serve as runners, separated by commas; a trailing * matches any rest."},
    {"SANDBOX_RUNTIME", CONF_STRING, FIELD(runtime), "", 0, 64, NULL, 0,
     "A runtime of the engine's that every container must have (runsc, kata...): each start asks the engine whether it does. Empty: the engine's default, and no question."},
    {"SANDBOX_USER", CONF_STRING, FIELD(sandbox_user), "1000:1000", 0, 32, NULL, CONF_REQUIRED,
     "UID:GID of programs and owner of their files; never 0."},
    {"SANDBOX_CPUS", CONF_MILLI, FIELD(cpu_milli), "0.5", 10, 1000000, NULL, 0,
     "CPUs of one run."},
    {"SANDBOX_MEMORY", CONF_BYTES, FIELD(memory), "256m", 16 * MIB, 1024 * GIB, NULL, 0,
     "Memory of one run, without swap."},
    {"SANDBOX_PIDS", CONF_NUMBER, FIELD(pids), "128", 8, 100000, NULL, 0,
     "Processes and threads of one run."},
    {"SANDBOX_TMP", CONF_BYTES, FIELD(tmp_size), "64m", MIB, 1024 * GIB, NULL, 0,
     "Size of /tmp, held in the run's memory."},
    {"SANDBOX_NOFILE", CONF_NUMBER, FIELD(nofile), "1024", 32, 1048576, NULL, 0,
     "Open files of one process."},
    {"SANDBOX_FSIZE", CONF_BYTES, FIELD(fsize), "1g", MIB, 1024 * GIB, NULL, 0,
     "Largest file a program may write."},
    {"SANDBOX_TIMEOUT", CONF_DURATION, FIELD(timeout_ms), "30s", 100, 24 * HOUR_MS, NULL, 0,
     "Time limit of a run that names none."},
    {"SANDBOX_TIMEOUT_MAX", CONF_DURATION, FIELD(timeout_max_ms), "300s", 100, 24 * HOUR_MS, NULL, 0,
     "Longest time limit a run may name."},
    {"SANDBOX_MAX_RUNS", CONF_NUMBER, FIELD(max_runs), "16", 1, 1000, NULL, 0,
     "Programs running at the same time; more wait in a queue."},
    {"SANDBOX_TENANT_RUNS", CONF_NUMBER, FIELD(tenant_runs), "0", 0, 1000, NULL, 0,
     "Programs of one tenant running at the same time; 0: as many as SANDBOX_MAX_RUNS."},
    {"SANDBOX_CONVERSATION_RUNS", CONF_NUMBER, FIELD(conversation_runs), "4", 1, 1000, NULL, 0,
     "Programs of one conversation running at the same time; 1: one after the other."},
    {"SANDBOX_QUEUE", CONF_NUMBER, FIELD(queue), "64", 0, 10000, NULL, 0,
     "Runs that may wait for their turn, which goes round the tenants; more are answered \"busy\"."},
    {"SANDBOX_BACKGROUND_MAX", CONF_NUMBER, FIELD(background_max), "8", 0, 1000, NULL, 0,
     "Runs of one tenant that go on while nobody waits for their answer."},
    {"SANDBOX_WAIT", CONF_DURATION, FIELD(wait_ms), "50s", 0, 24 * HOUR_MS, NULL, 0,
     "How long run_code waits for the program unless the call says; then it answers \"running\" with a handle. 0: to the end."},
    {"SANDBOX_WAIT_MAX", CONF_DURATION, FIELD(wait_max_ms), "300s", 1000, 24 * HOUR_MS, NULL, 0,
     "Longest such wait a call may name."},
    {"SANDBOX_RESULT_TTL", CONF_DURATION, FIELD(result_ttl_ms), "1h", 60000, 720 * HOUR_MS, NULL, 0,
     "How long the result of a run that outlived its call can be fetched."},
    {"SANDBOX_TTL", CONF_DURATION, FIELD(ttl_ms), "720h", 0, 87600 * HOUR_MS, NULL, 0,
     "How long a conversation's files stay after their last use (a run, a file tool); 0: for ever."},
    {"SANDBOX_TOTAL_MAX", CONF_BYTES, FIELD(total_max), "0", 0, UINT64_MAX, NULL, 0,
     "All conversations' files together; above it those of the conversations that were not used for longest go. 0: no limit."},
    {"SANDBOX_QUOTA", CONF_BYTES, FIELD(quota), "2g", 0, UINT64_MAX, NULL, 0,
     "What one conversation's files may take on the disk, looked at before each run and upload; 0: no limit."},
    {"SANDBOX_FILES", CONF_NUMBER, FIELD(files), "200000", 0, 1000000000, NULL, 0,
     "Files and folders of one conversation, looked at with SANDBOX_QUOTA; 0: no limit."},
    {"SANDBOX_DISK_RESERVE", CONF_BYTES, FIELD(disk_reserve), "256m", 0, UINT64_MAX, NULL, 0,
     "Where SANDBOX_ROOT's file system has less than this free, runs and uploads are refused; 0: never."},
    {"SANDBOX_WARM", CONF_STRING, FIELD(warm), "python=2,typescript=1,bash=1", 0, 1024, NULL, 0,
     "Containers that wait ahead per language, so that a run starts in milliseconds; empty: none."},
    {"SANDBOX_WARM_MEMORY", CONF_STRING, FIELD(warm_memory), "25%", 0, 32, NULL, CONF_REQUIRED,
     "Memory for all that wait: a size, or a share of the machine's. Each counts with what its processes use and 8 MB for what the engine keeps beside it: about 13 MB for a Python that waits, 75 MB with its libraries loaded."},
    {"SANDBOX_WARM_IDLE", CONF_DURATION, FIELD(warm_idle_ms), "10m", 1000, 24 * HOUR_MS, NULL, 0,
     "How long a conversation's next container waits for its next run."},
    {"SANDBOX_PERSISTENT_MAX", CONF_NUMBER, FIELD(persistent_max), "4", 0, 1000, NULL, 0,
     "Sandboxes that stay (create_sandbox, run_code with session), of one tenant at the same time."},
    {"SANDBOX_PERSISTENT_SERVER", CONF_NUMBER, FIELD(persistent_server), "16", 0, 10000, NULL, 0,
     "The same of all tenants; each may use SANDBOX_MEMORY and SANDBOX_CPUS."},
    {"SANDBOX_PERSISTENT_IDLE", CONF_DURATION, FIELD(persistent_idle_ms), "30m", 1000, 720 * HOUR_MS, NULL, 0,
     "A sandbox that nobody has used for so long is closed."},
    {"SANDBOX_PERSISTENT_PAUSE", CONF_DURATION, FIELD(persistent_pause_ms), "60s", 0, 720 * HOUR_MS, NULL, 0,
     "After so long everything in it is frozen until the next call, background processes too; 0: never."},
    {"SANDBOX_PERSISTENT_TOTAL", CONF_DURATION, FIELD(persistent_total_ms), "8h", 1000, 8760 * HOUR_MS, NULL, 0,
     "Whatever goes on in it, it is closed then."},
    {"SANDBOX_PERSISTENT_IMAGES", CONF_STRING, FIELD(persistent_images), "", 0, 0, NULL, 0,
     "Image repositories besides runners that create_sandbox may name, separated by commas; a trailing * matches any rest. Images are not pulled."},
    {"SANDBOX_NETWORK", CONF_CHOICE, FIELD(network), "true", 0, 0, "false|true|ask", 0,
     "May a run have network access when it asks for it? false: never; ask: only when the client's user agrees, each time."},
    {"SANDBOX_INDEXES", CONF_STRING, FIELD(indexes), "python=https://pypi.org/simple+files.pythonhosted.org,typescript=https://registry.npmjs.org", 0, 4096, NULL, 0,
     "Package index per language for install_package, as language=URL, and behind + further hosts that it hands files out from; an installation reaches these hosts and nothing else. https only; empty: no packages."},
    {"SANDBOX_INDEX_PRIVATE", CONF_BOOL, FIELD(index_private), "false", 0, 0, NULL, 0,
     "May the names of these hosts lead to private addresses (a company's own index)? Hosts written as addresses may always."},
    {"SANDBOX_INDEX_CA", CONF_STRING, FIELD(index_ca), "", 0, 0, NULL, 0,
     "File with certificates (PEM) that an index may be trusted by, besides those of the runner images."},
    {"SANDBOX_CODE_MAX", CONF_BYTES, FIELD(code_max), "1m", KIB, 8 * MIB, NULL, 0,
     "Largest program text."},
    {"SANDBOX_STDIN_MAX", CONF_BYTES, FIELD(stdin_max), "1m", 0, 8 * MIB, NULL, 0,
     "Largest standard input."},
    {"SANDBOX_FILE_MAX", CONF_BYTES, FIELD(file_max), "10m", KIB, 256 * MIB, NULL, 0,
     "Largest uploaded file, decoded. SANDCGI_MAX_BODY must leave room for its base64 form."},
    {"SANDBOX_UPLOAD_MAX", CONF_BYTES, FIELD(upload_max), "2g", KIB, 1024 * GIB, NULL, 0,
     "Largest file that create_upload and import_url bring in; nginx's UPLOAD_MAX must agree."},
    {"SANDBOX_UPLOAD_TTL", CONF_DURATION, FIELD(upload_ttl_ms), "15m", 1000, 168 * HOUR_MS, NULL, 0,
     "How long a link of create_upload waits for its upload."},
    {"SANDBOX_URL_TTL", CONF_DURATION, FIELD(url_ttl_ms), "0", 0, 8760 * HOUR_MS, NULL, 0,
     "How long a download link is good for: above 0 links are signed, and our nginx (SIGNED_URLS) serves no others. 0: as long as the file is there."},
    {"SANDBOX_IMPORT", CONF_BOOL, FIELD(import), "true", 0, 0, NULL, 0,
     "May import_url fetch files from public https servers?"},
    {"SANDBOX_ENV_MAX", CONF_BYTES, FIELD(env_max), "64k", 0, MIB, NULL, 0,
     "Environment names and values together."},
    {"SANDBOX_OUTPUT_KEEP", CONF_BYTES, FIELD(output_keep), "128k", KIB, 8 * MIB, NULL, 0,
     "How much of each output stream comes back: the first and the last half of this."},
    {"SANDBOX_OUTPUT_MAX", CONF_BYTES, FIELD(output_max), "256m", 0, UINT64_MAX, NULL, 0,
     "A program that prints more is ended (status output_limit); 0 never."},
    {"SANDBOX_IMAGE_MAX", CONF_BYTES, FIELD(image_max), "1m", 0, 8 * MIB, NULL, 0,
     "Largest picture that comes back inline."},
    {"SANDBOX_IMAGES_MAX", CONF_NUMBER, FIELD(images_max), "4", 0, 20, NULL, 0,
     "How many pictures of one run come back inline."},
    {0},
};
/* clang-format on */

static int check_secret(const char *name, const char *value, struct err *e)
{
    if (strlen(value) < SECRET_MIN)
        return err_set(e, ERR_INVALID,
                       "%s is shorter than %d characters; make one with: openssl rand -hex 32",
                       name, SECRET_MIN);
    if (strspn(value, (char[2]){value[0], '\0'}) == strlen(value) || strstr(value, "change") ||
        strstr(value, "CHANGE") || strstr(value, "your-") || strstr(value, "example"))
        return err_set(e, ERR_INVALID, "%s is an example; make one with: openssl rand -hex 32",
                       name);
    return 0;
}

static int check_url(struct settings *s, struct err *e)
{
    char *url = s->public_base_url;
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return err_set(e, ERR_INVALID, "PUBLIC_BASE_URL must begin with http:// or https://");
    if (strpbrk(url, " \t\"<>?#"))
        return err_set(e, ERR_INVALID, "PUBLIC_BASE_URL holds a character that no URL prefix has");
    for (size_t len = strlen(url); len > 0 && url[len - 1] == '/'; len--)
        url[len - 1] = '\0';
    return 0;
}

/* "uid:gid" into numbers. Root inside the containers is refused. */
static int check_sandbox_user(struct settings *s, struct err *e)
{
    AUTO_FREE char *text = mem_strdup(s->sandbox_user);
    char *colon = strchr(text, ':');
    uint64_t uid, gid;
    if (colon)
        *colon = '\0';
    if (!colon || parse_u64(text, 1, INT_MAX, &uid) < 0 ||
        parse_u64(colon + 1, 1, INT_MAX, &gid) < 0)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_USER must be UID:GID in numbers above 0, e.g. 1000:1000");
    s->sandbox_uid = (uid_t)uid;
    s->sandbox_gid = (gid_t)gid;
    return 0;
}

static int check_auth(const struct settings *s, struct err *e)
{
    if (*s->api_token && check_secret("MCP_API_TOKEN", s->api_token, e) < 0)
        return -1;
    if (s->auth == SETTINGS_AUTH_TOKEN && s->url_ttl_ms > 0)
        return err_set(
            e, ERR_INVALID,
            "SANDBOX_URL_TTL needs SANDCGI_AUTH=nginx: only our nginx site checks links");
    if (s->auth == SETTINGS_AUTH_TOKEN && !*s->api_token && !*s->tokens_file)
        return err_set(e, ERR_INVALID,
                       "SANDCGI_AUTH=token needs MCP_API_TOKEN or SANDCGI_TOKENS_FILE");
    return 0;
}

static int check_amounts(const struct settings *s, struct err *e)
{
    if (s->timeout_ms > s->timeout_max_ms)
        return err_set(e, ERR_INVALID, "SANDBOX_TIMEOUT is over SANDBOX_TIMEOUT_MAX");
    if (s->file_max / 3 * 4 + 4096 > s->max_body)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_FILE_MAX in base64 does not fit into SANDCGI_MAX_BODY; raise that "
                       "(and nginx's client_max_body_size)");
    if (s->wait_ms > s->wait_max_ms)
        return err_set(e, ERR_INVALID, "SANDBOX_WAIT is over SANDBOX_WAIT_MAX");
    if (s->tmp_size > s->memory)
        return err_set(e, ERR_INVALID, "SANDBOX_TMP is over SANDBOX_MEMORY, which holds it");
    return 0;
}

/* Beside the broker's socket, in a directory that is ours. */
static void derive_events(struct settings *s)
{
    const char *slash = strrchr(s->broker, '/');
    if (*s->events)
        return;
    free(s->events);
    s->events = slash ? mem_printf("%.*s/events.sock", (int)(slash - s->broker), s->broker)
                      : mem_strdup("events.sock");
}

/* Containers start fastest at about two at a time per CPU; more at once only slow each other. */
static int derive_warm(struct settings *s, struct err *e)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;

    s->pool.idle_ms = (int64_t)s->warm_idle_ms;
    s->pool.starts_max = 2 * (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    return pool_settings_parse(s->warm, s->warm_memory, machine, &s->pool, e);
}

static int derive(struct settings *s, struct err *e)
{
    derive_events(s);
    s->index.private_ok = s->index_private;
    if (derive_warm(s, e) < 0 || index_settings_parse(s->indexes, &s->index, e) < 0)
        return -1;
    if (s->sandbox_root[0] != '/')
        return err_set(e, ERR_INVALID, "SANDBOX_ROOT must be an absolute path");
    if (!*s->sandbox_host_path) {
        free(s->sandbox_host_path);
        s->sandbox_host_path = mem_strdup(s->sandbox_root);
    }
    if (s->sandbox_host_path[0] != '/')
        return err_set(e, ERR_INVALID, "SANDBOX_HOST_PATH must be an absolute path");

    const char *name = *s->instance ? s->instance : s->sandbox_host_path;
    uint8_t digest[CRYPTO_SHA256_LEN];
    if (crypto_sha256(name, strlen(name), digest, e) < 0)
        return -1;
    crypto_hex(digest, sizeof s->instance_id / 2, s->instance_id);
    return 0;
}

int settings_load(struct settings *out, const char *path, struct err *e)
{
    *out = (struct settings){0};
    if (conf_load(settings_table, out, path, e) == 0 &&
        check_secret("FILE_SECRET", out->file_secret, e) == 0 && check_url(out, e) == 0 &&
        check_sandbox_user(out, e) == 0 && check_auth(out, e) == 0 && check_amounts(out, e) == 0 &&
        derive(out, e) == 0)
        return 0;
    settings_clear(out);
    return -1;
}

void settings_clear(struct settings *s)
{
    conf_clear(settings_table, s);
}
