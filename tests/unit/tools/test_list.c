/* What the tools say about themselves: tools/list and list_runners, and how they follow the
 * runners. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/tools_app.h"
#include "tests/fakes/schema.h"
#include "tests/unit/tools/tools_fixture.h"
#include <string.h>
#include <time.h>

static const json_t *property(const json_t *row, const char *name)
{
    return json_object_get(json_object_get(json_object_get(row, "inputSchema"), "properties"),
                           name);
}

#define CORE_MAX                                                                                   \
    7700 /* bytes of the core tools' rows; with the instructions 2,000 tokens (bytes / 4) */
#define RUN_MAX   2300 /* of run_code's */
#define SHOWN_MAX 8    /* arguments of a core tool */

/* clang-format off */
static const char *const core_names[] = {
    "run_code",
    "get_run",
    "cancel_run",
    "list_files",
    "read_file",
    "write_file",
    "upload_file",
    "create_upload",
    "install_package",
    "list_runners",
};
/* clang-format on */

static const struct mcp_tool *tool_named(const char *name)
{
    size_t n;
    const struct mcp_tool *const *tools = tools_all(&n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(tools[i]->name, name) == 0)
            return tools[i];
    fail_msg("no tool %s", name);
    return NULL;
}

static bool offers(int set, const char *name)
{
    return toolset_offers(set, tool_named(name), &world.app, false);
}

static void the_core_comes_first_in_a_fixed_order_and_is_in_every_set(void **state)
{
    size_t n, n_core = 0;
    const struct mcp_tool *const *tools = tools_all(&n);

    (void)state;
    world.app.packages = true;
    for (int set = 0; set <= TOOLSET_ALL; set++)
        for (size_t i = 0; i < ARRAY_LEN(core_names); i++) {
            assert_string_equal(tools[i]->name, core_names[i]);
            assert_true(toolset_offers(set, tools[i], &world.app, false));
        }
    for (size_t i = 0; i < n; i++)
        n_core += toolset_offers(TOOLSET_CORE, tools[i], &world.app, false);
    assert_int_equal(n_core, ARRAY_LEN(core_names));
}

static void other_tools_are_in_their_sets_only(void **state)
{
    static const struct {
        const char *name;
        int set;
    } cases[] = {{"move_file", TOOLSET_FILES},
                 {"download_archive", TOOLSET_TRANSFER},
                 {"exec", TOOLSET_SANDBOXES},
                 {"delete_conversation", TOOLSET_ADMIN}};

    (void)state;
    world.app.limits.persistent = (struct psandbox_settings){.tenant_max = 1, .server_max = 1};
    for (int set = 0; set <= TOOLSET_ALL; set++)
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
            assert_int_equal(offers(set, cases[i].name), (set & cases[i].set) != 0);
    assert_false(offers(TOOLSET_ALL, "copy_project"));
    assert_true(toolset_offers(TOOLSET_ALL, tool_named("copy_project"), &world.app, true));
    assert_false(toolset_offers(TOOLSET_ALL, tool_named("create_upload"), &world.app, true));
}

static void what_the_settings_switch_off_is_not_offered(void **state)
{
    (void)state;
    assert_false(offers(TOOLSET_ALL, "install_package"));
    assert_false(offers(TOOLSET_ALL, "import_url"));
    assert_false(offers(TOOLSET_ALL, "create_sandbox"));
    world.app.packages = true;
    world.app.limits.import = true;
    world.app.limits.persistent = (struct psandbox_settings){.tenant_max = 1, .server_max = 1};
    assert_true(offers(TOOLSET_ALL, "install_package"));
    assert_true(offers(TOOLSET_ALL, "import_url"));
    assert_true(offers(TOOLSET_ALL, "create_sandbox"));
}

static void an_absent_tool_says_where_it_is(void **state)
{
    AUTO_FREE char *elsewhere = tools_absent(&world.app, "move_file", false, SCOPE_ALL);
    AUTO_FREE char *off = tools_absent(&world.app, "import_url", false, SCOPE_ALL);

    (void)state;
    assert_non_null(strstr(elsewhere, "toolset \"files\""));
    assert_non_null(strstr(elsewhere, "/mcp/all"));
    assert_string_equal(off, "the tool import_url is switched off by the settings of this server");
    assert_null(tools_absent(&world.app, "nonsense", false, SCOPE_ALL));
    AUTO_FREE char *narrow = tools_absent(&world.app, "import_url", false, SCOPE_RUN);
    assert_non_null(strstr(narrow, "insufficient scope"));
    assert_non_null(strstr(narrow, "needs the scope files,network,"));
}

static void a_prefix_stands_in_front_of_every_name_and_may_be_left_out(void **state)
{
    (void)state;
    world.server.tool_prefix = "sandbox_";
    json_auto_t *row = tools_world_row(&world, "sandbox_list_runners");
    assert_non_null(row);
    assert_null(tools_world_row(&world, "list_runners"));
    json_auto_t *with = tools_world_call(&world, "sandbox_list_runners", "{}");
    json_auto_t *without = tools_world_call(&world, "list_runners", "{}");
    assert_true(json_is_false(json_object_get(with, "isError")));
    assert_true(json_equal(with, without));
}

/* An image with as many libraries as the largest of ours. */
static void set_usual_runners(void)
{
    fake_broker_set_runners(
        "[{\"language\":\"bash\",\"image\":\"i\",\"version\":\"5.2.15\",\"libraries\":["
        "{\"name\":\"curl\",\"version\":\"7.88.1\"},{\"name\":\"jq\",\"version\":\"1.6\"},"
        "{\"name\":\"gawk\"},{\"name\":\"sed\"},{\"name\":\"grep\"},{\"name\":\"bc\"},"
        "{\"name\":\"file\"},{\"name\":\"diff\"},{\"name\":\"patch\"},{\"name\":\"xxd\"},"
        "{\"name\":\"tar\"},{\"name\":\"gzip\"},{\"name\":\"bzip2\"},{\"name\":\"xz\"},"
        "{\"name\":\"zip\"},{\"name\":\"unzip\"}]},"
        "{\"language\":\"python\",\"image\":\"i\",\"version\":\"3\",\"libraries\":["
        "{\"name\":\"numpy\"},{\"name\":\"pandas\"},{\"name\":\"scipy\"},{\"name\":\"matplotlib\"},"
        "{\"name\":\"seaborn\"},{\"name\":\"requests\"},{\"name\":\"psycopg2\"},"
        "{\"name\":\"openpyxl\"},{\"name\":\"reportlab\"},{\"name\":\"cairosvg\"},"
        "{\"name\":\"PIL\"},{\"name\":\"lxml\"},{\"name\":\"bs4\"},{\"name\":\"sympy\"}]},"
        "{\"language\":\"typescript\",\"image\":\"i\",\"version\":\"1.4.5\",\"libraries\":["
        "{\"name\":\"postgres\"},{\"name\":\"pg\"},{\"name\":\"csv-parser\"},"
        "{\"name\":\"papaparse\"}]}]");
}

static void everything_on(void)
{
    world.app.packages = true;
    world.app.limits.background_max = 1;
    world.app.limits.persistent = (struct psandbox_settings){.tenant_max = 1, .server_max = 1};
}

static void the_core_is_short(void **state)
{
    size_t sum = 0;

    (void)state;
    set_usual_runners();
    everything_on();
    for (size_t i = 0; i < ARRAY_LEN(core_names); i++) {
        json_auto_t *row = tools_world_row(&world, core_names[i]);
        const json_t *shown = json_object_get(json_object_get(row, "inputSchema"), "properties");

        json_object_del(row, "outputSchema");
        AUTO_FREE char *text = json_dumps(row, JSON_COMPACT);
        sum += strlen(text);
        assert_true(json_object_size(shown) <= SHOWN_MAX);
        if (i == 0)
            assert_true(strlen(text) <= RUN_MAX);
    }
    assert_true(sum <= CORE_MAX);
}

static void run_code_names_languages_and_libraries(void **state)
{
    json_auto_t *row = tools_world_row(&world, "run_code");
    const char *description = json_get_string(row, "description");
    AUTO_FREE char *languages = json_dumps(json_object_get(property(row, "language"), "enum"),
                                           JSON_COMPACT);

    (void)state;
    assert_non_null(strstr(description, "\nLibraries:\n- bash (5.2, no sudo, no apt)\n"
                                        "- python (3.11): numpy 1.24, pandas 1.5"));
    assert_string_equal(languages, "[\"bash\",\"python\"]");
}

static void many_libraries_are_cut_short(void **state)
{
    (void)state;
    set_usual_runners();
    json_auto_t *row = tools_world_row(&world, "run_code");
    assert_non_null(strstr(json_get_string(row, "description"), "patch, xxd, tar, …\n"));
}

/* Each sentence is that of the settings. */
static void run_code_states_what_holds(void **state)
{
    static const struct {
        uint64_t wait_ms, memory;
        enum network_tier network;
        const char *said[3], *not_said;
    } cases[] = {
        {50000,
         1 << 30,
         NETWORK_PUBLIC,
         {"300 s, 1 GB memory, 0.5 CPU, 64 MB in /tmp", "more than 50 s goes on", "/data"},
         "etwork"}, /* its argument says it, to those who have it */
        {0, 0, NETWORK_NONE, {"Limits: 300 s.", "No network.", "/data"}, "goes on"},
        {300000, 1536 << 20, NETWORK_LAN, {"1.5 GB memory", "/tmp", "0.5 CPU"}, "goes on"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct broker_limits *l = &world.app.limits;
        *l = (struct broker_limits){.timeout_ms = 300000,
                                    .timeout_max_ms = 300000,
                                    .wait_ms = cases[i].wait_ms,
                                    .run.memory = cases[i].memory,
                                    .run.cpu_milli = 500,
                                    .run.tmp = 64 << 20,
                                    .network = cases[i].network};
        AUTO_FREE char *said = tool_run_code.describe(&world.app);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].said); k++)
            if (!strstr(said, cases[i].said[k]))
                fail_msg("'%s' is not in %s", cases[i].said[k], said);
        assert_null(strstr(said, cases[i].not_said));
    }
}

static void run_code_states_its_arguments_and_limits(void **state)
{
    static const char *const shown[] = {"language", "code",       "conversationId", "session",
                                        "network",  "background", "timeoutMs",      "stdin"};
    static const char *const others[] = {"waitMs", "environment", "args"};

    (void)state;
    everything_on();
    json_auto_t *row = tools_world_row(&world, "run_code");
    const json_t *schema = json_object_get(row, "inputSchema");
    AUTO_FREE char *required = json_dumps(json_object_get(schema, "required"), JSON_COMPACT);

    assert_string_equal(required, "[\"language\",\"code\"]");
    /* What is not shown is taken all the same. */
    assert_null(json_object_get(schema, "additionalProperties"));
    assert_int_equal(json_get_integer(property(row, "timeoutMs"), "maximum", 0), 300000);
    assert_int_equal(json_get_integer(property(row, "timeoutMs"), "default", 0), 30000);
    for (size_t i = 0; i < ARRAY_LEN(shown); i++)
        assert_non_null(property(row, shown[i]));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_null(property(row, others[i]));
}

static void no_network_is_told_to_those_who_get_none(void **state)
{
    static const struct {
        const char *network; /* as the web server says it */
        bool shown;
    } cases[] = {
        {NULL, true}, {"none", false}, {"public", true}, {"nonsense", false}, {"lan", true}};

    (void)state;
    everything_on();
    for (int turn = 0; turn < 2; turn++) /* then all are kept */
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            world.network = cases[i].network;
            json_auto_t *run = tools_world_row(&world, "run_code");
            json_auto_t *sandbox = tools_world_row(&world, "create_sandbox");
            assert_int_equal(property(run, "network") != NULL, cases[i].shown);
            assert_int_equal(property(sandbox, "network") != NULL, cases[i].shown);
            assert_non_null(property(run, "code"));
        }
}

static void arguments_follow_the_settings(void **state)
{
    (void)state;
    world.app.limits.network = NETWORK_NONE;
    world.app.limits.stdin_max = 0;
    json_auto_t *run = tools_world_row(&world, "run_code");
    json_auto_t *sandbox = tools_world_row(&world, "create_sandbox");

    assert_null(property(run, "network"));
    assert_null(property(run, "stdin"));
    assert_null(property(run, "session"));
    assert_null(property(run, "background"));
    assert_null(property(sandbox, "network"));
    assert_null(property(sandbox, "image"));
}

static void an_old_conversation_must_be_named(void **state)
{
    static const char *const tools[] = {"list_files", "read_file", "delete_file", "move_file",
                                        "download_archive"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        json_auto_t *result = tools_world_call(&world, tools[i], "{}");

        assert_true(json_is_true(json_object_get(result, "isError")));
        assert_string_equal(tools_world_text(result, 0),
                            "argument 'conversationId' is required: a new conversation has no "
                            "files; give the one that an answer named");
    }
}

static void annotations_are_honest(void **state)
{
    json_auto_t *run = tools_world_row(&world, "run_code");
    json_auto_t *upload = tools_world_row(&world, "upload_file");
    json_auto_t *list = tools_world_row(&world, "list_runners");

    (void)state;
    assert_false(json_get_bool(json_object_get(run, "annotations"), "readOnlyHint", 1));
    assert_true(json_get_bool(json_object_get(run, "annotations"), "openWorldHint", 0));
    assert_true(json_get_bool(json_object_get(upload, "annotations"), "destructiveHint", 0));
    assert_true(json_get_bool(json_object_get(list, "annotations"), "readOnlyHint", 0));
    assert_string_equal(json_get_string(run, "title"), "Run code");
}

static void the_list_is_there_without_a_broker(void **state)
{
    fake_broker_reset();
    json_auto_t *row = tools_world_row(&world, "run_code");

    (void)state;
    assert_null(strstr(json_get_string(row, "description"), "Languages"));
    assert_null(json_object_get(property(row, "language"), "enum"));
}

static void the_broker_is_not_asked_for_every_list(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        json_auto_t *row = tools_world_row(&world, "run_code");
        assert_non_null(row);
    }
    assert_int_equal(fake_broker.runner_questions, 1);
}

/* Waits as long as a list is remembered; the only test here that takes time. */
static void a_new_runner_appears_when_the_list_has_aged(void **state)
{
    json_auto_t *before = tools_world_row(&world, "run_code");
    struct timespec wait = {.tv_sec = RUNNERS_FRESH_MS / 1000,
                            .tv_nsec = (RUNNERS_FRESH_MS % 1000 + 50) * 1000000L};

    (void)state;
    fake_broker_set_runners("[{\"language\":\"ruby\",\"image\":\"i\",\"version\":\"3\"}]");
    json_auto_t *same = tools_world_row(&world, "run_code");
    assert_true(json_equal(before, same));
    nanosleep(&wait, NULL);
    json_auto_t *after = tools_world_row(&world, "run_code");
    assert_non_null(strstr(json_get_string(after, "description"), "\n- ruby"));
    assert_null(strstr(json_get_string(after, "description"), "python"));
}

static void list_runners_tells_all(void **state)
{
    json_auto_t *result = tools_world_call(&world, "list_runners", "{}");
    json_auto_t *row = tools_world_row(&world, "list_runners");
    const json_t *structured = json_object_get(result, "structuredContent");

    (void)state;
    assert_true(schema_fits(json_object_get(row, "outputSchema"), structured));
    assert_string_equal(tools_world_text(result, 0),
                        "Languages and the libraries that can be imported:\n- bash (5.2)\n"
                        "- python (3.11.2): numpy 1.24.2, pandas 1.5.3");
}

static void list_runners_asks_anew_each_time(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        json_auto_t *result = tools_world_call(&world, "sandbox.list_runners", "{}");
        assert_true(json_is_false(json_object_get(result, "isError")));
    }
    assert_int_equal(fake_broker.runner_questions, 2);
}

static void list_runners_says_when_the_broker_is_silent_and_recovers(void **state)
{
    (void)state;
    fake_broker_reset();
    json_auto_t *down = tools_world_call(&world, "list_runners", "{}");
    assert_true(json_is_true(json_object_get(down, "isError")));
    assert_null(strstr(tools_world_text(down, 0), "secret.sock"));
    fake_broker_set_runners("[]");
    json_auto_t *up = tools_world_call(&world, "list_runners", "{}");
    assert_string_equal(tools_world_text(up, 0), "{\"languages\":[]}");
}

static void list_runners_tells_one_language(void **state)
{
    json_auto_t *result = tools_world_call(&world, "list_runners", "{\"language\":\"py\"}");
    json_auto_t *other = tools_world_call(&world, "list_runners", "{\"language\":\"cobol\"}");

    (void)state;
    assert_string_equal(tools_world_text(result, 0),
                        "Languages and the libraries that can be imported:\n"
                        "- python (3.11.2): numpy 1.24.2, pandas 1.5.3");
    assert_true(json_is_true(json_object_get(other, "isError")));
}

static void has_properties(const struct mcp_tool *tool)
{
    json_auto_t *schema = tool->input_schema ? json_loads(tool->input_schema, 0, NULL)
                                             : args_tables.schema(tool->arguments, &world.app, 0);

    if (json_object_size(json_object_get(schema, "properties")) == 0)
        fail_msg("%s has no properties", tool->name);
}

/* OpenAI's API refuses a whole conversation for a schema without them. */
static void every_schema_has_properties(void **state)
{
    size_t n;
    const struct mcp_tool *const *tools = tools_all(&n);

    (void)state;
    for (size_t i = 0; i < n; i++)
        has_properties(tools[i]);
    for (int set = TOOLSET_ALL + 1; set < TOOLSETS; set++)
        for (size_t i = 0; i < toolset_theirs(set)->n_tools; i++)
            has_properties(toolset_theirs(set)->tools[i]);
}

/* Some clients' dialects know single types only, and drop a tool that has several. */
static bool has_list_of_types(const json_t *schema)
{
    const char *name;
    const json_t *member;

    for (size_t i = 0; (member = json_array_get(schema, i)); i++)
        if (has_list_of_types(member))
            return true;
    json_object_foreach((json_t *)schema, name, member)
    {
        if ((strcmp(name, "type") == 0 && json_is_array(member)) || has_list_of_types(member))
            return true;
    }
    return false;
}

static bool text_has_list_of_types(const char *text)
{
    json_auto_t *schema = text ? json_loads(text, 0, NULL) : NULL;

    return schema && has_list_of_types(schema);
}

static void types_are_single(const struct mcp_tool *const *tools, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text_has_list_of_types(tools[i]->input_schema) ||
            text_has_list_of_types(tools[i]->output_schema))
            fail_msg("%s has a list of types", tools[i]->name);
}

static void no_schema_has_a_list_of_types(void **state)
{
    size_t n;
    const struct mcp_tool *const *tools = tools_all(&n);

    (void)state;
    assert_true(text_has_list_of_types("{\"anyOf\":[{\"type\":[\"integer\",\"null\"]}]}"));
    types_are_single(tools, n);
    for (int set = TOOLSET_ALL + 1; set < TOOLSETS; set++)
        types_are_single(toolset_theirs(set)->tools, toolset_theirs(set)->n_tools);
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST(the_core_comes_first_in_a_fixed_order_and_is_in_every_set),
    TOOLS_TEST(other_tools_are_in_their_sets_only),
    TOOLS_TEST(what_the_settings_switch_off_is_not_offered),
    TOOLS_TEST(an_absent_tool_says_where_it_is),
    TOOLS_TEST(a_prefix_stands_in_front_of_every_name_and_may_be_left_out),
    TOOLS_TEST(the_core_is_short),
    TOOLS_TEST(run_code_names_languages_and_libraries),
    TOOLS_TEST(many_libraries_are_cut_short),
    TOOLS_TEST(run_code_states_what_holds),
    TOOLS_TEST(run_code_states_its_arguments_and_limits),
    TOOLS_TEST(arguments_follow_the_settings),
    TOOLS_TEST(no_network_is_told_to_those_who_get_none),
    TOOLS_TEST(an_old_conversation_must_be_named),
    TOOLS_TEST(annotations_are_honest),
    TOOLS_TEST(the_list_is_there_without_a_broker),
    TOOLS_TEST(the_broker_is_not_asked_for_every_list),
    TOOLS_TEST(a_new_runner_appears_when_the_list_has_aged),
    TOOLS_TEST(list_runners_tells_all),
    TOOLS_TEST(list_runners_asks_anew_each_time),
    TOOLS_TEST(list_runners_says_when_the_broker_is_silent_and_recovers),
    TOOLS_TEST(list_runners_tells_one_language),
    TOOLS_TEST(every_schema_has_properties),
    TOOLS_TEST(no_schema_has_a_list_of_types),
};
UNIT_TESTS(tests)
