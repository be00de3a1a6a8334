#include "config.h"

#include "fcgi/doctor/check.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/sandbox/sandbox.h"
#include "fcgi/app.h"
#include "fcgi/doctor/weak.h"
#include "fcgi/oauth/server/passphrase.h"
#include "fcgi/oauth/server/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ABOUT     "settings"
#define ENGINE_MS 2000 /* a start must not wait for an engine that does not answer */

bool check_is_stdio(const struct settings *s)
{
    return strcmp(s->public_base_url, SANDBOX_LOCAL_URLS) == 0;
}

static void add_wrong(struct findings *out, const struct err *e)
{
    findings_add(out, FINDING_WRONG, ABOUT, "", "%s", e->text);
}

/* The folder that holds path, or that path is in when it ends in a slash; heap. */
static char *folder_of(const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len > 1 && path[len - 1] != '/')
        len--;
    while (len > 1 && path[len - 1] == '/')
        len--;
    return len > 0 ? mem_strndup(path, len) : mem_strdup(".");
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The server makes the last part of the path itself. */
static void check_root(const struct settings *s, struct findings *out)
{
    AUTO_FREE char *parent = folder_of(s->sandbox_root);
    struct stat st;

    if (stat(s->sandbox_root, &st) < 0 && !is_folder(parent))
        findings_add(out, FINDING_WRONG, ABOUT, "",
                     "SANDBOX_ROOT=%s: there is no folder %s; make it, or set another path",
                     s->sandbox_root, parent);
    else if (!is_folder(is_folder(s->sandbox_root) ? s->sandbox_root : parent) ||
             (stat(s->sandbox_root, &st) == 0 && !S_ISDIR(st.st_mode)))
        findings_add(out, FINDING_WRONG, ABOUT, "",
                     "SANDBOX_ROOT=%s is not a folder; set another path", s->sandbox_root);
    else if (access(is_folder(s->sandbox_root) ? s->sandbox_root : parent, W_OK | X_OK) < 0)
        findings_add(out, FINDING_WRONG, ABOUT, "",
                     "SANDBOX_ROOT=%s cannot be written by this account (%s); %s", s->sandbox_root,
                     strerror(errno),
                     errno == EROFS ? "mount it writable, or set another path"
                                    : "change its owner");
}

static void check_user(const struct settings *s, struct findings *out)
{
    struct account account;
    struct err e = ERR_INIT;

    if (account_of_workers(s->user, &account, &e) < 0)
        add_wrong(out, &e);
    else if (*s->user && !getpwnam(s->user)) /* not looked up without root */
        findings_add(out, FINDING_WRONG, ABOUT, "", "SANDCGI_USER=%s: no such account", s->user);
    else if (geteuid() == 0 && s->web_gid && account.gid == s->web_gid)
        findings_add(out, FINDING_NOTE, ABOUT, "",
                     "SANDCGI_USER=%s is in the web server's group: a worker could read all files "
                     "in SANDBOX_ROOT; give the workers an account of their own",
                     s->user);
}

/* ---- sockets and files that settings name ---- */

/* A log's folder is there before; that of a socket is made by the start, if it can be. */
static void check_folder(const char *setting, const char *address, bool is_made,
                         struct findings *out)
{
    if (!strchr(address, '/')) /* ADDRESS:PORT, or none */
        return;
    AUTO_FREE char *folder = folder_of(address), *above = folder_of(folder);
    if (!is_folder(folder) && !(is_made && is_folder(above) && access(above, W_OK | X_OK) == 0))
        findings_add(out, FINDING_WRONG, ABOUT, "",
                     "%s=%s: there is no folder %s; make it, or set another path", setting, address,
                     folder);
}

static void check_sockets(const struct settings *s, struct findings *out)
{
    check_folder("SANDCGI_LISTEN", s->listen, true, out);
    check_folder("SANDCGI_BROKER", s->broker, true, out);
    check_folder("SANDCGI_HUB", s->hub, true, out);
    check_folder("SANDCGI_METRICS", s->metrics, true, out);
    check_folder("SANDCGI_LOG", s->log_file, false, out);
}

static void check_readable(const char *setting, const char *path, struct findings *out)
{
    if (*path && access(path, R_OK) < 0)
        findings_add(out, FINDING_WRONG, ABOUT, "", "%s=%s cannot be read: %s", setting, path,
                     strerror(errno));
}

/* May an account that is not root read or write it: the workers' own, or every one? */
static const char *reader_of(const struct settings *s, const struct stat *st)
{
    struct account workers;
    struct err none = ERR_INIT;

    if (st->st_mode & (S_IROTH | S_IWOTH))
        return "every account";
    if (geteuid() != 0 || !*s->user || account_of_workers(s->user, &workers, &none) < 0)
        return NULL; /* the workers have the server's account */
    if (st->st_uid == workers.uid ||
        (st->st_gid == workers.gid && st->st_mode & (S_IRGRP | S_IWGRP)))
        return "the workers' account";
    return NULL;
}

/* The master reads secrets before it starts workers, which need none of these files. */
static void check_private(const struct settings *s, const char *what, const char *path,
                          struct findings *out)
{
    struct stat st;
    const char *reader = path && *path && stat(path, &st) == 0 ? reader_of(s, &st) : NULL;

    if (!reader)
        return;
    AUTO_FREE char *mend = st.st_mode & (S_IROTH | S_IWOTH)
                               ? mem_printf("chmod o-rwx %s", path)
                               : mem_printf("chown root:root %s && chmod 0600 %s", path, path);
    findings_add(out, FINDING_WRONG, ABOUT, mend,
                 "%s %s holds secrets, and %s can read or write it (mode %04o)", what, path, reader,
                 (unsigned)(st.st_mode & 07777));
}

/* The program that reads it is nginx, which says less about a wrong line. */
static bool tokens_are_wrong(const struct settings *s, struct err *e)
{
    struct token_list list;

    if (!*s->tokens_file || access(s->tokens_file, R_OK) < 0)
        return false; /* none yet, or for nginx alone */
    if (token_list_read(s->tokens_file, &list, e) < 0) {
        err_wrap(e, "SANDCGI_TOKENS_FILE");
        return true;
    }
    token_list_clear(&list);
    return false;
}

static void check_files(const struct settings *s, const char *config_path, struct findings *out)
{
    struct app app;
    struct err e = ERR_INIT;

    if (app_init(&app, s, !check_is_stdio(s), NULL, &e) < 0) /* reads the secret or the tokens */
        add_wrong(out, &e);
    else
        app_clear(&app);
    check_readable("SANDBOX_CA", s->ca, out);
    if (docker_address_check(&s->engine, &e) < 0)
        add_wrong(out, &e);
    if (!getenv("FILE_SECRET")) /* else the file's is not used */
        check_private(s, "settings file", config_path, out);
    if (check_is_stdio(s))
        return;
    if (s->auth == SETTINGS_AUTH_NGINX)
        check_private(s, "SANDCGI_SECRET_FILE", s->secret_file, out);
    check_private(s, "SANDCGI_TOKENS_FILE", s->tokens_file, out);
    check_private(s, "SANDBOX_STORE_CREDENTIALS", s->store.credentials, out);
    check_private(s, "SANDCGI_OAUTH_CLIENT_FILE", s->access.client_file, out);
    if (s->auth == SETTINGS_AUTH_NGINX && tokens_are_wrong(s, &e))
        findings_add(out, FINDING_NOTE, ABOUT, "", "%s; nginx may refuse the file", e.text);
}

/* The folder is made by the first start, or with the passphrase. */
static void check_oauth(const struct settings *s, struct findings *out)
{
    AUTO_FREE char *path = mem_printf("%s/" STORE_FOLDER, s->sandbox_root);
    AUTO_FD int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e = ERR_INIT;

    if (passphrase_need(s, folder, &e) < 0)
        add_wrong(out, &e);
}

/* ---- images ---- */

static void add_languages(const struct engine_runners *list, struct buf *out)
{
    for (size_t i = 0; i < list->n; i++)
        buf_addf(out, "%s%s", i > 0 ? ", " : "", list->items[i].language);
    buf_add_str(out, list->n == 0 ? "no runner image at all" : "");
}

void check_warm(const struct settings *s, const struct engine_runners *list, struct findings *out)
{
    AUTO_BUF struct buf names = BUF_INIT(4096);

    add_languages(list, &names);
    for (size_t i = 0; i < s->pool.n; i++) {
        const char *language = s->pool.items[i].language;
        if (!engine_runners_find(list, language))
            findings_add(out, FINDING_NOTE, ABOUT, "",
                         "SANDBOX_WARM names %s, which no image runs; there is: %s; build the "
                         "image, or take the language out",
                         language, buf_str(&names));
    }
}

static void check_images(const struct settings *s, struct findings *out)
{
    struct engine_runners list = {0};
    struct err e = ERR_INIT;
    struct engine_address address = s->engine;
    address.limit_ms = ENGINE_MS;
    struct engine *engine = docker_engine_new(&address, &e);

    if (engine && engine->ops->runners(engine, s->images, &list, &e) == 0)
        check_warm(s, &list, out);
    else /* an engine may be started later */
        findings_add(out, FINDING_NOTE, ABOUT, "",
                     "the engine was not asked for its images (SANDBOX_WARM): %s", e.text);
    engine_runners_clear(&list);
    if (engine)
        engine->ops->free(engine);
}

static void check_old_secret(const struct settings *s, struct findings *out)
{
    if (s->old_secret_until && s->old_secret_until <= clock_unix_s())
        findings_add(out, FINDING_NOTE, ABOUT, "",
                     "FILE_SECRET_OLD_UNTIL=%s has passed; remove FILE_SECRET_OLD and "
                     "FILE_SECRET_OLD_UNTIL if the server has been started with them",
                     s->old_secret_date);
}

void check_machine(const struct settings *s, const char *config_path, struct findings *out)
{
    check_root(s, out);
    check_old_secret(s, out);
    check_files(s, config_path, out);
    if (check_is_stdio(s))
        return;
    check_user(s, out);
    check_sockets(s, out);
    check_oauth(s, out);
    check_weak(s, out);
}

void check_settings(const struct settings *s, const char *config_path, struct findings *out)
{
    check_machine(s, config_path, out);
    check_images(s, out);
}
