/* Looks at a server from all sides; each side says in one sentence what is wrong, and what mends
 * it. */
#include "config.h"

#include "fcgi/commands.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/remedy.h"
#include "common/base/version.h"
#include "common/fetch/site.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/sandbox/sandbox.h"
#include "fcgi/doctor/check.h"
#include "fcgi/doctor/denials.h"
#include "fcgi/doctor/store.h"
#include "fcgi/doctor/web.h"
#include "fcgi/way.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#define ANSWER_MS     5000
#define DAY_S         86400
#define IMAGE_OLD_S   (60 * DAY_S)
#define CERT_SOON_S   (14 * DAY_S)
#define TOKEN_SOON_S  (7 * DAY_S)
#define CLOCK_OFF_S   120
#define CGROUP2_MAGIC 0x63677270
#define MIB           (1024.0 * 1024.0)

struct look {
    const struct settings *s;
    const char *config_path;
    bool at_stdio;  /* the settings are those of a client that starts the server itself */
    json_t *status; /* of the running server; NULL: it does not run */
    struct findings *out;
};

static void say_ok(const struct look *l, const char *about, const char *text)
{
    findings_add(l->out, FINDING_OK, about, "", "%s", text);
}

/* ---- the server, its engine and its images ---- */

static void look_at_server(struct look *l)
{
    const struct broker_client client = {
        .path = l->s->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = ANSWER_MS};
    struct err e = ERR_INIT;
    const char *version;

    l->status = broker_status(&client, &e);
    version = json_get_string(l->status, "version");
    if (!l->status)
        findings_add(l->out, FINDING_WRONG, "server", remedy(REMEDY_START),
                     "the server does not answer at SANDCGI_BROKER: %s", e.text);
    else if (strcmp(version ? version : "", sandcgi_version) != 0)
        findings_add(l->out, FINDING_WRONG, "server", remedy(REMEDY_RELOAD),
                     "version %s answers, this program is %s", version ? version : "?",
                     sandcgi_version);
    else
        findings_add(l->out, FINDING_OK, "server", "", "version %s answers", sandcgi_version);
}

static void look_at_images(const struct look *l, const struct engine_runners *list)
{
    int64_t now = clock_unix_s();

    if (list->n == 0)
        findings_add(l->out, FINDING_WRONG, "images", remedy(REMEDY_RUNNERS),
                     "there is no runner image that SANDBOX_IMAGES=%s allows", l->s->images);
    for (size_t i = 0; i < list->n; i++) {
        const struct engine_runner *r = &list->items[i];
        long long days = r->created > 0 ? (long long)(now - r->created) / DAY_S : 0;
        bool old = r->created > 0 && now - r->created > IMAGE_OLD_S;
        findings_add(l->out, old ? FINDING_NOTE : FINDING_OK, "images",
                     old ? remedy(REMEDY_RUNNERS_AGAIN) : "", "%s: %s %s, %lld days old%s",
                     r->language, r->image, r->version, days,
                     old ? ": security updates since then are not in it" : "");
    }
    check_warm(l->s, list, l->out);
}

static void look_at_engine(const struct look *l)
{
    struct engine_runners list = {0};
    struct err e = ERR_INIT;
    struct engine *engine = docker_engine_new(&l->s->engine, &e);

    if (engine && engine->ops->runners(engine, l->s->images, &list, &e) == 0) {
        const struct engine_facts *facts = engine->ops->facts(engine);
        findings_add(l->out, FINDING_OK, "engine", "", "answers with API %s%s",
                     facts->version + strspn(facts->version, "/v"),
                     !facts->podman    ? ""
                     : facts->rootless ? ", Podman without root"
                                       : ", Podman");
        look_at_images(l, &list);
    } else {
        findings_add(l->out, FINDING_WRONG, "engine",
                     remedy(e.sys == EACCES ? REMEDY_ENGINE_OPEN : REMEDY_ENGINE), "%s", e.text);
    }
    engine_runners_clear(&list);
    if (engine)
        engine->ops->free(engine);
}

static void look_at_limits(const struct look *l)
{
    const json_t *limits = json_object_get(l->status, "limits");
    const char *error = json_get_string(limits, "lastError");
    struct statfs fs;
    bool v2 = statfs("/sys/fs/cgroup", &fs) == 0 && (unsigned long)fs.f_type == CGROUP2_MAGIC;

    findings_add(l->out, FINDING_OK, "cgroup", "", "version %d", v2 ? 2 : 1);
    if (!l->status)
        return;
    if (json_get_bool(limits, "hold", 0))
        say_ok(l, "limits", "memory and processes of containers are bounded: tried at the start");
    else if (error)
        findings_add(l->out, FINDING_WRONG, "limits", "", "%s", error);
    else if (l->s->limits_check == LIMITS_TRUST)
        findings_add(l->out, FINDING_NOTE, "limits", "SANDBOX_LIMITS_CHECK=warn",
                     "limits of containers are not tried (SANDBOX_LIMITS_CHECK=trust)");
    else
        findings_add(l->out, FINDING_NOTE, "limits", "run this again in a minute",
                     "limits of containers have not been tried yet: the server has just started");
    const json_t *network = json_object_get(l->status, "network");
    error = json_get_string(network, "lastError");
    if (error)
        findings_add(l->out, FINDING_NOTE, "network", remedy(REMEDY_NETWORK),
                     "programs get no network: %s", error);
    else
        findings_add(l->out, FINDING_OK, "network", "", "%s", json_get_string(network, "limit"));
}

/* ---- the disk and the clock ---- */

static void look_at_disk(const struct look *l)
{
    const struct sandbox_bounds *b = &l->s->bounds;
    struct statvfs fs;

    if (statvfs(l->s->sandbox_root, &fs) < 0)
        return; /* check_settings says so */
    uint64_t free = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (fs.f_flag & ST_RDONLY)
        findings_add(l->out, FINDING_WRONG, "disk", remedy(REMEDY_DISK_WRITABLE),
                     "the file system of SANDBOX_ROOT is read-only");
    else if (free <= b->reserve || (fs.f_files > 0 && fs.f_favail <= b->reserve_files))
        findings_add(l->out, FINDING_WRONG, "disk", remedy(REMEDY_DISK),
                     "%.0f MiB and %ju inodes are free at SANDBOX_ROOT, below SANDBOX_DISK_RESERVE "
                     "or SANDBOX_FILES_RESERVE: runs and uploads are refused",
                     (double)free / MIB, (uintmax_t)fs.f_favail);
    else
        findings_add(l->out, free < 2 * b->reserve ? FINDING_NOTE : FINDING_OK, "disk", "",
                     "%.0f MiB are free at SANDBOX_ROOT", (double)free / MIB);
}

/* The server sets the access rights at its start; a wrong one was changed after that. */
static void look_at_root(const struct look *l)
{
    const struct settings *s = l->s;
    struct stat st;
    struct err e = ERR_INIT;

    if (!l->status || stat(s->sandbox_root, &st) < 0 ||
        sandbox_root_check_access(s->sandbox_root, &st, s->web_gid, &e) == 0)
        return;
    AUTO_FREE char *chgrp = mem_printf("chgrp %ju %s && ", (uintmax_t)s->web_gid, s->sandbox_root);
    AUTO_FREE char *mend = mem_printf("%schmod %s %s", s->web_gid ? chgrp : "",
                                      s->web_gid ? "0710" : "0700", s->sandbox_root);
    findings_add(l->out, FINDING_WRONG, "owner", mend, "%s", e.text);
}

/* Of an administrator's own account it may be meant. */
static void look_at_owner(const struct look *l)
{
    const char *root = l->s->sandbox_root;
    AUTO_FREE char *mend = mem_printf("chown --reference=%s/" STATE_DIR " %s", root, root);
    struct err e = ERR_INIT;

    if (sandbox_root_check_owner(root, &e) < 0)
        findings_add(l->out, FINDING_NOTE, "owner", mend, "%s", e.text);
}

/* The seconds that the clock is off by, as far as this machine can know: nothing that the server
 * has made can be of the future, and as much time has passed as its other clock says. */
static int64_t clock_is_off(const struct look *l)
{
    const int64_t now = clock_unix_s(), started = json_get_integer(l->status, "startedAt", now);
    const int64_t passed = now - started, up = json_get_integer(l->status, "uptimeS", passed);
    struct stat st;

    if (passed - up > CLOCK_OFF_S || passed - up < -CLOCK_OFF_S)
        return passed - up;
    if (stat(l->s->sandbox_root, &st) == 0 && st.st_mtime > now + CLOCK_OFF_S)
        return now - st.st_mtime;
    return 0;
}

static void look_at_clock(const struct look *l)
{
    const int64_t off = clock_is_off(l);
    struct timex kernel = {0};
    const int state = adjtimex(&kernel); /* -1: a container may not ask */
    const bool kept = state != TIME_ERROR;

    if (off != 0) /* which is right where a time server did it */
        findings_add(l->out, kept ? FINDING_NOTE : FINDING_WRONG, "clock",
                     kept ? "" : remedy(REMEDY_CLOCK),
                     "the clock was set %s by %lld s: files, links and tokens expire by it",
                     off > 0 ? "forward" : "back", (long long)(off > 0 ? off : -off));
    else if (!kept)
        findings_add(l->out, FINDING_NOTE, "clock", remedy(REMEDY_CLOCK),
                     "no time server keeps the clock right");
    else if (state >= 0)
        say_ok(l, "clock", "a time server keeps it right");
}

/* ---- the site ---- */

static void look_at_certificate(const struct look *l, const struct fetch_site *site)
{
    AUTO_BUF struct buf fault = BUF_INIT(1024);
    AUTO_FREE char *renew = mem_printf("renew it, then: %s", remedy(REMEDY_SITE_RELOAD));
    int64_t left = site->expires - clock_unix_s();

    fetch_site_fault(site, clock_unix_s(), &fault);
    if (fault.len > 0)
        findings_add(l->out, FINDING_WRONG, "certificate",
                     site->foreign ? "use one for that host, or correct PUBLIC_BASE_URL" : renew,
                     "%s", buf_str(&fault));
    else if (site->expires && left < CERT_SOON_S)
        findings_add(l->out, FINDING_NOTE, "certificate", renew,
                     "the certificate of PUBLIC_BASE_URL expires in %lld days",
                     (long long)(left / DAY_S));
    if (*site->wrong)
        findings_add(
            l->out, FINDING_NOTE, "certificate", "use one that clients trust, or give them its CA",
            "this machine does not trust the certificate of PUBLIC_BASE_URL: %s", site->wrong);
    else if (site->expires && left >= CERT_SOON_S)
        findings_add(l->out, FINDING_OK, "certificate", "", "trusted, for another %lld days",
                     (long long)(left / DAY_S));
}

/* What mends a status of /healthz, besides making the site's files again. */
static const char *mend_of_status(long status)
{
    switch (status) {
    case 301:
    case 302:
    case 307:
    case 308:
        return "set PUBLIC_BASE_URL to where that leads";
    case 400:
        return "correct PUBLIC_BASE_URL: that port may speak https alone";
    case 403:
        return remedy(REMEDY_SITE_RELOAD); /* the secret has changed */
    case 404:
        return "correct PUBLIC_BASE_URL, or have its server include sandcgi's files";
    case 502:
    case 504:
        return "fastcgi_pass must be SANDCGI_LISTEN, and SANDCGI_LISTEN_GROUP the web server's "
               "group";
    default:
        return remedy(REMEDY_SITE);
    }
}

static void say_no_answer(const struct look *l, const char *url, const struct err *e)
{
    const bool plain = strstr(e->text, "wrong version number") != NULL; /* OpenSSL's words */
    AUTO_FREE char *mend = mem_printf("correct PUBLIC_BASE_URL, or start the web server: %s",
                                      remedy(REMEDY_SITE_START));

    findings_add(l->out, FINDING_WRONG, "site",
                 plain ? "correct PUBLIC_BASE_URL: that port speaks http, not https" : mend,
                 "%s does not answer: %s", url, e->text);
}

/* In a container of Compose the public name may lead nowhere: its nginx has this one there. */
#define COMPOSE_NGINX "nginx:8080"

static int ask_compose(const struct look *l, char **out_shown, struct fetch_site *out,
                       struct err *e)
{
    const char *host = strstr(l->s->public_base_url, "://") + 3, *path = strchr(host, '/');
    AUTO_FREE char *url = mem_printf("http://%s/healthz", host);

    *out_shown = mem_printf("http://" COMPOSE_NGINX "%s/healthz", path ? path : "");
    return fetch_site(url, COMPOSE_NGINX, out, e);
}

static int ask_site(const struct look *l, char **out_shown, struct fetch_site *out, struct err *e)
{
    if (remedy_way() == WAY_COMPOSE)
        return ask_compose(l, out_shown, out, e);
    *out_shown = mem_printf("%s/healthz", l->s->public_base_url);
    return fetch_site(*out_shown, NULL, out, e);
}

static void look_at_site(const struct look *l)
{
    AUTO_FREE char *url = NULL;
    struct fetch_site site;
    struct err e = ERR_INIT;

    if (ask_site(l, &url, &site, &e) < 0) {
        say_no_answer(l, url, &e);
        return;
    }
    if (strncmp(url, "https:", 6) == 0)
        look_at_certificate(l, &site);
    if (site.status == 200) {
        findings_add(l->out, FINDING_OK, "site", "", "%s answers 200", url);
        if (remedy_way() != WAY_COMPOSE)
            web_look_at_stream(l->s, &site, l->out);
    } else if (l->status || site.status < 500) { /* else it is the server that is missing */
        findings_add(l->out, FINDING_WRONG, "site", mend_of_status(site.status),
                     "%s answers %ld, not 200", url, site.status);
    }
    if (site.date &&
        (site.date > clock_unix_s() + CLOCK_OFF_S || site.date < clock_unix_s() - CLOCK_OFF_S))
        findings_add(l->out, FINDING_WRONG, "clock", remedy(REMEDY_CLOCK),
                     "the clock of PUBLIC_BASE_URL's server differs from this one by %lld s",
                     (long long)(site.date - clock_unix_s()));
}

/* ---- tokens ---- */

static void say_tokens(const struct look *l, size_t n, enum finding_state state, const char *what,
                       const char *mend)
{
    if (n > 0)
        findings_add(l->out, state, "tokens", mend, "%zu in %s %s", n, l->s->tokens_file, what);
}

static void look_at_tokens(const struct look *l)
{
    struct token_list list;
    struct err e = ERR_INIT;
    size_t weak = 0, expired = 0, soon = 0;
    const int64_t now = clock_unix_s();

    if (*l->s->api_token && token_text_is_weak(l->s->api_token))
        findings_add(l->out, FINDING_WRONG, "tokens", "openssl rand -hex 32",
                     "MCP_API_TOKEN is short, or has few different characters");
    if (!*l->s->tokens_file || token_list_read(l->s->tokens_file, &list, &e) < 0)
        return; /* check_files says why */
    for (size_t i = 0; i < list.n; i++) {
        const int64_t end = list.items[i].expires_s;
        weak += list.items[i].weak;
        expired += end && end < now;
        soon += end >= now && end < now + TOKEN_SOON_S;
    }
    say_tokens(l, weak, FINDING_WRONG, "are short, or have few different characters",
               remedy(REMEDY_TOKEN_OTHER));
    say_tokens(l, expired, FINDING_NOTE, "have expired", remedy(REMEDY_TOKEN_LIST));
    say_tokens(l, soon, FINDING_NOTE, "expire within 7 days", remedy(REMEDY_TOKEN));
    if (!weak && !expired && !soon)
        findings_add(l->out, FINDING_OK, "tokens", "", "%zu in %s", list.n, l->s->tokens_file);
    token_list_clear(&list);
}

/* ---- the command ---- */

static void print_text(const struct findings *f, bool quiet)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct finding *one = &f->items[i];
        if (quiet && one->state != FINDING_WRONG)
            continue;
        printf("%-5s  %-11s  %s%s%s%s\n", finding_state_name(one->state), one->about, one->text,
               *one->mend ? " (to mend it: " : "", one->mend, *one->mend ? ")" : "");
    }
    if (quiet)
        return;
    const size_t wrong = findings_count(f, FINDING_WRONG), notes = findings_count(f, FINDING_NOTE);
    if (wrong == 0 && notes == 0)
        puts("ok");
    else
        printf("%zu wrong, %zu to note\n", wrong, notes);
}

static void print_json(const struct findings *f)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "state",
                                              finding_state_name(f->items[i].state), "about",
                                              f->items[i].about, "text", f->items[i].text, "mend",
                                              f->items[i].mend));
    json_auto_t *all = json_pack("{s:b, s:O}", "ok", findings_count(f, FINDING_WRONG) == 0,
                                 "findings", list);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
}

int doctor_show_error(const struct err *e, bool as_json)
{
    struct findings found = {0};

    findings_add(&found, FINDING_WRONG, "settings", "", "%s", e->text);
    if (as_json)
        print_json(&found);
    else
        print_text(&found, false);
    findings_clear(&found);
    return 1;
}

/* What a server has besides an engine and a disk. */
static void look_at_web(struct look *l, const char *nginx_folder)
{
    if (!l->status)
        web_look_at_ports(l->s, l->out);
    web_look_at_nginx(l->s, nginx_folder, l->out);
    web_look_at_account(l->s, l->out);
    if (web_look_at_name(l->s, l->out))
        look_at_site(l);
    look_at_tokens(l);
}

int doctor_show(const struct settings *s, const char *config_path, const char *nginx_folder,
                bool as_json, bool quiet)
{
    struct findings found = {0};
    struct look l = {
        .s = s, .config_path = config_path, .at_stdio = check_is_stdio(s), .out = &found};

    if (l.at_stdio)
        remedy_find_way(way_stdio);
    check_machine(s, config_path, &found);
    if (found.n == 0)
        findings_add(&found, FINDING_OK, "settings", "", "%s: what they name is there",
                     config_path ? config_path : "of the environment");
    if (!l.at_stdio)
        look_at_server(&l);
    look_at_engine(&l);
    look_at_limits(&l);
    look_at_disk(&l);
    look_at_root(&l);
    look_at_owner(&l);
    look_at_clock(&l);
    store_look(s, &found);
    denials_look(s, &found);
    if (!l.at_stdio)
        look_at_web(&l, nginx_folder);
    if (as_json)
        print_json(&found);
    else
        print_text(&found, quiet);
    bool wrong = findings_count(&found, FINDING_WRONG) > 0;
    json_decref(l.status);
    findings_clear(&found);
    return wrong;
}
