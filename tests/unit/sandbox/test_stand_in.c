/* Conversations whose homes are away: names that are given up as soon as the home is back. */
#include "config.h"

#include "common/base/node.h"
#include "common/sandbox/stand_in.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

struct world {
    char folder[PATH_MAX];
    int dir;
    bool in_use;
    char removed[SANDBOX_ID_MAX + 1]; /* the last */
    int removals;
};

static int setup(void **state)
{
    static struct world w;

    w = (struct world){.dir = -1};
    unit_make_folder(w.folder);
    w.dir = open(w.folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(w.dir, STAND_IN_DIR, 0700), 0);
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    close(w->dir);
    unit_remove_tree(w->folder);
    return 0;
}

static bool remove_files(void *ctx, const char *tenant, const char *inside)
{
    struct world *w = ctx;

    assert_string_equal(tenant, "me");
    snprintf(w->removed, sizeof w->removed, "%s", inside);
    w->removals += !w->in_use;
    return !w->in_use;
}

static void stand_in(struct world *w, const char *conversation, const char *home,
                     char inside[SANDBOX_ID_MAX + 1])
{
    struct err e = ERR_INIT;

    assert_int_equal(stand_in_open(w->dir, "me", conversation, home, inside, &e), 0);
    assert_string_equal(node_outside(inside), conversation);
    assert_string_not_equal(inside, conversation);
}

/* A port of this machine; *out_fd listens at it. */
static void listen_somewhere(char home[32], int *out_fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;

    *out_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*out_fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(*out_fd, 8), 0);
    assert_int_equal(getsockname(*out_fd, (struct sockaddr *)&at, &len), 0);
    snprintf(home, 32, "127.0.0.1:%d", ntohs(at.sin_port));
}

static void a_name_lasts_as_long_as_the_absence(void **state)
{
    struct world *w = *state;
    char home[32], first[SANDBOX_ID_MAX + 1], again[SANDBOX_ID_MAX + 1];
    int fd, before;

    listen_somewhere(home, &fd);
    close(fd);
    before = unit_count_fds();
    stand_in(w, "a", home, first);
    assert_int_equal(stand_ins_look(w->dir, remove_files, w), 1);
    assert_int_equal(w->removals, 0);
    stand_in(w, "a", home, again);
    assert_string_equal(first, again);
    stand_in(w, "b", home, again);
    assert_string_not_equal(first, again);
    assert_int_equal(unit_count_fds(), before);
}

static void a_home_that_is_back_ends_it(void **state)
{
    struct world *w = *state;
    char home[32], first[SANDBOX_ID_MAX + 1], again[SANDBOX_ID_MAX + 1];
    int fd;

    listen_somewhere(home, &fd);
    stand_in(w, "a", home, first);
    w->in_use = true; /* a program of the first absence still runs */
    assert_int_equal(stand_ins_look(w->dir, remove_files, w), 1);
    assert_string_equal(w->removed, first);
    stand_in(w, "a", home, again); /* the second absence begins with no files all the same */
    assert_string_not_equal(first, again);
    w->in_use = false;
    while (stand_ins_look(w->dir, remove_files, w) > 0)
        ;
    assert_int_equal(w->removals, 2);
    close(fd);
}

static void what_nobody_calls_ends(void **state)
{
    struct world *w = *state;
    const struct timespec old[2] = {{.tv_sec = time(NULL) - STAND_IN_KEPT_S - 5},
                                    {.tv_sec = time(NULL) - STAND_IN_KEPT_S - 5}};
    char inside[SANDBOX_ID_MAX + 1], path[PATH_MAX + 64];

    stand_in(w, "a", "127.0.0.1:1", inside);
    snprintf(path, sizeof path, "%s/" STAND_IN_DIR, w->folder);
    DIR *dir = opendir(path);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            assert_int_equal(utimensat(dirfd(dir), entry->d_name, old, 0), 0);
    closedir(dir);
    assert_int_equal(stand_ins_look(w->dir, remove_files, w), 0);
    assert_string_equal(w->removed, inside);
}

static void homes_of_any_form_are_no_harm(void **state)
{
    static const char *const homes[] = {
        "", ":", ":1", "x", "[::1]:1", "localhost:1", "1.2:x", "[127.0.0.1:1", "unix:/x"};
    struct world *w = *state;
    char inside[SANDBOX_ID_MAX + 1];

    for (size_t i = 0; i < ARRAY_LEN(homes); i++)
        stand_in(w, homes[i], homes[i], inside);
    assert_int_equal(stand_ins_look(w->dir, remove_files, w), ARRAY_LEN(homes));
}

static void a_name_has_room_for_the_mark(void **state)
{
    struct world *w = *state;
    char name[SANDBOX_ID_MAX + 1], inside[SANDBOX_ID_MAX + 1];
    struct err e = ERR_INIT;

    memset(name, 'x', sizeof name);
    name[SANDBOX_ID_MAX - 10] = '\0';
    assert_int_equal(stand_in_open(w->dir, "me", name, "127.0.0.1:1", inside, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    name[SANDBOX_ID_MAX - 11] = '\0';
    stand_in(w, name, "127.0.0.1:1", inside);
    assert_int_equal(strlen(inside), SANDBOX_ID_MAX);
    assert_true(sandbox_text_ok(inside, strlen(inside)));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_name_lasts_as_long_as_the_absence, setup, teardown),
    cmocka_unit_test_setup_teardown(a_home_that_is_back_ends_it, setup, teardown),
    cmocka_unit_test_setup_teardown(what_nobody_calls_ends, setup, teardown),
    cmocka_unit_test_setup_teardown(homes_of_any_form_are_no_harm, setup, teardown),
    cmocka_unit_test_setup_teardown(a_name_has_room_for_the_mark, setup, teardown),
};
UNIT_TESTS(tests)
