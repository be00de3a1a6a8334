#include "config.h"

#include "fcgi/way.h"

#include "common/base/auto.h"
#include "common/base/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT    PKGLIBEXECDIR "/nginx/setup-nginx.sh"
#define CONTAINER "/usr/local/bin/container.sh" /* Dockerfile: starts the server */
#define SYSTEMD   "/run/systemd/system"         /* sd_booted(3) */

enum way way_of(const struct way_facts *facts)
{
    if (facts->has_start_sh)
        return WAY_START_SH;
    if (facts->in_image && !facts->cluster)
        return WAY_COMPOSE;
    return facts->installed && facts->systemd ? WAY_SYSTEMD : WAY_OTHER;
}

/* A clone has the program in build/. */
static bool has_start_sh(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    if (len <= 0)
        return false;
    self[len] = '\0';
    for (int up = 0; up < 2; up++)
        *(strrchr(self, '/') ? strrchr(self, '/') : self) = '\0';
    AUTO_FREE char *script = mem_printf("%s/start.sh", self);
    return access(script, X_OK) == 0;
}

enum way way_find(void)
{
    return way_of(&(struct way_facts){.has_start_sh = has_start_sh(),
                                      .in_image = access(CONTAINER, X_OK) == 0,
                                      .installed = access(SCRIPT, X_OK) == 0,
                                      .systemd = access(SYSTEMD, F_OK) == 0,
                                      .cluster = getenv("MACHINE_NAME") ||
                                                 getenv("KUBERNETES_SERVICE_HOST")});
}

enum way way_stdio(void)
{
    return WAY_STDIO;
}
