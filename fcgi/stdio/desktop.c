#include "config.h"

#include "fcgi/stdio/desktop.h"

#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER       "sandcgi"
#define SECRET_BYTES 32
#define TEXT_MAX     (4 * PATH_MAX)

/* An absolute path in a variable; NULL: none, or one that a line of settings cannot hold. */
static const char *absolute(const char *variable)
{
    const char *value = getenv(variable);

    return value && value[0] == '/' && !strpbrk(value, "\r\n\"'") ? value : NULL;
}

static char *state_folder(struct err *e)
{
    const char *state = absolute("XDG_STATE_HOME"), *home = absolute("HOME");

    if (state)
        return mem_printf("%s/" FOLDER, state);
    if (home)
        return mem_printf("%s/.local/state/" FOLDER, home);
    err_set(e, ERR_INVALID,
            "without --config the settings and files are kept in $XDG_STATE_HOME/" FOLDER
            " or $HOME/.local/state/" FOLDER
            ": set one of these variables to an absolute path, or give --config FILE");
    return NULL;
}

/* Makes the folder and those above it. */
static int make_folders(const char *path, struct err *e)
{
    AUTO_FREE char *part = mem_strdup(path);

    for (char *slash = part; slash;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return err_errno(e, "%s cannot be made", part);
        if (slash)
            *slash = '/';
    }
    return 0;
}

/* The first engine of the user's that is there; NULL: the default. Docker's own place is first. */
static char *find_engine(void)
{
    static const struct {
        const char *variable, *path;
    } places[] = {
        {"XDG_RUNTIME_DIR", "docker.sock"},
        {"XDG_RUNTIME_DIR", "podman/podman.sock"},
        {"HOME", ".docker/run/docker.sock"},
        {"HOME", ".docker/desktop/docker.sock"},
    };

    if (access("/var/run/docker.sock", W_OK) == 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *folder = absolute(places[i].variable);
        char *path = folder ? mem_printf("%s/%s", folder, places[i].path) : NULL;
        if (path && access(path, W_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

static void write_text(const char *folder, struct buf *out)
{
    char secret[2 * SECRET_BYTES + 1];
    AUTO_FREE char *engine = find_engine();

    crypto_random_hex(SECRET_BYTES, secret);
    buf_addf(
        out,
        "# Settings of \"sandcgi stdio\" started without any; sandcgi.conf(5) describes them.\n"
        "SANDBOX_ROOT=%s/sandboxes\n"
        "# Changing it makes existing files unreachable.\n"
        "FILE_SECRET=%s\n"
        "PUBLIC_BASE_URL=" SANDBOX_LOCAL_URLS "\n"
        "# One client, which starts a server of its own.\n"
        "SANDBOX_WARM=python=1,typescript=1,bash=1\n",
        folder, secret);
    if (engine && !getenv("DOCKER_HOST"))
        buf_addf(out, "DOCKER_HOST=unix://%s\n", engine);
    explicit_bzero(secret, sizeof secret);
}

/* The whole file appears at once: of several that make it, the first one's stays. */
static int make_file(const char *folder, const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    AUTO_FREE char *draft = mem_printf("%s.XXXXXX", path);
    AUTO_FD int fd = mkostemp(draft, O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "%s cannot be made", path);
    write_text(folder, &text);
    int rc = fdio_write_all(fd, text.data, text.len, e);
    if (rc == 0 && link(draft, path) < 0 && errno != EEXIST)
        rc = err_errno(e, "%s cannot be made", path);
    unlink(draft);
    return rc;
}

static char *settings_path(const char *folder)
{
    return folder ? mem_printf("%s/sandcgi.env", folder) : NULL;
}

char *desktop_settings_find(void)
{
    struct err none = ERR_INIT;
    AUTO_FREE char *folder = state_folder(&none);
    AUTO_FREE char *path = settings_path(folder);

    return path && access(path, F_OK) == 0 ? TAKE_PTR(path) : NULL;
}

char *desktop_settings(struct err *e)
{
    AUTO_FREE char *folder = state_folder(e);
    AUTO_FREE char *sandboxes = folder ? mem_printf("%s/sandboxes", folder) : NULL;
    AUTO_FREE char *path = settings_path(folder);

    if (!folder || make_folders(sandboxes, e) < 0 ||
        (access(path, F_OK) < 0 && make_file(folder, path, e) < 0))
        return NULL;
    return TAKE_PTR(path);
}
