#include "config.h"

#include "fcgi/nodes/swarm.h"

#include "common/base/mem.h"
#include "common/engine/docker_http.h"
#include "common/rpc/json.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (16u * 1024 * 1024)
#define ANSWER_MS  5000

int swarm_check(const struct nodes_place *place, struct err *e)
{
    return place->service ? 0 : err_set(e, ERR_INVALID, "--from swarm needs --service");
}

/* ---- what the answers say ---- */

static const json_t *find_service(const json_t *services, const char *name)
{
    const json_t *service;
    size_t i;

    json_array_foreach(services, i, service)
    { /* the engine's filter takes what begins like it, too */
        const char *found = json_get_string(json_object_get(service, "Spec"), "Name");
        if (found && strcmp(found, name) == 0)
            return service;
    }
    return NULL;
}

/* The one that nginx has on each machine (mode=host); 0: none. */
static unsigned published_port(const json_t *service)
{
    const json_t *ports = json_object_get(json_object_get(service, "Endpoint"), "Ports"), *port;
    size_t i;

    json_array_foreach(ports, i, port)
    {
        const char *mode = json_get_string(port, "PublishMode");
        json_int_t number = json_get_integer(port, "PublishedPort", 0);
        if (mode && strcmp(mode, "host") == 0 && number > 0 && number <= 65535)
            return (unsigned)number;
    }
    return 0;
}

/* A task that is to run on the machine, or NULL; one that runs comes first. */
static const json_t *find_task(const json_t *tasks, const char *machine)
{
    const json_t *task, *waiting = NULL;
    size_t i;

    json_array_foreach(tasks, i, task)
    {
        const char *on = json_get_string(task, "NodeID");
        const char *wanted = json_get_string(task, "DesiredState");
        const char *state = json_get_string(json_object_get(task, "Status"), "State");
        if (!on || strcmp(on, machine) != 0 || !wanted || strcmp(wanted, "shutdown") == 0 ||
            strcmp(wanted, "remove") == 0)
            continue;
        if (state && strcmp(state, "running") == 0)
            return task;
        waiting = task;
    }
    return waiting;
}

/* True: it is one of the nodes, with *out. */
static bool state_of(const json_t *machine, const json_t *tasks, enum node_state *out)
{
    const char *id = json_get_string(machine, "ID");
    const char *wish = json_get_string(json_object_get(machine, "Spec"), "Availability");
    const char *state = json_get_string(json_object_get(machine, "Status"), "State");
    const json_t *task = id ? find_task(tasks, id) : NULL;
    const bool up = state && strcmp(state, "ready") == 0;

    *out = NODE_ABSENT;
    if (wish && strcmp(wish, "drain") == 0)
        *out = NODE_LEAVING;
    else if (up && task) {
        const char *now = json_get_string(json_object_get(task, "Status"), "State");
        *out = now && strcmp(now, "running") == 0 ? NODE_READY : NODE_ABSENT;
    }
    /* On a machine that is down, the service is to run nowhere. */
    return *out == NODE_LEAVING || task || !up;
}

/* The address at which the others reach it; caller frees. A manager may not know its own here. */
static char *address_of(const json_t *machine)
{
    const char *address = json_get_string(json_object_get(machine, "Status"), "Addr");
    const char *manager = json_get_string(json_object_get(machine, "ManagerStatus"), "Addr");

    if ((!address || !*address || strcmp(address, "0.0.0.0") == 0 ||
         strcmp(address, "127.0.0.1") == 0) &&
        manager && strrchr(manager, ':'))
        return mem_strndup(manager, (size_t)(strrchr(manager, ':') - manager));
    if (address && strchr(address, ':'))
        return mem_printf("[%s]", address);
    return mem_strdup(address ? address : "");
}

static int add_machine(const json_t *machine, const json_t *tasks, unsigned port, struct nodes *out,
                       struct err *e)
{
    const char *host = json_get_string(json_object_get(machine, "Description"), "Hostname");
    char name[NODE_NAME_MAX + 1];
    enum node_state state;

    if (!state_of(machine, tasks, &state))
        return 0;
    if (!host)
        return err_set(e, ERR_PROTOCOL, "the engine names a machine without its name");
    AUTO_FREE char *address = address_of(machine);
    if (node_name_make(host, name, e) < 0 || nodes_add(out, name, address, port, state, e) < 0)
        return err_wrap(e, "machine %.64s", host);
    return 0;
}

int swarm_read(const json_t *services, const json_t *machines, const json_t *tasks,
               const struct nodes_place *place, struct nodes *out, struct err *e)
{
    const json_t *service = find_service(services, place->service), *machine;
    unsigned port = place->port;
    size_t i;

    if (!json_is_array(services) || !json_is_array(machines) || !json_is_array(tasks))
        return err_set(e, ERR_PROTOCOL, "the engine's answer is not a list");
    if (!service)
        return err_set(e, ERR_NOT_FOUND, "the swarm has no service %s", place->service);
    if (!port && !(port = published_port(service)))
        return err_set(
            e, ERR_NOT_FOUND,
            "the service %s publishes no port in mode host: give it one, or name it with "
            "--port",
            place->service);
    json_array_foreach(machines, i,
                       machine) if (add_machine(machine, tasks, port, out, e) < 0) return -1;
    return 0;
}

/* ---- asking ---- */

static json_t *ask(struct docker_http *h, const char *path, const char *filter, struct err *e)
{
    AUTO_BUF struct buf answer = BUF_INIT(ANSWER_MAX), url = BUF_INIT(4096);

    buf_add_str(&url, path);
    if (filter) {
        buf_add_str(&url, "?filters=");
        docker_http_escape(&url, filter);
    }
    int status = docker_http_call(h, "GET", buf_str(&url), NULL, ANSWER_MS, &answer, e);
    if (docker_http_check(status, answer.data, answer.len, e) < 0) {
        err_wrap(e, "%s", path);
        return NULL;
    }
    json_t *value = json_parse(buf_str(&answer), answer.len, JSON_MAX_DEPTH, e);
    if (!value)
        err_wrap(e, "%s", path);
    return value;
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

static int ask_all(struct docker_http *h, const struct nodes_place *place, struct nodes *out,
                   struct err *e)
{
    json_auto_t *one = json_pack("{s:[s]}", "name", place->service);
    json_auto_t *of = json_pack("{s:[s],s:[s,s]}", "service", place->service, "desired-state",
                                "running", "ready");
    AUTO_BUF struct buf by_name = BUF_INIT(1024), by_service = BUF_INIT(1024);

    if (!one || !of || json_write(one, &by_name) < 0 || json_write(of, &by_service) < 0)
        return err_set(e, ERR_INVALID, "--service is not a service's name");
    json_auto_t *services = ask(h, "/services", buf_str(&by_name), e);
    json_auto_t *machines = services ? ask(h, "/nodes", NULL, e) : NULL;
    json_auto_t *tasks = machines ? ask(h, "/tasks", buf_str(&by_service), e) : NULL;

    return tasks ? swarm_read(services, machines, tasks, place, out, e) : -1;
}

int swarm_look(const struct nodes_place *place, struct nodes *out, struct err *e)
{
    const char *verify = environment("DOCKER_TLS_VERIFY");
    const struct engine_address address = {.host = environment("DOCKER_HOST"),
                                           .tls_verify = *verify && strcmp(verify, "0") != 0,
                                           .cert_path = environment("DOCKER_CERT_PATH")};
    struct docker_http *h = docker_http_new(&address, e);
    int rc = h ? ask_all(h, place, out, e) : -1;

    docker_http_free(h);
    return rc;
}
