#include "config.h"

#include "common/sandbox/links/upload.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/clock.h"

/* As nginx writes a request's body. */
static void write_as_nginx(struct fixture *f, const char *name, const char *text)
{
    char path[64];

    mkdirat(f->root.fd, UPLOAD_NGINX_DIR, 0700);
    snprintf(path, sizeof(path), UPLOAD_NGINX_DIR "/%s", name);
    AUTO_FD int fd = openat(f->root.fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void assert_given(struct fixture *f, const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(f->sb.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_uid, fixture_uid());
    assert_int_equal(st.st_gid, fixture_gid());
    assert_int_equal(st.st_mode & 07777, 0644);
}

static void what_nginx_wrote_moves_in(void **state)
{
    struct fixture *f = *state;
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;

    write_as_nginx(f, "0000000001", "hello");
    assert_int_equal(upload_of_nginx(&f->root, "0000000001", &body, &f->e), 0);
    assert_int_equal(body.size, 5);
    assert_int_equal(upload_move(&f->sb, "a/b.txt", &body, &f->e), 0);
    fixture_assert_content(f, "a/b.txt", "hello");
    assert_given(f, "a/b.txt");
    assert_int_equal(fixture_count(f->root.fd, UPLOAD_NGINX_DIR), 0);
}

static void what_is_not_moved_goes(void **state)
{
    struct fixture *f = *state;
    struct upload_body body = UPLOAD_BODY_INIT;

    write_as_nginx(f, "0000000002", "hello");
    assert_int_equal(upload_of_nginx(&f->root, "0000000002", &body, &f->e), 0);
    upload_body_clear(&body);
    assert_int_equal(fixture_count(f->root.fd, UPLOAD_NGINX_DIR), 0);
}

static void only_a_file_of_nginxs_is_taken(void **state)
{
    struct fixture *f = *state;
    static const char *const odd[] = {"",           ".",    "..", "../.state", "1/2",
                                      "0000000009", "link", "3",  "4",         "5"};
    struct upload_body body = UPLOAD_BODY_INIT;

    write_as_nginx(f, "1", "x");
    AUTO_FD int dir = openat(f->root.fd, UPLOAD_NGINX_DIR, O_PATH | O_CLOEXEC);
    assert_int_equal(symlinkat(fixture_secret_file(f), dir, "3"), 0);
    assert_int_equal(mkfifoat(dir, "4", 0600), 0);
    assert_int_equal(linkat(dir, "1", dir, "5", 0), 0);
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        assert_int_equal(upload_of_nginx(&f->root, odd[i], &body, &f->e), -1);
        assert_int_equal(f->e.kind, ERR_INVALID);
        assert_int_equal(body.fd, -1);
    }
}

static void a_file_without_a_name_moves_in(void **state)
{
    struct fixture *f = *state;
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;
    AUTO_FD int fd = upload_stage(&f->root, &f->e);

    assert_true(fd >= 0);
    assert_int_equal(fixture_count(f->root.fd, STAGING_DIR), 0);
    assert_int_equal(write(fd, "streamed", 8), 8);
    assert_int_equal(upload_of_stage(&f->root, fd, &body, &f->e), 0);
    assert_int_equal(body.size, 8);
    assert_int_equal(upload_move(&f->sb, "s.txt", &body, &f->e), 0);
    fixture_assert_content(f, "s.txt", "streamed");
    assert_given(f, "s.txt");
    assert_int_equal(fixture_count(f->root.fd, STAGING_DIR), 0);
}

/* Where no file can be named later, the content is copied. */
static void a_file_that_lost_its_name_moves_in(void **state)
{
    struct fixture *f = *state;
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;
    struct staged staged = STAGED_INIT;
    AUTO_FD int fd = staging_create_file(&f->root, &staged);

    staged_clear(&staged);
    assert_int_equal(write(fd, "copied", 6), 6);
    assert_int_equal(upload_of_stage(&f->root, fd, &body, &f->e), 0);
    assert_int_equal(upload_move(&f->sb, "c.txt", &body, &f->e), 0);
    fixture_assert_content(f, "c.txt", "copied");
    assert_int_equal(fixture_count(f->root.fd, STAGING_DIR), 0);
}

static void no_other_descriptor_is_taken(void **state)
{
    struct fixture *f = *state;
    struct upload_body body = UPLOAD_BODY_INIT;
    int pipe_fds[2];
    AUTO_FD int memory = fixture_memfd("x");
    AUTO_FD int outside = open(fixture_secret_file(f), O_RDWR | O_CLOEXEC);

    fixture_plant(f, "named", "x");
    AUTO_FD int named = openat(f->sb.fd, "named", O_RDWR | O_CLOEXEC);
    assert_int_equal(pipe(pipe_fds), 0);
    const int fds[] = {memory, outside, named, pipe_fds[0], f->root.fd, -1};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        assert_int_equal(upload_of_stage(&f->root, fds[i], &body, &f->e), -1);
        assert_int_equal(f->e.kind, ERR_INVALID);
    }
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* H-02: what a program planted at the target is replaced or refused, never followed. */
static void a_planted_link_has_no_effect(void **state)
{
    struct fixture *f = *state;
    const char *secret = fixture_secret_file(f);
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;
    char got[8] = "";

    assert_int_equal(symlinkat(secret, f->sb.fd, "out"), 0);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "dir"), 0);
    write_as_nginx(f, "7", "evil");
    assert_int_equal(upload_of_nginx(&f->root, "7", &body, &f->e), 0);
    assert_int_equal(upload_move(&f->sb, "dir/secret", &body, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    assert_int_equal(upload_move(&f->sb, "out", &body, &f->e), 0);
    fixture_assert_content(f, "out", "evil");
    AUTO_FD int fd = open(secret, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, got, 6), 6);
    assert_string_equal(got, "secret");
}

static void the_sweep_takes_abandoned_uploads(void **state)
{
    struct fixture *f = *state;
    const struct timespec old[2] = {{.tv_sec = clock_unix_s() - 3700},
                                    {.tv_sec = clock_unix_s() - 3700}};

    uploads_sweep(&f->root); /* no folder yet */
    write_as_nginx(f, "0000000001", "old");
    write_as_nginx(f, "0000000002", "young");
    assert_int_equal(utimensat(f->root.fd, UPLOAD_NGINX_DIR "/0000000001", old, 0), 0);
    uploads_sweep(&f->root);
    assert_int_equal(fixture_count(f->root.fd, UPLOAD_NGINX_DIR), 1);
    assert_int_equal(faccessat(f->root.fd, UPLOAD_NGINX_DIR "/0000000002", F_OK, 0), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    CASE(what_nginx_wrote_moves_in),          CASE(what_is_not_moved_goes),
    CASE(only_a_file_of_nginxs_is_taken),     CASE(a_file_without_a_name_moves_in),
    CASE(a_file_that_lost_its_name_moves_in), CASE(no_other_descriptor_is_taken),
    CASE(a_planted_link_has_no_effect),       CASE(the_sweep_takes_abandoned_uploads),
};
UNIT_TESTS(tests)
