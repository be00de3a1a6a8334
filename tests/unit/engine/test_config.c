/* The shape of every container, held against golden files: a change there is a change of what
 * contains hostile code. */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/engine/docker_config.h"
#include "common/rpc/json.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static const char *const env[] = {"FILE_BASE_URL=https://localhost:8443/files/ab/", "A=b"};

static const struct engine_facts docker = {.version = "/v1.41"};

static const struct engine_spec usual = {
    .image = "sandcgi-runner-python:latest",
    .protocol = 2,
    .data_path = "/srv/sandboxes/00ff",
    .helpers_path = "/srv/sandboxes/.helpers/0123456789abcdef",
    .user = "1000:1000",
    .instance = "test",
    .run_id = "r1",
    .deadline_unix = 1700000000,
    .runtime = "",
    .network = NETWORK_NONE,
    .limits = {.cpu_milli = 500,
               .memory_bytes = 268435456,
               .pids = 128,
               .tmp_bytes = 67108864,
               .nofile = 1024,
               .fsize_bytes = 1073741824},
    .env = env,
    .n_env = 2,
};

static json_t *read_golden(const char *name)
{
    const char *srcdir = getenv("srcdir");
    AUTO_FREE char *path = mem_printf("%s/tests/engine/fixtures/%s.json", srcdir ? srcdir : ".",
                                      name);
    AUTO_BUF struct buf text = BUF_INIT(65536);
    struct err e = ERR_INIT;
    json_t *value;

    if (fdio_read_file(path, &text, &e) < 0)
        fail_msg("%s", e.text);
    value = json_parse(buf_str(&text), text.len, JSON_MAX_DEPTH, &e);
    if (!value)
        fail_msg("%s: %s", path, e.text);
    return value;
}

static json_t *make(const struct engine_spec *spec)
{
    AUTO_BUF struct buf body = BUF_INIT(65536);
    struct err e = ERR_INIT;

    if (container_body(spec, &docker, &body, &e) < 0)
        fail_msg("%s", e.text);
    return json_parse(body.data, body.len, JSON_MAX_DEPTH, &e);
}

static void check_golden(const struct engine_spec *spec, const char *name)
{
    json_auto_t *want = read_golden(name);
    json_auto_t *got = make(spec);

    if (!json_equal(want, got)) {
        AUTO_FREE char *text = json_dumps(got, JSON_INDENT(2) | JSON_SORT_KEYS);

        fail_msg("not as in fixtures/%s.json:\n%s", name, text);
    }
}

static void a_usual_run_has_the_golden_shape(void **state)
{
    (void)state;
    check_golden(&usual, "container-usual");
}

static void a_plain_image_with_network_has_the_golden_shape(void **state)
{
    struct engine_spec spec = usual;

    (void)state;
    spec.protocol = 0;
    spec.network = NETWORK_PUBLIC;
    spec.dns = "1.1.1.1, 2606:4700:4700::1111";
    spec.runtime = "crun";
    check_golden(&spec, "container-plain-network");
}

static void an_installation_has_the_golden_shape(void **state)
{
    struct engine_spec spec = usual;
    struct err e = ERR_INIT;
    AUTO_BUF struct buf body = BUF_INIT(65536);

    (void)state;
    spec.index_path = "/srv/sandboxes/.index/r1";
    check_golden(&spec, "container-install");
    spec.language = "lua";
    json_auto_t *body_of_many = make(&spec);
    const json_t *line = json_object_get(body_of_many, "Entrypoint");
    assert_string_equal(json_string_value(json_array_get(line, json_array_size(line) - 1)),
                        "/usr/local/lib/sandbox/lua/install");
    spec.index_path = "/srv,/x";
    assert_int_equal(container_body(&spec, &docker, &body, &e), -1);
    assert_int_equal(e.kind, ERR_INVALID);
}

static void a_persistent_sandbox_has_the_golden_shape(void **state)
{
    struct engine_spec spec = usual;

    (void)state;
    spec.protocol = 0;
    spec.psandbox = true;
    spec.alias = "/app";
    check_golden(&spec, "container-psandbox");
}

static void the_sandbox_is_mounted_at_plain_places_only(void **state)
{
    static const char *const good[] = {"/app", "/workspace", "/home/user", "/mnt/data-1",
                                       "/database"};
    static const char *const bad[] = {"",           "/",      "app",      "/app/",  "/a:b",
                                      "/a//b",      "/../x",  "/a b",     "/data",  "/data/x",
                                      "/proc",      "/sys/x", "/dev/shm", "/tmp/x", "/sandbox",
                                      "/a\xc3\xa4", "/./x"};
    AUTO_BUF struct buf body = BUF_INIT(65536);
    struct engine_spec spec = usual;
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(container_alias_ok(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(container_alias_ok(bad[i]));
    spec.psandbox = true;
    spec.helpers_path = NULL;
    assert_int_equal(container_body(&spec, &docker, &body, &e), -1);
    spec.helpers_path = "/with,comma";
    assert_int_equal(container_body(&spec, &docker, &body, &e), -1);
    spec.helpers_path = "/tools";
    assert_int_equal(container_body(&spec, &docker, &body, &e), 0);
    spec.alias = "/proc";
    assert_int_equal(container_body(&spec, &docker, &body, &e), -1);
    assert_int_equal(e.kind, ERR_INVALID);
}

static json_int_t host_number(const json_t *body, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(body, "HostConfig"), name));
}

static void odd_limits_stay_within_what_engines_accept(void **state)
{
    struct engine_spec spec = usual;
    json_auto_t *tiny = NULL;
    json_auto_t *odd = NULL;
    json_auto_t *huge = NULL;
    json_auto_t *none = NULL;

    (void)state;
    spec.limits.cpu_milli = 1;
    tiny = make(&spec);
    assert_int_equal(host_number(tiny, "CpuQuota"), 10000);
    spec.limits.cpu_milli = 333;
    odd = make(&spec);
    assert_int_equal(host_number(odd, "CpuQuota"), 340000); /* which systemd can keep */
    spec.limits.cpu_milli = UINT64_MAX;
    spec.limits.memory_bytes = UINT64_MAX;
    huge = make(&spec);
    assert_true(host_number(huge, "CpuQuota") > 0);
    assert_true(host_number(huge, "Memory") == INT64_MAX);
    spec.limits = (struct engine_limits){0};
    none = make(&spec);
    assert_null(json_object_get(json_object_get(none, "HostConfig"), "Memory"));
    assert_null(json_object_get(json_object_get(none, "HostConfig"), "CpuQuota"));
}

static void specs_that_would_break_the_shape_are_refused(void **state)
{
    static const char *const paths[] = {"", "relative", "/with,comma", "/with\"quote", NULL};
    static const char *const ids[] = {"", "a/b", "../x", "a b", "-x", "a?b", NULL};
    struct engine_spec spec = usual;
    AUTO_BUF struct buf body = BUF_INIT(65536);
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        spec.data_path = paths[i];
        assert_int_equal(container_body(&spec, &docker, &body, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
    }
    spec = usual;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        spec.run_id = ids[i];
        assert_int_equal(container_body(&spec, &docker, &body, &e), -1);
    }
    spec = usual;
    spec.image = "";
    assert_int_equal(container_body(&spec, &docker, &body, &e), -1);
    spec = usual;
    spec.data_path = "/bad\xff";
    assert_int_equal(container_body(&spec, &docker, &body, &e), -1);
}

/* The account of a rootless Podman owns the files: its id is the same inside. Docker does not know
 * that. What Podman would add for programs to fill is closed. */
static void podman_gets_settings_of_its_own(void **state)
{
    static const struct {
        struct engine_facts facts;
        const char *mode;
        size_t n_tmpfs;
    } cases[] = {
        {{"/v1.41", false, false}, "none", 1},
        {{"/v1.41", true, false}, "none", 3},
        {{"/v1.41", true, true}, "keep-id", 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf body = BUF_INIT(65536);
        struct err e = ERR_INIT;

        assert_int_equal(container_body(&usual, &cases[i].facts, &body, &e), 0);
        json_auto_t *config = json_parse(body.data, body.len, JSON_MAX_DEPTH, &e);
        const json_t *host = json_object_get(config, "HostConfig");
        const char *mode = json_get_string(host, "UsernsMode");

        assert_string_equal(mode ? mode : "none", cases[i].mode);
        assert_int_equal(json_object_get(host, "CgroupnsMode") == NULL, cases[i].facts.podman);
        assert_int_equal(json_object_size(json_object_get(host, "Tmpfs")), cases[i].n_tmpfs);
    }
}

static void ids_from_the_engine_are_checked(void **state)
{
    (void)state;
    assert_true(container_id_ok("0123456789abcdef"));
    assert_false(container_id_ok("0123456789a"));
    assert_false(container_id_ok("0123456789ABCDEF"));
    assert_false(container_id_ok("0123456789ab/../x"));
    assert_false(container_id_ok(NULL));
    assert_false(
        container_id_ok("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_usual_run_has_the_golden_shape),
    cmocka_unit_test(a_plain_image_with_network_has_the_golden_shape),
    cmocka_unit_test(an_installation_has_the_golden_shape),
    cmocka_unit_test(a_persistent_sandbox_has_the_golden_shape),
    cmocka_unit_test(the_sandbox_is_mounted_at_plain_places_only),
    cmocka_unit_test(odd_limits_stay_within_what_engines_accept),
    cmocka_unit_test(specs_that_would_break_the_shape_are_refused),
    cmocka_unit_test(podman_gets_settings_of_its_own),
    cmocka_unit_test(ids_from_the_engine_are_checked),
};
UNIT_TESTS(tests)
