/* Runner images in recorded replies, the allow-list of repositories (H-19), and which containers
 * the reaper takes (H-29, H-60). */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/engine/docker_list.h"
#include "common/rpc/json.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#define ALLOW "sandcgi-runner-*,runner-*, mcp-sandbox-runner-*"

static void read_fixture(const char *name, struct buf *out)
{
    const char *srcdir = getenv("srcdir");
    AUTO_FREE char *path = mem_printf("%s/tests/engine/fixtures/%s", srcdir ? srcdir : ".", name);
    struct err e = ERR_INIT;

    if (fdio_read_file(path, out, &e) < 0)
        fail_msg("%s", e.text);
}

static void repositories_are_matched_without_tag_and_default_registry(void **state)
{
    static const struct {
        const char *allow, *image;
        bool good;
    } cases[] = {
        {ALLOW, "sandcgi-runner-python:latest", true},
        {ALLOW, "sandcgi-runner-python", true},
        {ALLOW, "localhost/sandcgi-runner-python:latest", true},
        {ALLOW, "docker.io/library/runner-x:1", true},
        {ALLOW, "mcp-sandbox-runner-go:2", true},
        {ALLOW, "runner-x@sha256:00", true},
        {ALLOW, "evil/runner-x:1", false},
        {ALLOW, "docker.io/evil/runner-x:1", false},
        {ALLOW, "registry.test:5000/runner-x", false},
        {ALLOW, "runner", false},
        {ALLOW, "xrunner-x", false},
        {ALLOW, "python:runner-x", false},
        {ALLOW, "", false},
        {ALLOW, "<none>:<none>", false},
        {"registry.test:5000/acme/*", "registry.test:5000/acme/py:3", true},
        {"registry.test:5000/acme/py", "registry.test:5000/acme/py:3", true},
        {"registry.test:5000/acme/py", "registry.test:5000/acme/pyx:3", false},
        {"runner", "runner-x", false},
        {"*", "anything/at/all:1", true},
        {"", "runner-x", false},
        {",,", "runner-x", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (engine_image_allowed(cases[i].allow, cases[i].image) != cases[i].good)
            fail_msg("%s in %s", cases[i].image, cases[i].allow);
    }
}

static void the_newest_allowed_image_of_each_language_is_found(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);
    struct engine_runners r;
    struct err e = ERR_INIT;

    (void)state;
    read_fixture("images-docker.json", &text);
    assert_int_equal(runners_parse(text.data, text.len, ALLOW, &r, &e), 0);
    assert_int_equal(r.n, 3);
    assert_string_equal(r.items[0].language, "bash");
    assert_int_equal(r.items[0].protocol, 0);
    assert_string_equal(r.items[0].version, "");
    assert_string_equal(r.items[1].language, "python");
    assert_string_equal(r.items[1].image, "sandcgi-runner-python:latest");
    assert_string_equal(r.items[1].version, "3.11.2");
    assert_string_equal(r.items[1].libraries, "numpy=1.24.2 pandas=1.5.3");
    assert_int_equal(r.items[1].protocol, 2);
    assert_true(r.items[1].warm && !r.items[0].warm && !r.items[2].warm);
    assert_string_equal(r.items[1].preload, "numpy pandas");
    assert_string_equal(r.items[2].preload, "");
    assert_int_equal(r.items[1].created, 1700000200);
    assert_string_equal(r.items[2].language, "typescript");
    assert_string_equal(r.items[2].image, "runner-typescript:2");
    engine_runners_clear(&r);
    assert_int_equal(r.n, 0);
}

/* Whether an image with these labels can wait, and what it preloads. */
static void check_warm(const char *labels, bool warm, const char *preload)
{
    AUTO_FREE char *text = mem_printf(
        "[{\"Id\":\"i\",\"RepoTags\":[\"runner-x:1\"],\"Labels\":{"
        "\"sandbox.runner\":\"true\",\"sandbox.language\":\"x\",%s}}]",
        labels);
    struct engine_runners r;
    struct err e = ERR_INIT;

    assert_int_equal(runners_parse(text, strlen(text), "*", &r, &e), 0);
    assert_int_equal(r.n, 1);
    if (r.items[0].warm != warm || strcmp(r.items[0].preload, preload) != 0)
        fail_msg("%s", labels);
    engine_runners_clear(&r);
}

static void only_images_that_say_so_can_wait(void **state)
{
    (void)state;
    check_warm("\"sandbox.protocol\":\"2\",\"sandbox.warm\":\"true\"", true, "");
    check_warm("\"sandbox.protocol\":\"2\",\"sandbox.warm\":\"yes\"", false, "");
    check_warm("\"sandbox.warm\":\"true\",\"sandbox.preload\":\"a\"", false, "");
    check_warm("\"sandbox.protocol\":\"2\",\"sandbox.preload\":\"a\"", false, "");
    check_warm("\"sandbox.protocol\":\"2\",\"sandbox.warm\":\"true\",\"sandbox.preload\":\"a\\nb\"",
               true, "");
}

static void only_images_that_say_so_load_on_demand(void **state)
{
    static const struct {
        const char *labels;
        bool load;
    } cases[] = {{"\"sandbox.warm\":\"true\",\"sandbox.load\":\"held\"", true},
                 {"\"sandbox.load\":\"held\"", false},
                 {"\"sandbox.warm\":\"true\",\"sandbox.load\":\"true\"", false},
                 {"\"sandbox.warm\":\"true\"", false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *text = mem_printf(
            "[{\"Id\":\"i\",\"RepoTags\":[\"runner-x:1\"],\"Labels\":{\"sandbox.runner\":"
            "\"true\",\"sandbox.language\":\"x\",\"sandbox.protocol\":\"2\",%s}}]",
            cases[i].labels);
        struct engine_runners r;
        struct err e = ERR_INIT;

        assert_int_equal(runners_parse(text, strlen(text), "*", &r, &e), 0);
        assert_int_equal(r.items[0].load, cases[i].load);
        engine_runners_clear(&r);
    }
}

#define WORKBENCH                                                                                  \
    "\"sandbox.language\":\"python  bash r\",\"sandbox.warm\":\"true\","                           \
    "\"sandbox.preload\":\"numpy\",\"sandbox.load\":\"held\",\"sandbox.version\":\"0\","           \
    "\"sandbox.version.python\":\"3.13\",\"sandbox.version.bash\":\"5.2\","                        \
    "\"sandbox.libraries.python\":\"numpy=2.2\""

/* One image with these labels, then an older one with bash. */
static void read_workbench(const char *labels, struct engine_runners *out)
{
    AUTO_FREE char *text = mem_printf(
        "[{\"Id\":\"w\",\"Created\":2,\"RepoTags\":[\"runner-w:1\"],\"Labels\":"
        "{\"sandbox.runner\":\"true\",%s}},"
        "{\"Id\":\"b\",\"Created\":1,\"RepoTags\":[\"runner-b:1\"],\"Labels\":"
        "{\"sandbox.runner\":\"true\",\"sandbox.language\":\"bash\"}}]",
        labels);
    struct err e = ERR_INIT;

    assert_int_equal(runners_parse(text, strlen(text), "*", out, &e), 0);
}

static void an_image_of_several_languages_is_one_runner_for_each(void **state)
{
    struct engine_runners r;

    (void)state;
    read_workbench(WORKBENCH ",\"sandbox.protocol\":\"3\",\"sandbox.install\":\"python r\"", &r);
    assert_int_equal(r.n, 3);
    for (size_t i = 0; i < r.n; i++) {
        assert_string_equal(r.items[i].image, "runner-w:1");
        assert_int_equal(r.items[i].protocol, 3);
        assert_true(r.items[i].warm);
    }
    assert_string_equal(r.items[0].language, "bash");
    assert_string_equal(r.items[0].version, "5.2");
    assert_string_equal(r.items[0].libraries, "");
    assert_string_equal(r.items[0].preload, "");
    assert_true(!r.items[0].load && !r.items[0].install);
    assert_string_equal(r.items[1].language, "python");
    assert_string_equal(r.items[1].version, "3.13");
    assert_string_equal(r.items[1].libraries, "numpy=2.2");
    assert_string_equal(r.items[1].preload, "numpy");
    assert_true(r.items[1].load && r.items[1].install);
    assert_string_equal(r.items[2].language, "r");
    assert_string_equal(r.items[2].version, "");
    assert_true(r.items[2].install);
    engine_runners_clear(&r);
}

static void an_image_that_is_not_told_the_language_has_one(void **state)
{
    struct engine_runners r;

    (void)state;
    read_workbench(WORKBENCH ",\"sandbox.protocol\":\"2\"", &r);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.items[0].image, "runner-b:1");
    engine_runners_clear(&r);
}

static void an_installer_is_for_all_languages_or_those_it_names(void **state)
{
    static const struct {
        const char *install;
        bool first, second;
    } cases[] = {{"true", true, true},
                 {"p q", true, true},
                 {"q", false, true},
                 {"pq", false, false},
                 {"", false, false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *labels = mem_printf(
            "\"sandbox.language\":\"p q\",\"sandbox.protocol\":\"3\","
            "\"sandbox.install\":\"%s\"",
            cases[i].install);
        struct engine_runners r;

        read_workbench(labels, &r);
        assert_int_equal(engine_runners_find(&r, "p")->install, cases[i].first);
        assert_int_equal(engine_runners_find(&r, "q")->install, cases[i].second);
        engine_runners_clear(&r);
    }
}

static void podmans_list_reads_the_same(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);
    struct engine_runners r;
    struct err e = ERR_INIT;

    (void)state;
    read_fixture("images-podman.json", &text);
    assert_int_equal(runners_parse(text.data, text.len, ALLOW, &r, &e), 0);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.items[0].image, "localhost/sandcgi-runner-python:latest");
    engine_runners_clear(&r);
}

static void strange_replies_are_errors_or_empty(void **state)
{
    static const char *const broken[] = {"", "{}", "null", "[", "[}"};
    static const char *const empty[] = {"[]", "[null,1,\"x\",[],{}]",
                                        "[{\"Labels\":[],\"RepoTags\":{}}]"};
    struct engine_runners r;

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct err e = ERR_INIT;

        assert_int_equal(runners_parse(broken[i], strlen(broken[i]), "*", &r, &e), -1);
    }
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        struct err e = ERR_INIT;

        assert_int_equal(runners_parse(empty[i], strlen(empty[i]), "*", &r, &e), 0);
        assert_int_equal(r.n, 0);
        engine_runners_clear(&r);
    }
}

static void there_are_at_most_so_many_languages(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);
    struct engine_runners r;
    struct err e = ERR_INIT;

    (void)state;
    buf_add_char(&text, '[');
    for (int i = 0; i < 100; i++)
        buf_addf(&text,
                 "%s{\"Id\":\"i\",\"Created\":1,\"RepoTags\":[\"runner-%d:1\"],\"Labels\":"
                 "{\"sandbox.runner\":\"true\",\"sandbox.language\":\"l%d\"}}",
                 i ? "," : "", i, i);
    buf_add_char(&text, ']');
    assert_int_equal(runners_parse(text.data, text.len, "runner-*", &r, &e), 0);
    assert_int_equal(r.n, RUNNERS_MAX);
    engine_runners_clear(&r);
}

/* "run id/deadline" of a container with these labels; "-" when it is not instance's. */
static const char *read_labels(const char *labels, const char *instance)
{
    static char text[64];
    AUTO_FREE char *json = mem_printf("{\"Labels\":%s}", labels);
    struct err e = ERR_INIT;
    json_auto_t *container = json_parse(json, strlen(json), 8, &e);
    const char *run_id;
    int64_t deadline;

    assert_non_null(container);
    if (!reap_read(container, instance, &run_id, &deadline))
        return "-";
    snprintf(text, sizeof text, "%s/%lld", run_id, (long long)deadline);
    return text;
}

#define LABELS(instance, run, deadline)                                                            \
    "{\"sandbox.managed\":\"true\",\"sandbox.instance\":\"" instance "\",\"sandbox.run\":\"" run   \
    "\",\"sandbox.deadline\":\"" deadline "\"}"

static void only_our_own_containers_are_looked_at(void **state)
{
    (void)state;
    assert_string_equal(read_labels(LABELS("a", "r1", "100"), "a"), "r1/100");
    assert_string_equal(read_labels(LABELS("a", "r1", "junk"), "a"), "r1/0");
    assert_string_equal(read_labels(LABELS("a", "r1", "-1"), "a"), "r1/0");
    assert_string_equal(read_labels(LABELS("ab", "r1", "1"), "a"), "-");
    assert_string_equal(read_labels(LABELS("", "r1", "1"), "a"), "-");
    assert_string_equal(
        read_labels("{\"sandbox.managed\":\"true\",\"sandbox.instance\":\"a\"}", "a"), "/0");
    assert_string_equal(read_labels("{\"sandbox.instance\":\"a\"}", "a"), "-");
    assert_string_equal(read_labels("{}", "a"), "-");
    assert_string_equal(read_labels("null", "a"), "-");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(repositories_are_matched_without_tag_and_default_registry),
    cmocka_unit_test(the_newest_allowed_image_of_each_language_is_found),
    cmocka_unit_test(only_images_that_say_so_can_wait),
    cmocka_unit_test(only_images_that_say_so_load_on_demand),
    cmocka_unit_test(an_image_of_several_languages_is_one_runner_for_each),
    cmocka_unit_test(an_image_that_is_not_told_the_language_has_one),
    cmocka_unit_test(an_installer_is_for_all_languages_or_those_it_names),
    cmocka_unit_test(podmans_list_reads_the_same),
    cmocka_unit_test(strange_replies_are_errors_or_empty),
    cmocka_unit_test(there_are_at_most_so_many_languages),
    cmocka_unit_test(only_our_own_containers_are_looked_at),
};
UNIT_TESTS(tests)
