#include "config.h"

#include "common/engine/docker_address.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_HOST "unix:///var/run/docker.sock"

void docker_address_clear(struct docker_address *a)
{
    free(a->host);
    free(a->unix_path);
    free(a->base);
    free(a->ca);
    free(a->cert);
    free(a->key);
    *a = (struct docker_address){0};
}

/* The path of cert_path/name, which has to be readable. */
static int find_pem(const char *folder, const char *name, char **out, struct err *e)
{
    AUTO_FREE char *path = mem_printf("%s/%s", folder, name);

    if (access(path, R_OK) < 0) {
        err_errno(e, "DOCKER_CERT_PATH: %s", path);
        e->kind = ERR_INVALID;
        return -1;
    }
    *out = TAKE_PTR(path);
    return 0;
}

static int init_unix(struct docker_address *a, const char *path, struct err *e)
{
    if (path[0] != '/' || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return err_set(
            e, ERR_INVALID,
            "DOCKER_HOST: the socket's path must be absolute and shorter than 108 bytes");
    a->unix_path = mem_strdup(path);
    a->base = mem_strdup("http://localhost");
    return 0;
}

/* "name:port", "1.2.3.4:port", "[::1]:port" and nothing else that a URL could carry. */
static int init_tcp(struct docker_address *a, const char *authority, struct err *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".-:[]";
    const char *colon = strrchr(authority, ':');
    uint64_t port;

    if (!colon || colon == authority || authority[strspn(authority, allowed)] != '\0' ||
        parse_u64(colon + 1, 1, 65535, &port) < 0)
        return err_set(e, ERR_INVALID, "DOCKER_HOST: expected tcp://HOST:PORT");
    a->base = mem_printf("%s://%s", a->tls ? "https" : "http", authority);
    return 0;
}

static int init_all(struct docker_address *a, const struct engine_address *from, struct err *e)
{
    const char *certs = from->cert_path ? from->cert_path : "";

    a->host = mem_strdup(from->host && *from->host ? from->host : DEFAULT_HOST);
    if (strncmp(a->host, "unix://", 7) == 0)
        return init_unix(a, a->host + 7, e);
    if (strncmp(a->host, "tcp://", 6) != 0)
        return err_set(e, ERR_INVALID, "DOCKER_HOST: expected unix:///PATH or tcp://HOST:PORT");
    a->tls = from->tls_verify || *certs;
    if (*certs &&
        (find_pem(certs, "ca.pem", &a->ca, e) < 0 || find_pem(certs, "cert.pem", &a->cert, e) < 0 ||
         find_pem(certs, "key.pem", &a->key, e) < 0))
        return -1;
    return init_tcp(a, a->host + 6, e);
}

int docker_address_init(struct docker_address *a, const struct engine_address *from, struct err *e)
{
    *a = (struct docker_address){0};
    if (init_all(a, from, e) == 0)
        return 0;
    docker_address_clear(a);
    return -1;
}
