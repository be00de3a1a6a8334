#include "config.h"

#include "fcgi/settings.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/base/parse.h"
#include "common/sandbox/sandbox.h"
#include "common/tools/tools.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define FIELD(f)   offsetof(struct settings, f)
#define KIB        1024ull
#define MIB        (1024ull * KIB)
#define GIB        (1024ull * MIB)
#define SECRET_MIN 32
#define HOUR_MS    3600000ull
#define PREFIX_CHARS                                                                               \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-" /* of tools' names */

/* clang-format off */
const struct conf_row settings_table[] = {
    {"SANDBOX_ROOT", CONF_STRING, FIELD(sandbox_root), "", 0, 0, NULL, CONF_REQUIRED,
     "Directory that holds the files of all conversations."},
    {"SANDBOX_HOST_PATH", CONF_STRING, FIELD(sandbox_host_path), "", 0, 0, NULL, 0,
     "Path of SANDBOX_ROOT on the container engine's host, if it differs (server in a container). Empty: SANDBOX_ROOT."},
    {"FILE_SECRET", CONF_STRING, FIELD(file_secret), "", 0, 0, NULL, CONF_REQUIRED | CONF_SECRET,
     "Key that directory names and links are derived from, at least 32 characters. Replacing it without FILE_SECRET_OLD makes existing files unreachable, and all links to them."},
    {"FILE_SECRET_OLD", CONF_STRING, FIELD(old_secret), "", 0, 0, NULL, CONF_SECRET,
     "FILE_SECRET before it was replaced. Conversations stay, and links made with it work until FILE_SECRET_OLD_UNTIL. Empty: it was not replaced, or long ago."},
    {"FILE_SECRET_OLD_UNTIL", CONF_STRING, FIELD(old_secret_date), "", 0, 0, NULL, 0,
     "Last day on which links made with FILE_SECRET_OLD work, as 2026-12-31, or the moment after which they do not, as 2026-12-31T18:00:00Z; both in UTC."},
    {"PUBLIC_BASE_URL", CONF_STRING, FIELD(public_base_url), "", 0, 0, NULL, CONF_REQUIRED,
     "URL prefix of download links (in front of /files/...), e.g. https://sandbox.example.org. file: (sandcgi stdio only): links are the files' paths on this machine."},
    {"MCP_API_TOKEN", CONF_STRING, FIELD(api_token), "", 0, 0, NULL, CONF_SECRET,
     "Bearer token of the tenant \"default\". Checked by nginx, or by the workers with SANDCGI_AUTH=token."},
    {"TOOLS", CONF_STRING, FIELD(tools), "core", 0, 256, NULL, CONF_REQUIRED,
     "Tools to offer: core, and in addition any of files, transfer, sandboxes, admin, separated by commas; or all; or the tools of another server, for its clients (runner, session, container, interpreter). The FastCGI parameter SANDCGI_TOOLS overrides it per location or tenant."},
    {"TOOLS_PREFIX", CONF_STRING, FIELD(tools_prefix), "", 0, 32, NULL, 0,
     "Text in front of the names of our tools (sandbox_ makes sandbox_read_file), for clients that also have a server of files with such names. Letters, digits, _ and -."},
    {"ANSWERS", CONF_CHOICE, FIELD(answers), "text", 0, 0, "text|structured", 0,
     "Form of the results of tools. text: one text and pictures, for models; structured: structuredContent with all fields, for programs. The FastCGI parameter SANDCGI_ANSWERS=structured chooses the second per location (/mcp/api of our nginx)."},
    {"SANDCGI_LOCAL_DIRS", CONF_STRING, FIELD(local_dirs), "", 0, 4096, NULL, 0,
     "Local directories, separated by commas, that copy_project and related tools may use in addition to the client's roots. stdio only."},
    {"SANDCGI_AUTH", CONF_CHOICE, FIELD(auth), "nginx", 0, 0, "nginx|token", 0,
     "Process that checks bearer tokens: nginx (our site), or token: the workers, behind any other web server."},
    {"SANDCGI_TOKENS_FILE", CONF_STRING, FIELD(tokens_file), "", 0, 0, NULL, 0,
     "File of tokens, which sandcgi token writes. nginx includes it (TOKENS_FILE of render.sh); with SANDCGI_AUTH=token the server reads it, and again when it changes, in addition to MCP_API_TOKEN."},
    {"SANDCGI_TOKENS_RELOAD", CONF_STRING, FIELD(tokens_reload), "", 0, 0, NULL, 0,
     "Command with which sandcgi token has nginx read SANDCGI_TOKENS_FILE again, e.g. nginx -s reload. Empty: nginx is reloaded by other means."},
    {"SANDCGI_SECRET_FILE", CONF_STRING, FIELD(secret_file), "", 0, 0, NULL, 0,
     "File with the secret that nginx sends with each request; requests without it are refused. Used with SANDCGI_AUTH=nginx."},
    {"SANDCGI_OAUTH", CONF_STRING, FIELD(oauth), "", 0, 2048, NULL, 0,
     "Access tokens of OAuth, beside static ones (fcgi/oauth.md): the issuer's https:// URL, or builtin: the server issues them itself. Empty: static tokens alone."},
    {"SANDCGI_OAUTH_CHECK", CONF_STRING, FIELD(access.check), "", 0, 107, NULL, 0,
     "FastCGI socket on which nginx asks about access tokens. Mode and group as SANDCGI_LISTEN. Empty: judge.sock in the directory of SANDCGI_BROKER."},
    {"SANDCGI_OAUTH_LISTEN", CONF_STRING, FIELD(oauth_listen), "", 0, 107, NULL, 0,
     "FastCGI socket of the authorization server (SANDCGI_OAUTH=builtin). Mode and group as SANDCGI_LISTEN. Empty: oauth.sock in the directory of SANDCGI_BROKER."},
    {"SANDCGI_OAUTH_AUDIENCE", CONF_STRING, FIELD(access.audience), "", 0, 2048, NULL, 0,
     "What the audience (aud) of an access token must be: a URL, with all places below it, or a name. Empty: PUBLIC_BASE_URL, or /mcp below it. Not for builtin."},
    {"SANDCGI_OAUTH_TENANT", CONF_STRING, FIELD(access.tenant), "", 0, 256, NULL, 0,
     "Tenant of an access token, made of its claims: {sub}, team-{org}, or {email:hash} for the claim's SHA-256 where it has other characters than a tenant's name. Empty: {tenant} with builtin, else {sub}."},
    {"SANDCGI_OAUTH_SCOPES", CONF_STRING, FIELD(access.scope_names), "", 0, 64, NULL, 0,
     "Scopes that every access token has besides those that it names: run, files, network, admin, separated by commas. For issuers that know no scopes of ours."},
    {"SANDCGI_OAUTH_LIMITS", CONF_STRING, FIELD(access.limits), "", 0, 64, NULL, 0,
     "Claim, such as groups or realm_access.roles. Of its values the first that names a section of SANDBOX_TENANTS_FILE decides: the limits of that section count for a call, but for bytes, which are the tenant's. Empty, or no such value: the section of the tenant."},
    {"SANDCGI_OAUTH_INTROSPECT", CONF_STRING, FIELD(access.introspect), "", 0, 2048, NULL, 0,
     "URL at which the issuer is asked about access tokens that are no JWTs (RFC 7662). Empty: only JWTs are accepted."},
    {"SANDCGI_OAUTH_CLIENT_FILE", CONF_STRING, FIELD(access.client_file), "", 0, 0, NULL, 0,
     "File with one line CLIENT_ID:SECRET, with which the server asks at SANDCGI_OAUTH_INTROSPECT."},
    {"SANDCGI_ALLOWED_ORIGINS", CONF_STRING, FIELD(allowed_origins), "", 0, 0, NULL, 0,
     "Origins of browser pages that may call /mcp, separated by commas, in addition to the origin of PUBLIC_BASE_URL."},
    {"SANDCGI_ALLOWED_HOSTS", CONF_STRING, FIELD(allowed_hosts), "", 0, 0, NULL, 0,
     "Host header values accepted by /mcp, separated by commas, in addition to the host of PUBLIC_BASE_URL and localhost. * accepts any."},
    {"SANDCGI_NODE", CONF_STRING, FIELD(node), "", 0, NODE_NAME_MAX, NULL, 0,
     "Name of this machine among several behind an edge, of the characters a-z and 0-9: ids and links begin with it. Empty: there is one machine."},
    {"SANDCGI_EDGE_SECRET", CONF_STRING, FIELD(edge_secret), "", 0, 0, NULL, CONF_SECRET,
     "Secret that the edge sends with each request, at least 32 characters, the same on all nodes. What the edge says is believed only together with it. Empty: there is no edge."},
    {"SANDCGI_STANDIN", CONF_CHOICE, FIELD(standin), "serve", 0, 0, "serve|refuse", 0,
     "What this node does for a conversation whose home is away. serve: it goes on with files of its own, which are removed when the home is back; refuse: its calls are answered 503."},
    {"SANDCGI_ROUTE_HEADERS", CONF_BOOL, FIELD(route_headers), "false", 0, 0, NULL, 0,
     "Ask clients to send conversationId as the header Mcp-Param-Conversation, too, by which the edge finds the home at once. Calls of clients that do not are refused."},
    {"SANDCGI_LISTEN", CONF_STRING, FIELD(listen), "/run/sandcgi/fastcgi.sock", 0, 107, NULL, CONF_REQUIRED,
     "FastCGI socket of the workers: a path, or ADDRESS:PORT."},
    {"SANDCGI_LISTEN_MODE", CONF_MODE, FIELD(listen_mode), "0660", 0, 0, NULL, 0,
     "Permissions of the FastCGI sockets."},
    {"SANDCGI_TAKEOVER", CONF_BOOL, FIELD(takeover), "false", 0, 0, NULL, 0,
     "At the start, take over the Unix sockets of another server with the same SANDBOX_ROOT as soon as programs can run here. The other one goes on with its calls until it is stopped. For containers that are replaced: the new one starts before the old one is stopped."},
    {"SANDCGI_LISTEN_GROUP", CONF_STRING, FIELD(listen_group), "", 0, 64, NULL, 0,
     "Group of the web server: owns the FastCGI sockets, and may pass through SANDBOX_ROOT, which is closed to all other accounts. Empty: the server's own account alone."},
    {"SANDCGI_BROKER", CONF_STRING, FIELD(broker), "/run/sandcgi/broker.sock", 0, 107, NULL, CONF_REQUIRED,
     "Unix socket of the broker, for CGI, stdio and status. Workers do not connect to it."},
    {"SANDCGI_HUB", CONF_STRING, FIELD(hub), "", 0, 107, NULL, 0,
     "FastCGI socket of the hub, which holds long-lived streams (GET /mcp, subscriptions/listen). Mode and group as SANDCGI_LISTEN. Empty: no hub and no such streams."},
    {"SANDCGI_EVENTS", CONF_STRING, FIELD(events), "", 0, 107, NULL, 0,
     "Unix datagram socket on which the hub receives change events. Empty: events.sock in the directory of SANDCGI_BROKER."},
    {"SANDCGI_MAX_STREAMS", CONF_NUMBER, FIELD(max_streams), "2000", 1, 100000, NULL, 0,
     "Maximum number of open streams. A tenant may have four times as many as are left. Further requests are answered 429."},
    {"SANDCGI_MAX_SESSIONS", CONF_NUMBER, FIELD(max_sessions), "20000", 1, 1000000, NULL, 0,
     "Maximum number of sessions of the older protocol revisions. A tenant may have four times as many as are left; then each new one ends one that it has not used for long."},
    {"SANDCGI_SESSION_TTL", CONF_DURATION, FIELD(session_ttl_ms), "24h", 60000, 8760 * HOUR_MS, NULL, 0,
     "Time after the last request at which a session of the older protocol revisions expires."},
    {"SANDCGI_WORKERS", CONF_NUMBER, FIELD(workers), "80", 1, 1000, NULL, 0,
     "Number of FastCGI worker processes that are free for calls. A call that lasts longer than 50 ms keeps its worker, and another one is started."},
    {"SANDCGI_MAX_CALLS", CONF_NUMBER, FIELD(max_calls), "2048", 1, 20000, NULL, 0,
     "Maximum number of calls at once, those that wait for a program included. A tenant may have four times as many as are left. Further calls are answered 429."},
    {"SANDCGI_USER", CONF_STRING, FIELD(user), "", 0, 64, NULL, 0,
     "Account that workers and hub run as. Required when started as root."},
    {"SANDCGI_MAX_BODY", CONF_BYTES, FIELD(max_body), "16m", 64 * KIB, GIB, NULL, 0,
     "Maximum size of a request body."},
    {"SANDCGI_LOG_LEVEL", CONF_CHOICE, FIELD(log_level), "info", 0, 0, "error|warn|info|debug", 0,
     "Most verbose level that is logged. Tokens, code, environment values and output are never logged."},
    {"SANDCGI_LOG", CONF_STRING, FIELD(log_file), "", 0, 0, NULL, 0,
     "File that serve appends its log to. SIGHUP opens it again, after a rotation. Empty: standard error."},
    {"SANDCGI_LOG_FORMAT", CONF_CHOICE, FIELD(log_format), "text", 0, 0, "text|json", 0,
     "Form of the log's lines: text, or a JSON object each. Under journald they begin with a priority instead of the time."},
    {"SANDCGI_METRICS", CONF_STRING, FIELD(metrics), "", 0, 107, NULL, 0,
     "Where GET /metrics is answered for Prometheus: a Unix socket's path, or a loopback ADDRESS:PORT such as 127.0.0.1:9464. Not for nginx. Empty: nowhere."},
    {"DOCKER_HOST", CONF_STRING, FIELD(engine.host), "", 0, 255, NULL, 0,
     "Container engine: unix:///path or tcp://host:port. Empty: unix:///var/run/docker.sock."},
    {"DOCKER_TLS_VERIFY", CONF_BOOL, FIELD(engine.tls_verify), "false", 0, 0, NULL, 0,
     "Use TLS with the engine and verify its certificate."},
    {"DOCKER_CERT_PATH", CONF_STRING, FIELD(engine.cert_path), "", 0, 0, NULL, 0,
     "Directory with ca.pem, cert.pem and key.pem for DOCKER_TLS_VERIFY."},
    {"SANDBOX_INSTANCE", CONF_STRING, FIELD(instance), "", 0, 64, NULL, 0,
     "Name that the server's containers are labelled with. Empty: derived from SANDBOX_ROOT."},
    {"SANDBOX_IMAGES", CONF_STRING, FIELD(images), "sandcgi-runner-*,runner-*,mcp-sandbox-runner-*", 0, 0, NULL, CONF_REQUIRED,
     "Image repositories that are used as runners, separated by commas. A trailing * matches any suffix."},
    {"SANDBOX_RUNTIME", CONF_STRING, FIELD(runtime), "", 0, 64, NULL, 0,
     "OCI runtime of all containers (runsc, kata, ...). Each start first verifies that the engine has it. Empty: the engine's default."},
    {"SANDBOX_USER", CONF_STRING, FIELD(sandbox_user), "auto", 0, 32, NULL, CONF_REQUIRED,
     "User that programs run as and that owns their files. auto: each conversation has one of its own, between 1879048192 and "
     "2013265919 (needs root; otherwise all have this account). UID:GID: all have this one. Must not be 0."},
    {"SANDBOX_LIMITS_CHECK", CONF_CHOICE, FIELD(limits_check), "warn", 0, 0, "trust|warn|refuse", 0,
     "What a start does about limits of memory and processes, which some engines take and do not hold. warn: tries them in a container, and says so in the log and the status; refuse: no program runs unless they hold; trust: does not try."},
    {"SANDBOX_CPUS", CONF_MILLI, FIELD(container.cpu_milli), "0.5", 10, 1000000, NULL, 0,
     "CPUs available to one run."},
    {"SANDBOX_MEMORY", CONF_BYTES, FIELD(container.memory_bytes), "256m", 16 * MIB, 1024 * GIB, NULL, 0,
     "Memory available to one run. Swap is disabled."},
    {"SANDBOX_PIDS", CONF_NUMBER, FIELD(container.pids), "128", 8, 100000, NULL, 0,
     "Maximum number of processes and threads of one run."},
    {"SANDBOX_TMP", CONF_BYTES, FIELD(container.tmp_bytes), "64m", MIB, 1024 * GIB, NULL, 0,
     "Size of /tmp. It is a tmpfs and counts towards SANDBOX_MEMORY."},
    {"SANDBOX_NOFILE", CONF_NUMBER, FIELD(container.nofile), "1024", 32, 1048576, NULL, 0,
     "Maximum number of open files of one process."},
    {"SANDBOX_FSIZE", CONF_BYTES, FIELD(container.fsize_bytes), "1g", MIB, 1024 * GIB, NULL, 0,
     "Maximum size of a file that a program writes."},
    {"SANDBOX_TIMEOUT", CONF_DURATION, FIELD(limits.timeout_ms), "30s", 100, 24 * HOUR_MS, NULL, 0,
     "Time limit of a run whose call sets none."},
    {"SANDBOX_TIMEOUT_MAX", CONF_DURATION, FIELD(limits.timeout_max_ms), "300s", 100, 24 * HOUR_MS, NULL, 0,
     "Maximum time limit that a call may set."},
    {"SANDBOX_MAX_RUNS", CONF_NUMBER, FIELD(limits.max_runs), "16", 1, 1000, NULL, 0,
     "Maximum number of concurrent runs. Further runs are queued."},
    {"SANDBOX_TENANT_RUNS", CONF_NUMBER, FIELD(limits.tenant_runs), "0", 0, 1000, NULL, 0,
     "Maximum number of concurrent runs of one tenant, within its share of SANDBOX_MAX_RUNS (four times what is left). SANDBOX_MAX_RUNS or more: no share, all places. 0: its share."},
    {"SANDBOX_CONVERSATION_RUNS", CONF_NUMBER, FIELD(limits.conversation_runs), "4", 1, 1000, NULL, 0,
     "Maximum number of concurrent runs of one conversation. 1: one after the other."},
    {"SANDBOX_TENANTS_FILE", CONF_STRING, FIELD(tenants_file), "", 0, 0, NULL, 0,
     "File with limits of tenants: concurrent_runs, runs_per_minute, run_seconds_per_day, bytes, network, languages and toolsets, in sections [TENANT], and [*] for all others. They apply together with the settings here: the smaller of both counts. Empty: none."},
    {"SANDBOX_QUEUE", CONF_NUMBER, FIELD(limits.queue), "64", 0, 10000, NULL, 0,
     "Maximum number of queued runs. The queue serves tenants in turn; further runs are refused as \"busy\"."},
    {"SANDBOX_BACKGROUND_MAX", CONF_NUMBER, FIELD(limits.background_max), "8", 0, 1000, NULL, 0,
     "Maximum number of runs of one tenant that begin with background or waitMs 0, in persistent sandboxes too. 0: none may."},
    {"SANDBOX_WAIT", CONF_DURATION, FIELD(limits.wait_ms), "50s", 1, 24 * HOUR_MS, NULL, 0,
     "Time that run_code, exec and install_package wait for the end if the call sets none. They then answer \"running\" with a handle. As long as SANDBOX_TIMEOUT_MAX: until the program ends."},
    {"SANDBOX_WAIT_MAX", CONF_DURATION, FIELD(limits.wait_max_ms), "300s", 1000, 24 * HOUR_MS, NULL, 0,
     "Maximum wait that a call may set."},
    {"SANDBOX_RESULT_TTL", CONF_DURATION, FIELD(limits.result_ttl_ms), "1h", 10000, 720 * HOUR_MS, NULL, 0,
     "Time that the result of a run is kept after its call was answered."},
    {"SANDBOX_RESULTS_MAX", CONF_BYTES, FIELD(bounds.results), "64m", 0, UINT64_MAX, NULL, 0,
     "Maximum size of the kept results of one tenant's runs, at most 1000 of them. Above it, the oldest are removed. 0: no limit of their size."},
    {"SANDBOX_TTL", CONF_DURATION, FIELD(ttl_ms), "720h", 0, 87600 * HOUR_MS, NULL, 0,
     "Time after its last use (a run, a file tool) at which a conversation's files are deleted, or up to 4 hours later: the clock must have said so for two. 0: never."},
    {"SANDBOX_TOTAL_MAX", CONF_STRING, FIELD(total_max), "50%", 0, 32, NULL, CONF_REQUIRED,
     "Maximum size of all conversations' files and kept results: a size, or a percentage of the file system of SANDBOX_ROOT. Above it, the least recently used conversations are deleted. 0: no limit."},
    {"SANDBOX_QUOTA", CONF_BYTES, FIELD(bounds.bytes), "2g", 0, UINT64_MAX, NULL, 0,
     "Maximum disk usage of one conversation. Checked before each run and upload. With user quotas on the file system of SANDBOX_ROOT, the kernel keeps programs below it. Else one that passes it is killed and what it added above it is removed (status disk_limit). 0: no limit."},
    {"SANDBOX_FILES", CONF_NUMBER, FIELD(bounds.files), "200000", 0, 1000000000, NULL, 0,
     "Maximum number of files and directories of one conversation. Enforced as SANDBOX_QUOTA is. 0: no limit."},
    {"SANDBOX_DISK_RESERVE", CONF_BYTES, FIELD(bounds.reserve), "256m", 0, UINT64_MAX, NULL, 0,
     "Free space to keep on the file system of SANDBOX_ROOT. Below it, runs and uploads are refused, and a program that took it is killed (status disk_limit). 0: no reserve."},
    {"SANDBOX_FILES_RESERVE", CONF_NUMBER, FIELD(bounds.reserve_files), "10000", 0, 1000000000, NULL, 0,
     "Number of free inodes to keep on the file system of SANDBOX_ROOT, as SANDBOX_DISK_RESERVE. 0: no reserve."},
    {"SANDBOX_WARM", CONF_STRING, FIELD(warm), "python=2,typescript=1,bash=1", 0, 1024, NULL, 0,
     "Number of warm containers per language. A run in a warm container starts within milliseconds. Empty: none."},
    {"SANDBOX_WARM_MEMORY", CONF_STRING, FIELD(warm_memory), "25%", 0, 32, NULL, CONF_REQUIRED,
     "Memory limit of all warm containers: a size, or a percentage of the machine's memory. A container counts with its processes' memory plus 8 MB of the engine: about 17 MB for Python, 80 MB with its libraries preloaded."},
    {"SANDBOX_WARM_IDLE", CONF_DURATION, FIELD(warm_idle_ms), "10m", 1000, 24 * HOUR_MS, NULL, 0,
     "Time that a warm container is kept for the next run of a conversation."},
    {"SANDBOX_REUSE", CONF_CHOICE, FIELD(reuse), "conversation", 0, 0, "conversation|never", 0,
     "Whether a container that has served a run serves the next one of its conversation. With `conversation` it is wiped in between and thrown away after any doubt, an hour or 1,000 runs; it counts against `SANDBOX_WARM_MEMORY`. With `never`, and for languages that `SANDBOX_WARM` does not name, every run gets a new container. The FastCGI parameter SANDCGI_REUSE makes it `never` per location."},
    {"SANDBOX_PERSISTENT_MAX", CONF_NUMBER, FIELD(limits.persistent.tenant_max), "4", 0, 1000, NULL, 0,
     "Maximum number of persistent sandboxes (create_sandbox, run_code with session) of one tenant."},
    {"SANDBOX_PERSISTENT_SERVER", CONF_NUMBER, FIELD(limits.persistent.server_max), "16", 0, 10000, NULL, 0,
     "Maximum number of persistent sandboxes of all tenants. Each may use SANDBOX_MEMORY and SANDBOX_CPUS."},
    {"SANDBOX_PERSISTENT_IDLE", CONF_DURATION, FIELD(limits.persistent.idle_ms), "30m", 1000, 720 * HOUR_MS, NULL, 0,
     "Time after the last call at which a persistent sandbox is closed."},
    {"SANDBOX_PERSISTENT_PAUSE", CONF_DURATION, FIELD(limits.persistent.pause_ms), "60s", 0, 720 * HOUR_MS, NULL, 0,
     "Time after the last call at which a persistent sandbox is paused, background processes included. The next call resumes it. 0: never."},
    {"SANDBOX_PERSISTENT_TOTAL", CONF_DURATION, FIELD(limits.persistent.total_ms), "8h", 1000, 8760 * HOUR_MS, NULL, 0,
     "Maximum lifetime of a persistent sandbox, whether in use or not."},
    {"SANDBOX_PERSISTENT_IMAGES", CONF_STRING, FIELD(limits.persistent.images), "", 0, 0, NULL, 0,
     "Image repositories, besides runners, that create_sandbox accepts, separated by commas. A trailing * matches any suffix. Images are not pulled."},
    {"SANDBOX_NETWORK", CONF_CHOICE, FIELD(network), "public", 0, 0, "none|public|lan", 0,
     "Network of programs that request one. none: refused; public: the internet without private addresses, this host and other containers; lan: what this host reaches, without other containers. public needs the firewall rules of nginx/setup/network.sh and is refused until a test from inside a container has passed. The FastCGI parameter SANDCGI_NETWORK lowers it per location or tenant."},
    {"SANDBOX_NETWORK_ASK", CONF_BOOL, FIELD(limits.network_ask), "false", 0, 0, NULL, 0,
     "Give programs a network only if the client's user agrees, each time."},
    {"SANDBOX_NETWORK_DNS", CONF_STRING, FIELD(network_dns), "1.1.1.1,9.9.9.9", 0, 255, NULL, CONF_REQUIRED,
     "Addresses of the name servers that programs on the public network use, separated by commas. A private address must be given to nginx/setup/network.sh, too (start.sh does)."},
    {"SANDBOX_INDEXES", CONF_STRING, FIELD(indexes), "python=https://pypi.org/simple+files.pythonhosted.org,typescript=https://registry.npmjs.org", 0, 4096, NULL, 0,
     "Package index per language for install_package, as language=URL, followed by +HOST for each further host that serves its files. An installation can connect to these hosts only. https only. Empty: no packages."},
    {"SANDBOX_INDEX_PRIVATE", CONF_BOOL, FIELD(index_private), "false", 0, 0, NULL, 0,
     "Allow host names in SANDBOX_INDEXES to resolve to private addresses (a company's own index). Hosts given as addresses are always allowed."},
    {"SANDBOX_INDEX_CA", CONF_STRING, FIELD(index_ca), "", 0, 0, NULL, 0,
     "File with CA certificates (PEM) for package indexes, in addition to those of the runner images."},
    {"SANDBOX_CODE_MAX", CONF_BYTES, FIELD(limits.code_max), "1m", KIB, 8 * MIB, NULL, 0,
     "Maximum size of a program's source text."},
    {"SANDBOX_STDIN_MAX", CONF_BYTES, FIELD(limits.stdin_max), "1m", 0, 8 * MIB, NULL, 0,
     "Maximum size of standard input."},
    {"SANDBOX_FILE_MAX", CONF_BYTES, FIELD(limits.file_max), "10m", KIB, 256 * MIB, NULL, 0,
     "Maximum size of a file in upload_file, decoded. Its base64 form must fit into SANDCGI_MAX_BODY."},
    {"SANDBOX_UPLOAD_MAX", CONF_BYTES, FIELD(limits.upload_max), "2g", KIB, 1024 * GIB, NULL, 0,
     "Maximum size of a file for create_upload and import_url. Must match UPLOAD_MAX of nginx."},
    {"SANDBOX_UPLOAD_TTL", CONF_DURATION, FIELD(limits.upload_ttl_ms), "15m", 1000, 168 * HOUR_MS, NULL, 0,
     "Time that a create_upload link is valid."},
    {"SANDBOX_URL_TTL", CONF_DURATION, FIELD(url_ttl_ms), "0", 0, 8760 * HOUR_MS, NULL, 0,
     "Time that a download link is valid. Above 0, links are signed, and our nginx (SIGNED_URLS) refuses others. 0: unsigned links, valid as long as the file exists."},
    {"SANDBOX_IMPORT", CONF_BOOL, FIELD(limits.import), "true", 0, 0, NULL, 0,
     "Allow import_url to fetch files from public https servers."},
    {"SANDBOX_ENV_MAX", CONF_BYTES, FIELD(limits.env_max), "64k", 0, MIB, NULL, 0,
     "Maximum size of a run's environment, names and values together."},
    {"SANDBOX_OUTPUT_KEEP", CONF_BYTES, FIELD(limits.output_keep), "128k", KIB, 8 * MIB, NULL, 0,
     "Size of each output stream that is returned: its first and its last half of this."},
    {"SANDBOX_ANSWER_MAX", CONF_BYTES, FIELD(limits.answer_max), "16k", KIB, 8 * MIB, NULL, 0,
     "Size of what a result in text holds of a program's output, a file or a list (head and tail of output), unless the call says detail: full."},
    {"SANDBOX_OUTPUT_MAX", CONF_BYTES, FIELD(limits.output_max), "256m", 0, UINT64_MAX, NULL, 0,
     "Maximum output of a run. A program that prints more is killed (status output_limit). 0: no limit."},
    {"SANDBOX_IMAGE_MAX", CONF_BYTES, FIELD(limits.image_max), "1m", 0, 8 * MIB, NULL, 0,
     "Maximum size of a picture that is returned inline."},
    {"SANDBOX_IMAGES_MAX", CONF_NUMBER, FIELD(limits.images_max), "4", 0, 20, NULL, 0,
     "Maximum number of pictures of one run that are returned inline."},
    {0},
};
/* clang-format on */

static int check_secret(const char *name, const char *value, struct err *e)
{
    if (strlen(value) < SECRET_MIN)
        return err_set(e, ERR_INVALID,
                       "%s is shorter than %d characters; generate one with: openssl rand -hex 32",
                       name, SECRET_MIN);
    if (strspn(value, (char[2]){value[0], '\0'}) == strlen(value) || strstr(value, "change") ||
        strstr(value, "CHANGE") || strstr(value, "your-") || strstr(value, "example"))
        return err_set(e, ERR_INVALID,
                       "%s is an example value; generate one with: openssl rand -hex 32", name);
    return 0;
}

/* The end of the last day, or the moment. */
static int check_old_secret(struct settings *s, struct err *e)
{
    if (!*s->old_secret && !*s->old_secret_date)
        return 0;
    if (!*s->old_secret || !*s->old_secret_date)
        return err_set(e, ERR_INVALID, "%s is set without %s; set both or none",
                       *s->old_secret ? "FILE_SECRET_OLD" : "FILE_SECRET_OLD_UNTIL",
                       *s->old_secret ? "FILE_SECRET_OLD_UNTIL" : "FILE_SECRET_OLD");
    if (strlen(s->old_secret) < SECRET_MIN || strcmp(s->old_secret, s->file_secret) == 0)
        return err_set(e, ERR_INVALID,
                       "FILE_SECRET_OLD must be the FILE_SECRET that was used before, of at least "
                       "%d characters",
                       SECRET_MIN);
    if (parse_date(s->old_secret_date, &s->old_secret_until) < 0)
        return err_set(e, ERR_INVALID,
                       "FILE_SECRET_OLD_UNTIL must be a day such as 2026-12-31 or a moment such as "
                       "2026-12-31T18:00:00Z (UTC), not \"%.40s\"",
                       s->old_secret_date);
    return 0;
}

static int check_url(struct settings *s, struct err *e)
{
    char *url = s->public_base_url;
    if (strcmp(url, SANDBOX_LOCAL_URLS) == 0)
        return 0;
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return err_set(
            e, ERR_INVALID,
            "PUBLIC_BASE_URL must begin with http:// or https:// (or be " SANDBOX_LOCAL_URLS
            ", for sandcgi stdio)");
    if (strpbrk(url, " \t\"<>?#"))
        return err_set(e, ERR_INVALID,
                       "PUBLIC_BASE_URL contains a character that a URL prefix must not have");
    for (size_t len = strlen(url); len > 0 && url[len - 1] == '/'; len--)
        url[len - 1] = '\0';
    return 0;
}

static int check_tools(struct settings *s, struct err *e)
{
    s->toolset = toolset_find(s->tools);
    if (s->toolset < 0)
        return err_set(e, ERR_INVALID, "TOOLS=%s must be one of: %s", s->tools, TOOLSET_NAMES);
    if (s->tools_prefix[strspn(s->tools_prefix, PREFIX_CHARS)])
        return err_set(e, ERR_INVALID,
                       "TOOLS_PREFIX must consist of letters, digits, _ and -, e.g. sandbox_");
    return 0;
}

/* "uid:gid" into numbers; auto into 0. Root inside the containers is refused. */
static int check_sandbox_user(struct settings *s, struct err *e)
{
    AUTO_FREE char *text = mem_strdup(s->sandbox_user);
    char *colon = strchr(text, ':');
    uint64_t uid, gid;
    if (strcmp(text, "auto") == 0)
        return 0;
    if (colon)
        *colon = '\0';
    if (!colon || parse_u64(text, 1, INT_MAX, &uid) < 0 ||
        parse_u64(colon + 1, 1, INT_MAX, &gid) < 0)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_USER must be auto, or UID:GID in numbers above 0, e.g. 1000:1000");
    s->sandbox_uid = (uid_t)uid;
    s->sandbox_gid = (gid_t)gid;
    return 0;
}

static int find_web_group(struct settings *s, struct err *e)
{
    const struct group *group = *s->listen_group ? getgrnam(s->listen_group) : NULL;

    if (*s->listen_group && !group)
        return err_set(e, ERR_INVALID, "SANDCGI_LISTEN_GROUP=%s: no such group", s->listen_group);
    s->web_gid = group ? group->gr_gid : 0;
    return 0;
}

/* Settings that contradict each other. */
static int check_combinations(const struct settings *s, struct err *e)
{
    const struct {
        bool wrong;
        const char *text;
    } rules[] = {
        {s->auth == SETTINGS_AUTH_TOKEN && !*s->api_token && !*s->tokens_file,
         "SANDCGI_AUTH=token needs MCP_API_TOKEN or SANDCGI_TOKENS_FILE"},
        {s->limits.timeout_ms > s->limits.timeout_max_ms,
         "SANDBOX_TIMEOUT is over SANDBOX_TIMEOUT_MAX"},
        {s->limits.file_max / 3 * 4 + 4096 > s->max_body,
         "SANDBOX_FILE_MAX in base64 does not fit into SANDCGI_MAX_BODY; raise that (and nginx's "
         "client_max_body_size)"},
        {s->limits.wait_ms > s->limits.wait_max_ms, "SANDBOX_WAIT is over SANDBOX_WAIT_MAX"},
        {s->container.tmp_bytes > s->container.memory_bytes,
         "SANDBOX_TMP is over SANDBOX_MEMORY, which it counts towards"},
        {*s->engine.host && strncmp(s->engine.host, "unix:///", 8) != 0 &&
             strncmp(s->engine.host, "tcp://", 6) != 0,
         "DOCKER_HOST must be unix:///PATH or tcp://HOST:PORT, with the scheme, e.g. "
         "unix:///var/run/docker.sock"},
        {*s->metrics && !strchr(s->metrics, '/') && strncmp(s->metrics, "127.", 4) != 0 &&
             strncmp(s->metrics, "[::1]:", 6) != 0,
         "SANDCGI_METRICS must be a path or a loopback address, e.g. 127.0.0.1:9464: whoever "
         "reaches it can read it"},
        {s->sandbox_root[0] != '/', "SANDBOX_ROOT must be an absolute path"},
        {*s->node && !node_name_ok(s->node),
         "SANDCGI_NODE must consist of 1 to 16 of the characters a-z and 0-9, e.g. n1"},
        {*s->edge_secret && !*s->node, "SANDCGI_EDGE_SECRET is set without SANDCGI_NODE; set both"},
        {*s->sandbox_host_path && s->sandbox_host_path[0] != '/',
         "SANDBOX_HOST_PATH must be an absolute path"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].wrong)
            return err_set(e, ERR_INVALID, "%s", rules[i].text);
    return 0;
}

static int parse_total(struct settings *s, struct err *e)
{
    if (parse_share(s->total_max, 100, &s->bounds.total_bytes, &s->bounds.total_percent) == 0)
        return 0;
    return err_set(e, ERR_INVALID,
                   "SANDBOX_TOTAL_MAX must be a size like 100g, or a share of the file system from "
                   "0%% to 100%%, not \"%.40s\"",
                   s->total_max);
}

static int settings_derive(struct settings *s, struct err *e)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
    const char *slash = strrchr(s->broker, '/');
    uint8_t digest[CRYPTO_SHA256_LEN];

    if (!*s->events) { /* beside the broker's socket */
        free(s->events);
        s->events = mem_printf("%.*sevents.sock", slash ? (int)(slash + 1 - s->broker) : 0,
                               s->broker);
    }
    if (!*s->oauth_listen) {
        free(s->oauth_listen);
        s->oauth_listen = mem_printf("%.*soauth.sock", slash ? (int)(slash + 1 - s->broker) : 0,
                                     s->broker);
    }
    if (!*s->sandbox_host_path) {
        free(s->sandbox_host_path);
        s->sandbox_host_path = mem_strdup(s->sandbox_root);
    }
    s->links_url = *s->node && strcmp(s->public_base_url, SANDBOX_LOCAL_URLS) != 0
                       ? mem_printf("%s/%s", s->public_base_url, s->node)
                       : mem_strdup(s->public_base_url);
    s->pool.idle_ms = (int64_t)s->warm_idle_ms;
    s->pool.reuse = s->reuse == SETTINGS_REUSE_CONVERSATION;
    /* Starts are fastest at about two at a time per CPU. */
    s->pool.starts_max = 2 * (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    s->index.private_ok = s->index_private;
    s->limits.network = (enum network_tier)s->network;
    s->bounds.ttl_s = (int64_t)(s->ttl_ms + 999) / 1000;
    const char *name = *s->instance ? s->instance : s->sandbox_host_path;
    if (parse_total(s, e) < 0 ||
        pool_settings_parse(s->warm, s->warm_memory, machine, &s->pool, e) < 0 ||
        index_settings_parse(s->indexes, &s->index, e) < 0 ||
        crypto_sha256(name, strlen(name), digest, e) < 0)
        return -1;
    crypto_hex(digest, sizeof s->instance_id / 2, s->instance_id);
    return 0;
}

static int check_oauth(struct settings *s, struct err *e)
{
    const struct oauth_context others = {.oauth = s->oauth,
                                         .public_base_url = s->public_base_url,
                                         .broker = s->broker,
                                         .tenants_file = s->tenants_file};

    return oauth_settings_check(&s->access, &others, e);
}

static int load_tenants(struct settings *s, struct err *e)
{
    tenants_init(&s->tenants);
    if (!*s->tenants_file)
        return 0;
    if (tenants_load(s->tenants_file, toolset_limit_ok, TOOLSET_NAMES, &s->tenants, e) == 0)
        return 0;
    return e->kind == ERR_INVALID ? -1 : err_wrap(e, "SANDBOX_TENANTS_FILE");
}

const char *settings_default_file(void)
{
    const char *named = getenv("SANDCGI_CONFIG");

    if (named)
        return named;
    if (getenv("SANDBOX_ROOT") || (access(SETTINGS_FILE, F_OK) < 0 && errno != EACCES))
        return NULL;
    return SETTINGS_FILE;
}

int settings_load(struct settings *out, const char *path, struct err *e)
{
    *out = (struct settings){0};
    if (conf_load(settings_table, out, path, e) == 0 &&
        check_secret("FILE_SECRET", out->file_secret, e) == 0 && check_old_secret(out, e) == 0 &&
        check_url(out, e) == 0 && check_tools(out, e) == 0 && check_sandbox_user(out, e) == 0 &&
        find_web_group(out, e) == 0 &&
        (!*out->api_token || check_secret("MCP_API_TOKEN", out->api_token, e) == 0) &&
        (!*out->edge_secret || check_secret("SANDCGI_EDGE_SECRET", out->edge_secret, e) == 0) &&
        check_combinations(out, e) == 0 && settings_derive(out, e) == 0 &&
        check_oauth(out, e) == 0 && load_tenants(out, e) == 0)
        return 0;
    settings_clear(out);
    return -1;
}

void settings_clear(struct settings *s)
{
    conf_clear(settings_table, s);
    tenants_clear(&s->tenants);
    free(TAKE_PTR(s->links_url));
}
