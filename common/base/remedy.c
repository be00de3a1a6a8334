#include "config.h"

#include "common/base/remedy.h"

#include <stddef.h>

#define LIBEXEC PKGLIBEXECDIR

/* A command of the program itself. */
#define BY_PROGRAM(words, then)                                                                    \
    [WAY_STDIO] = "sandcgi " words then,                                                           \
    [WAY_START_SH] = "build/sandcgi " words " --config .env" then,                                 \
    [WAY_SYSTEMD] = "sandcgi " words then,                                                         \
    [WAY_COMPOSE] = "docker-compose exec sandcgi sandcgi " words then,                             \
    [WAY_OTHER] = "sandcgi " words then

static const char *const remedies[REMEDIES][WAYS] = {
    [REMEDY_START] = {[WAY_MODEL] = "try again in a moment",
                      [WAY_STDIO] = "start the client again: it starts the server",
                      [WAY_START_SH] = "./start.sh",
                      [WAY_SYSTEMD] = "systemctl start sandcgi",
                      [WAY_COMPOSE] = "docker-compose up -d",
                      [WAY_OTHER] = "sandcgi serve --config FILE"},
    [REMEDY_RESTART] = {[WAY_STDIO] = "start the client again",
                        [WAY_START_SH] = "./start.sh --stop && ./start.sh",
                        [WAY_SYSTEMD] = "systemctl restart sandcgi",
                        [WAY_COMPOSE] = "docker-compose restart sandcgi",
                        [WAY_OTHER] = "end the server, then: sandcgi serve --config FILE"},
    [REMEDY_RELOAD] = {[WAY_STDIO] = "start the client again",
                       [WAY_START_SH] = "./start.sh",
                       [WAY_SYSTEMD] = "systemctl reload sandcgi",
                       [WAY_COMPOSE] = "docker-compose up -d",
                       [WAY_OTHER] = "sandcgi reload --config FILE"},
    [REMEDY_LOGS] = {[WAY_STDIO] = "sandcgi logs",
                     [WAY_START_SH] = "build/sandcgi logs --config .env",
                     [WAY_SYSTEMD] = "sandcgi logs",
                     [WAY_COMPOSE] = "docker-compose logs sandcgi",
                     [WAY_OTHER] = "sandcgi logs"},
    [REMEDY_OAUTH_CODE] = {BY_PROGRAM("oauth code", "")},
    [REMEDY_STATUS] = {BY_PROGRAM("status", "")},
    [REMEDY_DOCTOR] = {BY_PROGRAM("doctor", "")},
    [REMEDY_RUNNERS] = {[WAY_MODEL] = "no language is installed on this server: tell the user",
                        [WAY_STDIO] = "runners/build.sh of a clone, or " LIBEXEC
                                      "/runners/build.sh, builds them",
                        [WAY_START_SH] = "./start.sh builds them",
                        [WAY_SYSTEMD] = "systemctl restart sandcgi-runners builds them",
                        [WAY_COMPOSE] = "docker-compose up -d --build runners builds them",
                        [WAY_OTHER] = LIBEXEC "/runners/build.sh builds them"},
    [REMEDY_RUNNERS_AGAIN] = {[WAY_STDIO] = "runners/build.sh --force of a clone, or " LIBEXEC
                                            "/runners/build.sh --force",
                              [WAY_START_SH] = "runners/build.sh --settings .env --force",
                              [WAY_SYSTEMD] = LIBEXEC "/runners/build.sh --settings "
                                                      "/etc/sandcgi/sandcgi.conf --force",
                              [WAY_COMPOSE] = "docker-compose run --rm runners --force",
                              [WAY_OTHER] = LIBEXEC "/runners/build.sh --force"},
    [REMEDY_ENGINE] = {[WAY_MODEL] = "nothing is wrong with the call: try again in a while",
                       [WAY_STDIO] = "start Docker or Podman, or correct DOCKER_HOST",
                       [WAY_START_SH] = "./start.sh starts it; or correct DOCKER_HOST",
                       [WAY_SYSTEMD] = "start it (systemctl start docker), or correct DOCKER_HOST",
                       [WAY_COMPOSE] = "start the host's engine, or correct DOCKER_SOCKET",
                       [WAY_OTHER] = "start it, or correct DOCKER_HOST"},
    [REMEDY_ENGINE_OPEN] =
        {[WAY_MODEL] = "tell the user that the server may not open its engine's socket",
         [WAY_STDIO] = "let your account open it: sudo usermod --append --groups docker $USER "
                       "(which makes you root), then log in again; or install Podman",
         [WAY_START_SH] = "call ./start.sh with an account that may open it",
         [WAY_SYSTEMD] = "let the account that this runs as open it; root may",
         [WAY_COMPOSE] = "correct DOCKER_SOCKET: root of the container must be able to open it",
         [WAY_OTHER] = "let the account that this runs as open it (Docker: usermod --append "
                       "--groups docker ACCOUNT), or correct DOCKER_HOST"},
    [REMEDY_NETWORK] = {[WAY_STDIO] = LIBEXEC "/nginx/setup/network.sh install, as root",
                        [WAY_START_SH] = "nginx/setup/network.sh install, as root",
                        [WAY_SYSTEMD] = "systemctl restart sandcgi-network",
                        [WAY_COMPOSE] = "on the host, as root: nginx/setup/network.sh install",
                        [WAY_OTHER] = LIBEXEC "/nginx/setup/network.sh install, as root"},
    [REMEDY_DISK] = {[WAY_MODEL] = "delete files that are not needed any more, or the "
                                   "conversation, or tell the user",
                     BY_PROGRAM("purge --older-than 30d", ", or enlarge the file system")},
    [REMEDY_DISK_WRITABLE] = {[WAY_MODEL] = "tell the user",
                              [WAY_STDIO] = "mount it writable",
                              [WAY_START_SH] = "mount it writable",
                              [WAY_SYSTEMD] = "mount it writable",
                              [WAY_COMPOSE] = "mount it writable on the host",
                              [WAY_OTHER] = "mount it writable"},
    [REMEDY_CLOCK] = {[WAY_STDIO] = "set the clock, and have a time server keep it",
                      [WAY_START_SH] = "set the clock, and have a time server keep it",
                      [WAY_SYSTEMD] = "timedatectl set-ntp true",
                      [WAY_COMPOSE] = "set the host's clock, and have a time server keep it",
                      [WAY_OTHER] = "set the clock, and have a time server keep it"},
    [REMEDY_SITE] = {[WAY_START_SH] = "./start.sh",
                     [WAY_SYSTEMD] = "sandcgi setup nginx --server-name NAME, then: systemctl "
                                     "reload nginx",
                     [WAY_COMPOSE] = "docker-compose up -d --build",
                     [WAY_OTHER] = "sandcgi setup nginx --server-name NAME, then: nginx -s reload"},
    [REMEDY_SITE_START] = {[WAY_START_SH] = "./start.sh",
                           [WAY_SYSTEMD] = "nginx -t && systemctl start nginx",
                           [WAY_COMPOSE] = "docker-compose up -d",
                           [WAY_OTHER] = "start the web server (nginx -t && nginx)"},
    [REMEDY_SITE_RELOAD] = {[WAY_START_SH] = "./start.sh",
                            [WAY_SYSTEMD] = "systemctl reload nginx",
                            [WAY_COMPOSE] = "docker-compose kill -s HUP nginx",
                            [WAY_OTHER] = "reload the web server (nginx -s reload)"},
    [REMEDY_TOKEN] = {[WAY_MODEL] = "ask the server's operator for another one",
                      BY_PROGRAM("token add", "")},
    [REMEDY_TOKEN_LIST] = {BY_PROGRAM("token list", ", then token revoke")},
    [REMEDY_TOKEN_OTHER] = {BY_PROGRAM("token add", ", then token revoke")},
    [REMEDY_SECRET_FILE] = {[WAY_START_SH] = "./start.sh makes it",
                            [WAY_SYSTEMD] = "sandcgi setup nginx makes it",
                            [WAY_COMPOSE] = "docker-compose restart sandcgi makes it",
                            [WAY_OTHER] = "sandcgi setup nginx makes it"},
    [REMEDY_PASSPHRASE] = {BY_PROGRAM("oauth passphrase", "")},
};

static enum way (*find_way)(void);
static enum way way = WAYS; /* not found yet */

void remedy_find_way(enum way (*find)(void))
{
    find_way = find;
    way = WAYS;
}

enum way remedy_way(void)
{
    if (way == WAYS)
        way = find_way ? find_way() : WAY_OTHER;
    return way;
}

const char *remedy_for(enum remedy what, enum way reader)
{
    const char *text = remedies[what][reader];

    return text ? text : "";
}

const char *remedy(enum remedy what)
{
    return remedy_for(what, remedy_way());
}
