/* The edge's list of nodes: names, the file of an operator, what stays and what goes, the file for
 * nginx. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "fcgi/nodes/kubernetes.h"
#include "fcgi/nodes/render.h"
#include "fcgi/nodes/sources.h"
#include "fcgi/nodes/swarm.h"
#include "tests/unit/unit.h"

#define KEEP_MS 60000

static void read_list(struct nodes *list, const char *text)
{
    AUTO_FREE char *copy = mem_strdup(text);
    struct err e;
    assert_works(nodes_read(list, copy, &e), e);
}

static void machines_names_become_nodes_names(void **state)
{
    static const char *const same[] = {"n1", "worker3", "0", "abcdefghijklmnop"};
    static const char *const made[][2] = {
        {"ip-10-0-0-1.eu.internal", "ip10001e"},
        {"Worker", "worker"},
        {"abcdefghijklmnopq", "abcdefgh"},
        {"-.-", ""},
        {"k8s-node-1", "k8snode1"},
    };
    char name[NODE_NAME_MAX + 1], other[NODE_NAME_MAX + 1];
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        assert_works(node_name_make(same[i], name, &e), e);
        assert_string_equal(name, same[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        assert_works(node_name_make(made[i][0], name, &e), e);
        assert_int_equal(strncmp(name, made[i][1], strlen(made[i][1])), 0);
        assert_int_equal(strlen(name), strlen(made[i][1]) + 8);
        assert_works(node_name_make(made[i][0], other, &e), e);
        assert_string_equal(name, other);
    }
    /* What differs in signs only does not clash. */
    assert_works(node_name_make("node-11", name, &e), e);
    assert_works(node_name_make("node-1-1", other, &e), e);
    assert_string_not_equal(name, other);
}

static void a_machine_without_a_name_has_none(void **state)
{
    char longest[NODE_FULL_CHARS + 2], name[NODE_NAME_MAX + 1];
    struct err e;

    (void)state;
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_fails(node_name_make("", name, &e), ERR_INVALID, e);
    assert_fails(node_name_make(longest, name, &e), ERR_INVALID, e);
}

static void a_file_is_read(void **state)
{
    AUTO_NODES struct nodes list = {0};

    (void)state;
    read_list(&list, "# the nodes\n\n  n2\t10.0.0.2:8080 # new\r\nn1 node-1.example.org:80\n"
                     "n3 [fd00::3]:8080");
    assert_int_equal(list.n, 3);
    assert_string_equal(list.rows[0].name, "n1");
    assert_string_equal(list.rows[0].host, "node-1.example.org");
    assert_int_equal(list.rows[0].port, 80);
    assert_string_equal(list.rows[1].host, "10.0.0.2");
    assert_string_equal(list.rows[2].host, "[fd00::3]");
}

static void wrong_lines_are_named(void **state)
{
    static const struct {
        const char *text;
        enum err_kind kind;
        const char *says;
    } rows[] = {
        {"n1 h:1\nN2 h:2", ERR_INVALID, "line 2: a node's name"},
        {"n1", ERR_INVALID, "line 1: the line must be"},
        {"n1 h", ERR_INVALID, "the line must be"},
        {"n1 h:1 more", ERR_INVALID, "the line must be"},
        {"n1 h:1 leaving now", ERR_INVALID, "the line must be"},
        {"n1 h:0", ERR_INVALID, "port"},
        {"n1 h:65536", ERR_INVALID, "port"},
        {"n1 h:", ERR_INVALID, "port"},
        {"n1 :80", ERR_INVALID, "not a host"},
        {"n1 h;}:80", ERR_INVALID, "not a host"},
        {"n1 -h:80", ERR_INVALID, "not a host"},
        {"n1 unix:/x:80", ERR_INVALID, "not a host"},
        {"n1 [fd00::1:80", ERR_INVALID, "not a host"},
        {"n1 []:80", ERR_INVALID, "not a host"},
        {"abcdefghijklmnopq h:1", ERR_INVALID, "a node's name"},
        {"n1 h:1\nn1 h:2", ERR_EXISTS, "line 2: two nodes have the name n1"},
        {"n1 h:1\nn2 h:1", ERR_EXISTS, "n1 and n2 have the same address"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_NODES struct nodes list = {0};
        AUTO_FREE char *copy = mem_strdup(rows[i].text);
        struct err e;
        assert_fails(nodes_read(&list, copy, &e), rows[i].kind, e);
        assert_contains(e.text, rows[i].says);
    }
}

static void too_many_nodes_are_refused(void **state)
{
    AUTO_NODES struct nodes list = {0};
    char name[NODE_NAME_MAX + 1];
    struct err e;

    (void)state;
    for (int i = 0; i < NODES_MAX; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_works(nodes_add(&list, name, "h", (unsigned)i + 1, NODE_READY, &e), e);
    }
    assert_fails(nodes_add(&list, "more", "h", 5000, NODE_READY, &e), ERR_LIMIT, e);
}

/* ---- following ---- */

static void add(struct nodes *list, const char *name, const char *host, enum node_state node_state)
{
    struct err e;
    assert_works(nodes_add(list, name, host, 80, node_state, &e), e);
}

static void add_two(struct nodes *list)
{
    add(list, "n1", "h1", NODE_READY);
    add(list, "n2", "h2", NODE_READY);
}

static void follow(struct nodes *list, const struct nodes *found, int64_t now_ms)
{
    struct nodes next = {0};
    struct err e;
    assert_works(nodes_follow(list, found, now_ms, KEEP_MS, &next, &e), e);
    nodes_clear(list);
    *list = next;
}

static void a_node_comes_when_it_is_ready_and_stays_when_it_is_not(void **state)
{
    AUTO_NODES struct nodes list = {0};
    AUTO_NODES struct nodes first = {0};
    AUTO_NODES struct nodes second = {0};

    (void)state;
    add(&first, "n1", "h1", NODE_READY);
    add(&first, "n2", "h2", NODE_ABSENT);
    follow(&list, &first, 1000);
    assert_int_equal(list.n, 1);
    add(&second, "n1", "h1", NODE_ABSENT);
    add(&second, "n2", "h2", NODE_READY);
    for (int64_t now = 2000; now < 10 * KEEP_MS; now += KEEP_MS)
        follow(&list, &second, now);
    assert_int_equal(list.n, 2);
}

static void a_node_that_is_not_named_stays_for_a_while(void **state)
{
    AUTO_NODES struct nodes list = {0};
    AUTO_NODES struct nodes both = {0};
    AUTO_NODES struct nodes one = {0};

    (void)state;
    add_two(&both);
    add(&one, "n1", "h1", NODE_READY);
    follow(&list, &both, 1000);
    follow(&list, &one, 1000 + KEEP_MS / 2);
    follow(&list, &one, 1000 + KEEP_MS - 1);
    assert_int_equal(list.n, 2);
    follow(&list, &both, 1000 + KEEP_MS);
    follow(&list, &one, 1000 + 2 * KEEP_MS - 1);
    assert_int_equal(list.n, 2);
    follow(&list, &one, 1000 + 2 * KEEP_MS);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.rows[0].name, "n1");
}

static void a_node_that_leaves_is_no_home_and_goes_later(void **state)
{
    AUTO_NODES struct nodes list = {0};
    AUTO_NODES struct nodes before = {0};
    AUTO_NODES struct nodes after = {0};

    (void)state;
    add_two(&before);
    add(&after, "n1", "h1", NODE_READY);
    add(&after, "n2", "h2", NODE_LEAVING);
    add(&after, "n3", "h3", NODE_LEAVING);
    follow(&list, &before, 1000);
    for (int64_t now = 1001; now < 1000 + KEEP_MS; now += KEEP_MS / 3) {
        follow(&list, &after, now);
        assert_int_equal(list.n, 2);
        assert_int_equal(nodes_count_homes(&list), 1);
    }
    follow(&list, &after, 1000 + KEEP_MS);
    assert_int_equal(list.n, 1);
    follow(&list, &before, 1001 + KEEP_MS);
    assert_int_equal(nodes_count_homes(&list), 2);
}

static void a_node_with_another_address_or_name_is_one_node(void **state)
{
    AUTO_NODES struct nodes list = {0};
    AUTO_NODES struct nodes before = {0};
    AUTO_NODES struct nodes after = {0};

    (void)state;
    add_two(&before);
    add(&after, "n1", "h3", NODE_READY);
    add(&after, "renamed", "h2", NODE_READY);
    follow(&list, &before, 1000);
    follow(&list, &after, 1001);
    assert_int_equal(list.n, 2);
    assert_string_equal(nodes_find(&list, "n1")->host, "h3");
    assert_non_null(nodes_find(&list, "renamed"));
}

/* ---- what orchestrators answer ---- */

/* JSON with ' for ". */
static json_t *json_of(const char *text)
{
    AUTO_FREE char *copy = mem_strdup(text);
    struct err e = ERR_INIT;

    for (char *c = copy; (c = strchr(c, '\''));)
        *c = '"';
    json_t *value = json_parse(copy, strlen(copy), JSON_MAX_DEPTH, &e);
    if (!value)
        fail_msg("%s", e.text);
    return value;
}

#define FRONT                                                                                      \
    "[{'Spec':{'Name':'front2'}},{'Spec':{'Name':'front'},'Endpoint':{'Ports':["                   \
    "{'PublishMode':'ingress','PublishedPort':1},{'PublishMode':'host','PublishedPort':8080}]}}]"

static const struct nodes_place front = {.service = "front"};

/* A machine of a Swarm, with its task. */
static void assert_swarm_state(const char *machine, const char *task, int expected)
{
    AUTO_NODES struct nodes list = {0};
    AUTO_FREE char *text = mem_printf("[{'ID':'a','Description':{'Hostname':'n1'},%s}]", machine);
    json_auto_t *services = json_of(FRONT), *machines = json_of(text), *tasks = json_of(task);
    struct err e;

    assert_works(swarm_read(services, machines, tasks, &front, &list, &e), e);
    assert_int_equal(list.n, expected >= 0);
    if (expected < 0)
        return;
    assert_int_equal(list.rows[0].state, expected);
    assert_string_equal(list.rows[0].host, "10.0.0.1");
    assert_int_equal(list.rows[0].port, 8080);
}

#define RUNNING  "[{'NodeID':'a','DesiredState':'running','Status':{'State':'running'}}]"
#define STARTING "[{'NodeID':'a','DesiredState':'ready','Status':{'State':'preparing'}}]"
#define ENDED    "[{'NodeID':'a','DesiredState':'shutdown','Status':{'State':'running'}}]"
#define BOTH                                                                                       \
    "[{'NodeID':'a','DesiredState':'running','Status':{'State':'running'}},"                       \
    "{'NodeID':'a','DesiredState':'ready','Status':{'State':'preparing'}}]"
#define UP    "'Spec':{'Availability':'active'},'Status':{'State':'ready','Addr':'10.0.0.1'}"
#define DOWN  "'Spec':{'Availability':'active'},'Status':{'State':'down','Addr':'10.0.0.1'}"
#define DRAIN "'Spec':{'Availability':'drain'},'Status':{'State':'ready','Addr':'10.0.0.1'}"
#define MANAGER                                                                                    \
    "'Spec':{'Availability':'active'},'Status':{'State':'ready','Addr':'0.0.0.0'},"                \
    "'ManagerStatus':{'Addr':'10.0.0.1:2377'}"

static void a_swarm_names_its_nodes(void **state)
{
    (void)state;
    assert_swarm_state(UP, RUNNING, NODE_READY);
    assert_swarm_state(UP, BOTH, NODE_READY);
    assert_swarm_state(MANAGER, RUNNING, NODE_READY);
    assert_swarm_state(UP, STARTING, NODE_ABSENT);
    assert_swarm_state(UP, ENDED, -1);
    assert_swarm_state(UP, "[]", -1);
    assert_swarm_state(DOWN, "[]", NODE_ABSENT);
    assert_swarm_state(DOWN, RUNNING, NODE_ABSENT);
    assert_swarm_state(DRAIN, RUNNING, NODE_LEAVING);
    assert_swarm_state(DRAIN, "[]", NODE_LEAVING);
}

static void a_swarm_without_the_service_is_an_error(void **state)
{
    static const char *const services[] = {"[]", "[{'Spec':{'Name':'front'}}]", "{}"};
    static const enum err_kind kinds[] = {ERR_NOT_FOUND, ERR_NOT_FOUND, ERR_PROTOCOL};
    json_auto_t *none = json_array();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        AUTO_NODES struct nodes list = {0};
        json_auto_t *service = json_of(services[i]);
        struct err e;
        assert_fails(swarm_read(service, none, none, &front, &list, &e), kinds[i], e);
    }
}

static void kubernetes_names_its_nodes(void **state)
{
    static const char text[] =
        "{'items':[{'addressType':'IPv4','ports':[{'name':'other','port':1},"
        "{'name':'http','port':8080}],'endpoints':["
        "{'addresses':['10.0.0.1'],'conditions':{'ready':true},'nodeName':'n1'},"
        "{'addresses':['10.0.0.2'],'conditions':{'ready':false},'nodeName':'n2'},"
        "{'addresses':['10.1.0.3'],'conditions':{'ready':false,'terminating':true},'nodeName':'n3'"
        "},{'addresses':['10.0.0.3'],'nodeName':'n3'},{'addresses':['10.0.0.9']}]},"
        "{'addressType':'IPv6','ports':[{'port':80}],'endpoints':["
        "{'addresses':['fd00::4'],'conditions':{},'nodeName':'n4'}]}]}";
    AUTO_NODES struct nodes list = {0};
    json_auto_t *slices = json_of(text);
    struct err e;

    (void)state;
    assert_works(kubernetes_read(slices, &front, &list, &e), e);
    assert_int_equal(list.n, 4);
    assert_int_equal(list.rows[0].state, NODE_READY);
    assert_int_equal(list.rows[0].port, 8080);
    assert_int_equal(list.rows[1].state, NODE_ABSENT);
    assert_int_equal(list.rows[2].state, NODE_READY);
    assert_string_equal(list.rows[2].host, "10.0.0.3");
    assert_string_equal(list.rows[3].host, "[fd00::4]");
    assert_int_equal(list.rows[3].port, 80);
}

static void answers_of_another_form_are_errors(void **state)
{
    static const struct {
        const char *text;
        enum err_kind kind;
    } rows[] = {
        {"{}", ERR_PROTOCOL},
        {"{'items':{}}", ERR_PROTOCOL},
        {"{'items':[],'metadata':{'continue':'x'}}", ERR_LIMIT},
        {"{'items':[{'endpoints':[{'addresses':['h'],'nodeName':'n1'}]}]}", ERR_NOT_FOUND},
        {"{'items':[{'ports':[{'port':1}],'endpoints':[{'nodeName':'n1'}]}]}", ERR_PROTOCOL},
        {"{'items':[{'ports':[{'port':1}],'endpoints':[{'addresses':['h;'],'nodeName':'n1'}]}]}",
         ERR_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_NODES struct nodes list = {0};
        json_auto_t *slices = json_of(rows[i].text);
        struct err e;
        assert_fails(kubernetes_read(slices, &front, &list, &e), rows[i].kind, e);
    }
}

/* ---- the file for nginx ---- */

static void the_file_has_every_group_and_reads_back(void **state)
{
    static const char expected[] = "upstream sandcgi_home {\n"
                                   "    zone sandcgi_home 1024k;\n"
                                   "    hash $sandcgi_route consistent;\n"
                                   "    server h1:80 weight=10 max_fails=0;\n"
                                   "    server h2:80 weight=10 max_fails=0;\n"
                                   "    keepalive 32;\n"
                                   "}\n";
    AUTO_NODES struct nodes list = {0};
    AUTO_NODES struct nodes again = {0};
    AUTO_BUF struct buf text = BUF_INIT(NODES_RENDER_MAX);
    struct err e;

    (void)state;
    read_list(&list, "n1 h1:80\nn2 h2:80\nn3 h3:80 leaving");
    nodes_render(&list, &text);
    assert_true(buf_ok(&text));
    assert_contains(buf_str(&text), expected);
    assert_contains(buf_str(&text), "upstream sandcgi_any {");
    assert_contains(buf_str(&text), "upstream sandcgi_away {");
    assert_contains(buf_str(&text), "upstream node_n2 {");
    assert_contains(buf_str(&text), "    :n2 node_n2;\n    :n3 node_n3;\n");
    AUTO_FREE char *copy = buf_take(&text);
    assert_works(nodes_rendered(copy, 7, &again, &e), e);
    assert_int_equal(again.n, 3);
    assert_string_equal(again.rows[1].host, "h2");
    assert_int_equal(again.rows[2].state, NODE_LEAVING);
    assert_int_equal(again.rows[1].seen_ms, 7);
}

static void a_source_says_what_it_needs(void **state)
{
    const struct nodes_place none = {0};
    struct err e;

    (void)state;
    assert_null(nodes_source_find("consul"));
    assert_fails(nodes_source_find("file")->check(&none, &e), ERR_INVALID, e);
    assert_contains(e.text, "--file");
    assert_fails(nodes_source_find("swarm")->check(&none, &e), ERR_INVALID, e);
    assert_fails(nodes_source_find("kubernetes")->check(&none, &e), ERR_INVALID, e);
    const struct nodes_place wrong = {.service = "a/../b"};
    assert_fails(nodes_source_find("kubernetes")->check(&wrong, &e), ERR_INVALID, e);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(machines_names_become_nodes_names),
    cmocka_unit_test(a_machine_without_a_name_has_none),
    cmocka_unit_test(a_file_is_read),
    cmocka_unit_test(wrong_lines_are_named),
    cmocka_unit_test(too_many_nodes_are_refused),
    cmocka_unit_test(a_node_comes_when_it_is_ready_and_stays_when_it_is_not),
    cmocka_unit_test(a_node_that_is_not_named_stays_for_a_while),
    cmocka_unit_test(a_node_that_leaves_is_no_home_and_goes_later),
    cmocka_unit_test(a_node_with_another_address_or_name_is_one_node),
    cmocka_unit_test(a_swarm_names_its_nodes),
    cmocka_unit_test(a_swarm_without_the_service_is_an_error),
    cmocka_unit_test(kubernetes_names_its_nodes),
    cmocka_unit_test(answers_of_another_form_are_errors),
    cmocka_unit_test(the_file_has_every_group_and_reads_back),
    cmocka_unit_test(a_source_says_what_it_needs),
};
UNIT_TESTS(tests)
