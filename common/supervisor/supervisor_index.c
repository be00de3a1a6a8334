#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/index/index.h"
#include "common/index/proxy.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define INSTALLED_MAX 1000 /* packages that a result names */
#define NOTES_MAX     40

static int check_packages(const struct index_ecosystem *eco, const struct run_body *body,
                          struct err *e)
{
    if (body->n_args == 0 || body->n_args > INDEX_PACKAGES_MAX)
        return err_set(e, ERR_LIMIT, "packages: from 1 to %d are installed at once",
                       INDEX_PACKAGES_MAX);
    for (size_t i = 0; i < body->n_args; i++)
        if (index_check_package(eco, body->args[i], e) < 0)
            return -1;
    return 0;
}

const char *run_index_url(const struct call *run)
{
    return run->source ? run->source->url : NULL;
}

int run_check_index(const struct supervisor *s, struct call *run, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    const struct run_request *r = &run->run.request;
    const struct run_body *body = &run->run.body;
    const struct index_ecosystem *eco = index_ecosystem_of(r->language);

    if (!r->index)
        return 0;
    if (r->network || body->code_len > 0 || body->input_len > 0 || body->n_env > 0)
        return err_set(e, ERR_INVALID, "an installation takes packages and nothing else");
    run->source = eco ? index_source_of(start->config->index, r->language) : NULL;
    if (!run->source)
        return err_set(e, ERR_DENIED,
                       "language: this server has no package index for %s (SANDBOX_INDEXES)",
                       r->language);
    if (!run->runner->install)
        return err_set(e, ERR_DENIED,
                       "language: the server's runner image for %s cannot install packages (label "
                       "sandbox.install)",
                       r->language);
    return check_packages(eco, body, e);
}

int run_open_index(const struct supervisor *s, struct call *run, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    struct index_rules rules = {.source = run->source};

    if (!run->source)
        return 0;
    rules.private_ok = start->config->index->private_ok;
    AUTO_FD int fd = index_dir_make(start->root, start->container_id, start->config->index_ca, e);
    if (fd < 0)
        return -1;
    pid_t pid = index_proxy_start(fd, &rules, e);
    if (pid < 0) {
        index_dir_remove(start->root->fd, start->container_id);
        return -1;
    }
    run->index_proxy = pid;
    return 0;
}

void run_close_index(const struct supervisor *s, struct call *run)
{
    if (run->index_proxy <= 0)
        return;
    kill(run->index_proxy, SIGKILL); /* its connections die with it */
    waitpid(run->index_proxy, NULL, 0);
    run->index_proxy = 0;
    index_dir_remove(s->base.start->root->fd, s->base.start->container_id);
}

/* Only what a result may have: the container is not trusted. */
static json_t *copy_installed(const json_t *list)
{
    json_t *copy = json_array();
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        json_t *name = json_object_get(item, "name"), *version = json_object_get(item, "version");

        if (json_is_string(name) && json_is_string(version) && i < INSTALLED_MAX)
            json_array_append_new(copy, json_pack("{s:O, s:O}", "name", name, "version", version));
    }
    return copy;
}

static json_t *copy_notes(const json_t *list)
{
    json_t *copy = json_array();
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        if (json_is_string(item) && i < NOTES_MAX)
            json_array_append(copy, item);
    }
    return copy;
}

/* The installer prints one line of JSON, {"installed": […]} or {"reason": "…"}, each with "notes";
 * what the package manager prints is on stderr. */
void run_add_installed(const struct call *run, json_t *result)
{
    const json_t *text = json_object_get(result, "stdout");
    struct err e = ERR_INIT;

    if (!run->source)
        return;
    json_auto_t *report = json_parse(json_string_value(text), json_string_length(text), 8, &e);
    json_t *reason = json_object_get(report, "reason");
    json_object_set_new(result, "installed", copy_installed(json_object_get(report, "installed")));
    json_object_set_new(result, "notes", copy_notes(json_object_get(report, "notes")));
    if (run->run.over.kind != ERR_NONE) { /* it is removed again */
        json_object_set_new(result, "installed", json_array());
        json_object_set_new(result, "reason", json_string(run->run.over.text));
    } else if (json_is_string(reason)) {
        json_object_set(result, "reason", reason);
    }
    json_object_set(result, "output", json_object_get(result, "stderr"));
    json_object_set_new(result, "stdout", json_string(""));
}
