#include "config.h"

#include "common/engine/docker_config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One second: the same average CPU as the engine's 100 ms, but short programs are not stopped in
 * the middle. */
#define CPU_PERIOD_US 1000000
/* systemd keeps limits of processor time as whole hundredths. It rounds what an engine has set up
 * to that, when it loads its units again: the limit of a container that waits would change. */
#define CPU_STEP_MILLI 10
#define SHM_BYTES      (16 * 1024 * 1024)

const struct container_network container_networks[] = {
    [NETWORK_NONE] = {"none", NULL},
    [NETWORK_PUBLIC] = {"sandcgi-public", "sgpub-"},
    [NETWORK_LAN] = {"sandcgi-lan", "sglan-"},
};

/* Is it usable as a label? */
static bool container_run_id_ok(const char *run_id)
{
    static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t len = run_id ? strlen(run_id) : 0;

    return len > 0 && len <= CONTAINER_RUN_ID_MAX && strchr(alnum, run_id[0]) &&
           strspn(run_id, rest) == len;
}

bool container_id_ok(const char *id)
{
    size_t len = id ? strlen(id) : 0;

    return len >= 12 && len <= 64 && strspn(id, "0123456789abcdef") == len;
}

static json_t *number(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static void add_ulimit(json_t *list, const char *name, uint64_t value)
{
    json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "Name", name, "Soft", number(value),
                                          "Hard", number(value)));
}

static json_t *make_ulimits(const struct engine_limits *l)
{
    json_t *list = json_array();

    add_ulimit(list, "core", 0);
    if (l->nofile)
        add_ulimit(list, "nofile", l->nofile);
    if (l->fsize_bytes)
        add_ulimit(list, "fsize", l->fsize_bytes);
    return list;
}

void container_add_cpu(json_t *to, uint64_t cpu_milli)
{
    const uint64_t most = (uint64_t)INT64_MAX / CPU_PERIOD_US;
    uint64_t milli = cpu_milli < most ? cpu_milli : most;
    uint64_t steps = milli / CPU_STEP_MILLI + (milli % CPU_STEP_MILLI > 0);

    if (cpu_milli == 0)
        return;
    json_object_set_new(to, "CpuPeriod", json_integer(CPU_PERIOD_US));
    json_object_set_new(to, "CpuQuota", number(steps * CPU_STEP_MILLI * (CPU_PERIOD_US / 1000)));
}

/* Limits that are set; those at 0 are the engine's default. */
static void add_limits(json_t *host, const struct engine_limits *l)
{
    if (l->memory_bytes) {
        json_object_set_new(host, "Memory", number(l->memory_bytes));
        json_object_set_new(host, "MemorySwap", number(l->memory_bytes));
    }
    container_add_cpu(host, l->cpu_milli);
    if (l->pids)
        json_object_set_new(host, "PidsLimit", number(l->pids));
    json_object_set_new(host, "Ulimits", make_ulimits(l));
}

/* Of the helpers: without a network Docker writes no such file. */
#define HOSTS_FILE "/hosts"

static const char *const podman_tmpfs[] = {"/run", "/var/tmp"};

static json_t *make_tmpfs(const struct engine_limits *l, const struct engine_facts *facts)
{
    /* Programs that compile to /tmp and run it are the point of a sandbox, so not noexec. */
    AUTO_FREE char *options = l->tmp_bytes
                                  ? mem_printf("rw,exec,nosuid,nodev,mode=1777,size=%" PRIu64,
                                               l->tmp_bytes)
                                  : mem_strdup("rw,exec,nosuid,nodev,mode=1777");

    json_t *tmpfs = json_pack("{s:s}", "/tmp", options);

    /* Podman puts tmpfs there that programs may fill, and that no limit of size holds. With runc
     * they have the mode of the image's directories, whatever is said here. */
    for (size_t i = 0; facts->podman && i < ARRAY_LEN(podman_tmpfs); i++)
        json_object_set_new(tmpfs, podman_tmpfs[i],
                            json_string("rw,noexec,nosuid,nodev,mode=755,size=65536,notmpcopyup"));
    return tmpfs;
}

static int add_mount(json_t *list, const char *source, const char *target, bool read_only)
{
    return json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "Type", "bind", "Source",
                                                 source, "Target", target, "ReadOnly", read_only));
}

/*
 * NULL when a path is not valid UTF-8. Not HostConfig.Binds, which make a missing directory:
 * a directory that was deleted would come back, empty and owned by root. (Podman's compatible API
 * makes it for both.)
 */
static json_t *make_mounts(const struct engine_spec *spec)
{
    json_auto_t *list = json_array();
    AUTO_FREE char *hosts = mem_printf("%s" HOSTS_FILE, spec->helpers_path);

    if (add_mount(list, spec->data_path, "/data", false) < 0)
        return NULL;
    if (spec->network == NETWORK_NONE && add_mount(list, hosts, "/etc" HOSTS_FILE, true) < 0)
        return NULL;
    if (spec->psandbox && spec->alias && add_mount(list, spec->data_path, spec->alias, false) < 0)
        return NULL;
    if (spec->psandbox && add_mount(list, spec->helpers_path, CONTAINER_HELPERS, true) < 0)
        return NULL;
    if (spec->index_path && add_mount(list, spec->index_path, "/run/index", true) < 0)
        return NULL;
    return TAKE_PTR(list);
}

static void add_network(json_t *host, const struct engine_spec *spec)
{
    json_auto_t *dns = json_array();

    json_object_set_new(host, "NetworkMode", json_string(container_networks[spec->network].name));
    for (const char *s = spec->dns ? spec->dns : ""; *s; s += strspn(s, ", ")) {
        size_t len = strcspn(s, ", ");

        json_array_append_new(dns, json_stringn(s, len));
        s += len;
    }
    if (json_array_size(dns) > 0)
        json_object_set(host, "Dns", dns);
}

static json_t *make_host(const struct engine_spec *spec, const struct engine_facts *facts)
{
    json_t *mounts = make_mounts(spec);
    json_t *host;

    if (!mounts)
        return NULL;
    host = json_pack("{s:o, s:b, s:b, s:b, s:[s], s:[s], s:s, s:i, s:o, s:{s:s, s:{}}, s:b}",
                     "Mounts", mounts, "AutoRemove", 0, "Privileged", 0, "ReadonlyRootfs", 1,
                     "CapDrop", "ALL", "SecurityOpt", "no-new-privileges", "IpcMode", "private",
                     "ShmSize", SHM_BYTES, "Tmpfs", make_tmpfs(&spec->limits, facts), "LogConfig",
                     "Type", "none", "Config",
                     /* The entry program is an init of its own. */
                     "Init", !spec->psandbox && spec->protocol == 0);

    if (!host)
        return NULL;
    add_limits(host, &spec->limits);
    if (spec->runtime && *spec->runtime)
        json_object_set_new(host, "Runtime", json_string(spec->runtime));
    add_network(host, spec);
    if (!facts->podman) /* whose own choice fits what its account may do */
        json_object_set_new(host, "CgroupnsMode", json_string("private"));
    /* Its containers' root is the account of Podman, which owns the files: that account's id has to
     * be the same inside. */
    if (facts->podman && facts->rootless)
        json_object_set_new(host, "UsernsMode", json_string("keep-id"));
    return host;
}

static json_t *make_installation(const char *language)
{
    AUTO_FREE char *installer = mem_printf("/usr/local/lib/sandbox/%s%sinstall",
                                           language ? language : "", language ? "/" : "");

    return json_pack("[s, s, s, s, s, s, s, s]", "/usr/local/bin/entry", "-C", "/tmp",
                     "/tmp/script", "/usr/local/bin/entry", "index", "/run/index/proxy", installer);
}

static json_t *make_config(const struct engine_spec *spec, const struct engine_facts *facts)
{
    AUTO_FREE char *deadline = mem_printf("%" PRId64, spec->deadline_unix);
    json_t *config = json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:{s:s, s:s, s:s, "
                               "s:s}, s:o}",
                               "Image", spec->image, "User", spec->user, "WorkingDir", "/data",
                               "Tty", 0, "OpenStdin", 1, "StdinOnce", 1, "AttachStdin", 1,
                               "AttachStdout", 1, "AttachStderr", 1, "Labels", LABEL_MANAGED,
                               "true", LABEL_INSTANCE, spec->instance, LABEL_RUN, spec->run_id,
                               LABEL_DEADLINE, deadline, "HostConfig", make_host(spec, facts));

    if (!config)
        return NULL;
    if (spec->index_path) /* the installer runs behind a proxy to the package index */
        json_object_set_new(config, "Entrypoint", make_installation(spec->language));
    /* Without it Docker runs its network hook even for NetworkMode none; Podman needs the mode. */
    json_object_set_new(config, "NetworkDisabled", json_boolean(spec->network == NETWORK_NONE));
    return config;
}

/* Plain images get their environment from the engine, the others with the program. */
static int add_environment(json_t *config, const struct engine_spec *spec)
{
    json_t *list = json_array();

    json_object_set_new(config, "Env", list);
    for (size_t i = 0; i < spec->n_env; i++) {
        if (json_array_append_new(list, json_string(spec->env[i])) < 0)
            return -1;
    }
    return 0;
}

/* Podman joins a mount's members with commas, and takes the text apart as CSV. */
static bool path_ok(const char *path)
{
    return path && path[0] == '/' && !strpbrk(path, ",\"");
}

bool container_alias_ok(const char *alias)
{
    static const char *const taken[] = {"/data", "/dev", "/proc",
                                        "/sys",  "/tmp", CONTAINER_HELPERS};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "/_-";
    size_t len = strlen(alias);

    if (len < 2 || len > CONTAINER_ALIAS_MAX || alias[0] != '/' || alias[len - 1] == '/' ||
        strspn(alias, letters) != len || strstr(alias, "//"))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        size_t n = strlen(taken[i]);

        if (strncmp(alias, taken[i], n) == 0 && (alias[n] == '\0' || alias[n] == '/'))
            return false;
    }
    return true;
}

static int check_spec(const struct engine_spec *spec, struct err *e)
{
    if (!container_run_id_ok(spec->run_id))
        return err_set(e, ERR_INVALID, "the run id cannot be part of a container's name");
    if (!spec->image || !*spec->image || !spec->user || !*spec->user || !spec->instance)
        return err_set(e, ERR_INVALID, "image, user and instance are needed");
    if (!path_ok(spec->data_path))
        return err_set(e, ERR_INVALID,
                       "the sandbox directory must be absolute, without commas and quotes");
    if (spec->index_path && !path_ok(spec->index_path))
        return err_set(e, ERR_INVALID,
                       "the index's path must be absolute, without commas and quotes");
    if (!path_ok(spec->helpers_path))
        return err_set(e, ERR_INVALID,
                       "the helpers' path must be absolute, without commas and quotes");
    if (spec->psandbox && spec->alias && !container_alias_ok(spec->alias))
        return err_set(e, ERR_INVALID, "the sandbox cannot be mounted at %s", spec->alias);
    return 0;
}

int container_body(const struct engine_spec *spec, const struct engine_facts *facts,
                   struct buf *out, struct err *e)
{
    json_auto_t *config = NULL;

    if (check_spec(spec, e) < 0)
        return -1;
    config = make_config(spec, facts);
    if (!config)
        return err_set(e, ERR_INVALID, "the container's description is not valid UTF-8");
    if (spec->psandbox) { /* nothing that the image would run by itself */
        json_object_set_new(config, "Entrypoint", json_pack("[s]", CONTAINER_HELPERS "/entry"));
        json_object_set_new(config, "Cmd", json_pack("[s]", "serve"));
        json_object_set_new(config, "Healthcheck", json_pack("{s:[s]}", "Test", "NONE"));
    } else if (spec->protocol == 0 && add_environment(config, spec) < 0) {
        return err_set(e, ERR_INVALID, "the environment is not valid UTF-8");
    }
    if (json_write(config, out) < 0)
        return err_set(e, ERR_LIMIT, "the container's description is too large");
    return 0;
}
