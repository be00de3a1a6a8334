/* A local https server for the tests of fetching: openssl s_server, whose files are whole answers,
 * with a certificate that is its own authority. */
#pragma once

#include "common/base/mem.h"
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define NOT_LET "127.0.0.2"
/* A name of it that no name server knows. */
#define REBOUND "rebound.example"

static struct {
    char dir[64];
    int port;
    pid_t pid;
    char ca[80];
} server;

static inline int free_port(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    return ntohs(in.sin_port);
}

static inline bool answers(int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return connect(fd, (struct sockaddr *)&in, sizeof in) == 0;
}

static inline void serve(const char *name, const char *head, const char *body)
{
    AUTO_FREE char *path = mem_printf("%s/%s", server.dir, name);
    AUTO_FREE char *text = mem_printf("HTTP/1.0 %s\r\n\r\n%s", head, body);

    unit_write_file(path, text, strlen(text));
}

static inline void serve_redirect(const char *name, const char *to)
{
    AUTO_FREE char *head = mem_printf("302 Found\r\nLocation: %s", to);

    serve(name, head, "");
}

static inline char *url_of(const char *host, const char *name)
{
    return mem_printf("https://%s:%d/%s", host, server.port, name);
}

static inline void be_server(void)
{
    char port[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(port, sizeof port, "%d", server.port);
    if (chdir(server.dir) < 0 || !freopen("/dev/null", "r", stdin))
        _exit(1);
    execlp("openssl", "openssl", "s_server", "-quiet", "-accept", port, "-cert", "cert.pem", "-key",
           "key.pem", "-HTTP", (char *)NULL);
    _exit(1);
}

static inline int make_certificate(void)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        if (chdir(server.dir) == 0 && freopen("/dev/null", "w", stderr))
            execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                   "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                   "-addext",
                   "subjectAltName=DNS:localhost,DNS:" REBOUND ",IP:127.0.0.1,IP:" NOT_LET,
                   "-keyout", "key.pem", "-out", "cert.pem", (char *)NULL);
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static inline int start_server(void **state)
{
    (void)state;
    snprintf(server.dir, sizeof server.dir, "/tmp/sandcgi-fetch-XXXXXX");
    if (!mkdtemp(server.dir) || make_certificate() < 0)
        return -1;
    snprintf(server.ca, sizeof server.ca, "%s/cert.pem", server.dir);
    for (int i = 0; i < 2000; i++) {
        /* It has ended when another process has taken the port meanwhile. */
        if (server.pid == 0 || waitpid(server.pid, NULL, WNOHANG) == server.pid) {
            server.port = free_port();
            server.pid = fork();
            if (server.pid == 0)
                be_server();
        } else if (answers(server.port)) {
            return 0;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return -1;
}

static inline int stop_server(void **state)
{
    (void)state;
    if (server.pid > 0) { /* 0 would be everything in this process group */
        kill(server.pid, SIGKILL);
        waitpid(server.pid, NULL, 0);
    }
    unit_remove_tree(server.dir);
    return 0;
}
