/* Conversations in a store: what is saved is read back the same, on another machine with the same
 * secret, whatever programs have named their files; nothing is sent twice; nothing is lost by a
 * store that fails. */
#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/unsaved.h"
#include "common/store/identity.h"
#include "common/store/kinds.h"
#include "common/store/load.h"
#include "common/store/record.h"
#include "common/store/save.h"

#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

/* The directory's kind, with a count of what it is asked, and failures. */
struct counting {
    struct store base;
    struct store *real;
    int puts, gets, removes;
    int fail_after;           /* puts that work until the store is away; -1: it never is */
    void (*before_put)(void); /* of a file's content */
};

static struct counting *counting(struct store *s)
{
    return (struct counting *)(void *)s;
}

static int counted_put(struct store *s, const char *key, struct payload *c, struct err *e)
{
    struct counting *k = counting(s);

    if (k->fail_after >= 0 && k->puts >= k->fail_after)
        return err_set(e, ERR_IO, "the store is away");
    k->puts++;
    if (k->before_put && c->fd >= 0)
        k->before_put();
    return k->real->ops->put(k->real, key, c, e);
}

static int counted_get(struct store *s, const char *key, struct payload *c, struct err *e)
{
    counting(s)->gets++;
    return counting(s)->real->ops->get(counting(s)->real, key, c, e);
}

static int counted_remove(struct store *s, const char *key, struct err *e)
{
    counting(s)->removes++;
    return counting(s)->real->ops->remove(counting(s)->real, key, e);
}

static void counted_free(struct store *s)
{
    store_free(&counting(s)->real);
}

static const struct store_ops counting_ops = {
    .put = counted_put, .get = counted_get, .remove = counted_remove, .free = counted_free};

/* Two machines with one secret, and the store. */
struct world {
    struct fixture *f;
    struct sandbox_root other; /* the second machine's */
    char place[300], other_path[300];
    struct counting store;
    struct saver here, there;
    struct err e;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    if (fixture_setup((void **)&w->f) < 0)
        return -1;
    snprintf(w->place, sizeof w->place, "%s/store", w->f->dir);
    snprintf(w->other_path, sizeof w->other_path, "%s/other", w->f->dir);
    mkdir(w->place, 0700);
    struct store_settings settings = {.place = w->place};
    w->store = (struct counting){
        .base = {&counting_ops}, .real = store_open(&settings, &w->e), .fail_after = -1};
    if (!w->store.real ||
        sandbox_root_open(&w->other, w->other_path, NULL, FIXTURE_SECRET, FIXTURE_URL,
                          fixture_uid(), fixture_gid(), 0, &w->e) < 0 ||
        unsaved_begin(&w->f->root, &w->e) < 0 || unsaved_begin(&w->other, &w->e) < 0 ||
        state_note_use(&w->f->sb, "default", "talk", &w->e) < 0) {
        print_error("setup: %s\n", w->e.text);
        return -1;
    }
    w->here = (struct saver){&w->store.base, &w->f->root, "n1", 0};
    w->there = (struct saver){&w->store.base, &w->other, "n2", 0};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    counted_free(&w->store.base);
    sandbox_root_close(&w->other);
    fixture_teardown((void **)&w->f);
    free(w);
    return 0;
}

static struct save_sum save(struct world *w, const struct saver *s)
{
    struct save_sum sum;

    assert_works(save_conversation(s, w->f->sb.name, &sum, &w->e), w->e);
    return sum;
}

static struct load_sum load(struct world *w, const struct saver *s)
{
    struct load_sum sum;

    assert_works(load_conversation(s, w->f->sb.name, &sum, &w->e), w->e);
    return sum;
}

static int dir_of(const struct world *w, const struct sandbox_root *root)
{
    int fd = openat(root->fd, w->f->sb.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void assert_text(int dir, const char *name, const char *text)
{
    AUTO_BUF struct buf got = BUF_INIT(65536);
    struct err e = ERR_INIT;
    AUTO_FD int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        fail_msg("%s is not there", name);
    assert_works(fdio_read_to_end(fd, &got, &e), e);
    assert_string_equal(buf_str(&got), text);
}

static size_t count_objects(const struct world *w)
{
    AUTO_FREE char *path = mem_printf("%s/%s", w->place, w->f->sb.name);
    AUTO_DIR DIR *d = opendir(path);
    size_t n = 0;

    for (const struct dirent *entry; d && (entry = readdir(d));)
        n += entry->d_name[0] != '.';
    return n;
}

/* ---- saved and read back ---- */

static void test_another_machine_has_it(void **state)
{
    struct world *w = *state;
    struct stat st;
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000, .tv_nsec = 5}};

    fixture_plant(w->f, "a", "first");
    fixture_plant(w->f, "empty", "");
    assert_int_equal(mkdirat(w->f->sb.fd, "folder", 0750), 0);
    assert_int_equal(fchmodat(w->f->sb.fd, "folder", 0750, 0), 0);
    fixture_plant(w->f, "folder/b", "second");
    assert_int_equal(fchmodat(w->f->sb.fd, "folder/b", 0604, 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", w->f->sb.fd, "link"), 0);
    assert_int_equal(utimensat(w->f->sb.fd, "a", times, 0), 0);

    struct save_sum sent = save(w, &w->here);
    assert_int_equal(sent.outcome, SAVE_SENT);
    assert_int_equal(sent.files, 2);
    assert_int_equal(sent.bytes, strlen("firstsecond"));
    assert_int_equal(load(w, &w->there).outcome, LOAD_PLACED);

    AUTO_FD int dir = dir_of(w, &w->other);
    assert_text(dir, "a", "first");
    assert_text(dir, "empty", "");
    assert_text(dir, "folder/b", "second");
    assert_int_equal(fstatat(dir, "a", &st, 0), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1000000000);
    assert_int_equal(st.st_mtim.tv_nsec, 5);
    assert_int_equal(st.st_uid, fixture_uid());
    assert_int_equal(fstatat(dir, "folder", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(fstatat(dir, "folder/b", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0604);
    assert_int_equal(fstatat(dir, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));

    /* It counts as a conversation there, and the store is to hear of it. */
    AUTO_STATE_RECORD struct state_record record = {0};
    assert_works(state_read(&w->other, w->f->sb.name, &record, &w->e), w->e);
    assert_string_equal(record.conversation, "talk");
    assert_true(unsaved_has(&w->other, w->f->sb.name));
}

static void test_hostile_names(void **state)
{
    static const char *const names[] = {"new\nline", "\x01\x02\x7f", "\xff\xfe", "..hidden",
                                        "%2e%2e",    "a\\b",         "-rf",      " ",
                                        "\"quoted\""};
    struct world *w = *state;
    char longest[256];

    memset(longest, 'x', 255);
    longest[255] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        fixture_plant(w->f, names[i], names[i]);
    fixture_plant(w->f, longest, "long");
    assert_int_equal(symlinkat("../../../../etc/shadow", w->f->sb.fd, "out"), 0);
    assert_int_equal(symlinkat(fixture_secret_file(w->f), w->f->sb.fd, "secret"), 0);
    assert_int_equal(mkfifoat(w->f->sb.fd, "fifo", 0600), 0);
    struct save_sum sent = save(w, &w->here);
    assert_int_equal(sent.files, ARRAY_LEN(names) + 1);
    assert_int_equal(sent.left_out, 1);

    assert_int_equal(load(w, &w->there).outcome, LOAD_PLACED);
    AUTO_FD int dir = dir_of(w, &w->other);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_text(dir, names[i], names[i]);
    assert_text(dir, longest, "long");
    struct stat st;
    assert_int_equal(fstatat(dir, "secret", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(fstatat(dir, "fifo", &st, AT_SYMLINK_NOFOLLOW), -1);
}

static void test_holes_are_not_sent(void **state)
{
    struct world *w = *state;
    const off_t size = 100ll << 30;
    AUTO_FD int fd = openat(w->f->sb.fd, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    assert_int_equal(pwrite(fd, "begin", 5, 0), 5);
    assert_int_equal(pwrite(fd, "end", 3, size - 3), 3);
    struct save_sum sent = save(w, &w->here);
    assert_int_equal(sent.files, 1);
    assert_true(sent.bytes < 1 << 20);
    assert_int_equal(load(w, &w->there).outcome, LOAD_PLACED);

    char text[8] = "";
    struct stat st;
    AUTO_FD int dir = dir_of(w, &w->other);
    AUTO_FD int copy = openat(dir, "sparse", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(copy, &st), 0);
    assert_true(st.st_size == size && st.st_blocks < 4096);
    assert_int_equal(pread(copy, text, 5, 0), 5);
    assert_string_equal(text, "begin");
    assert_int_equal(pread(copy, text, 3, size - 3), 3);
    assert_memory_equal(text, "end", 3);
}

/* ---- only what has changed ---- */

static void test_nothing_is_sent_twice(void **state)
{
    struct world *w = *state;

    fixture_plant(w->f, "a", "first");
    fixture_plant(w->f, "b", "second");
    (void)save(w, &w->here);
    int puts = w->store.puts, gets = w->store.gets;
    assert_int_equal(save(w, &w->here).outcome, SAVE_SAME);
    assert_int_equal(w->store.puts, puts); /* it was not even asked */
    assert_int_equal(w->store.gets, gets);

    fixture_plant(w->f, "b", "changed");
    assert_int_equal(save(w, &w->here).files, 1);
    assert_int_equal(w->store.puts, puts + 2); /* and the manifest */
    assert_int_equal(count_objects(w), 3);     /* what b was is gone */

    assert_int_equal(renameat(w->f->sb.fd, "a", w->f->sb.fd, "c"), 0);
    assert_int_equal(save(w, &w->here).files, 0);
    assert_int_equal(unlinkat(w->f->sb.fd, "b", 0), 0);
    assert_int_equal(save(w, &w->here).outcome, SAVE_SENT);
    assert_int_equal(count_objects(w), 2);
    assert_int_equal(load(w, &w->there).files, 1);
    AUTO_FD int dir = dir_of(w, &w->other);
    assert_text(dir, "c", "first");
}

static struct fixture *changing;
static int n_changes;

static void change_file(void)
{
    char text[40];

    snprintf(text, sizeof text, "version %d", ++n_changes);
    fixture_plant(changing, "busy", text);
}

static void test_a_file_that_changes_while_it_is_read(void **state)
{
    struct world *w = *state;

    fixture_plant(w->f, "busy", "version 0");
    fixture_plant(w->f, "calm", "calm");
    (void)save(w, &w->here);
    changing = w->f;
    n_changes = 0;
    w->store.before_put = change_file;
    fixture_plant(w->f, "busy", "version x");
    struct save_sum sum = save(w, &w->here);
    assert_int_equal(sum.changed, 1);
    assert_true(n_changes > 1);
    assert_int_equal(load(w, &w->there).outcome, LOAD_PLACED);
    AUTO_FD int dir = dir_of(w, &w->other);
    assert_text(dir, "busy", "version 0"); /* a whole state, if an old one */
    w->store.before_put = NULL;
    assert_int_equal(save(w, &w->here).files, 1);
}

/* What is left out stands nowhere, wherever it stands in the tree; the bound leaves out the rest.
 */
static void test_what_cannot_be_saved_is_left_out_at_the_bound_too(void **state)
{
    struct world *w = *state;

    fixture_plant(w->f, "a", "a");
    fixture_plant(w->f, "b", "b");
    assert_int_equal(mkfifoat(w->f->sb.fd, "pipe", 0600), 0);
    fixture_plant(w->f, "z", "z");
    for (size_t max = 4; max > 0; max--) {
        w->here.entries_max = max;
        fixture_plant(w->f, "a", max % 2 ? "other" : "a");
        assert_int_equal(save(w, &w->here).left_out, max >= 3 ? 1 : 4 - max);
    }
    assert_int_equal(load(w, &w->there).outcome, LOAD_PLACED);
    AUTO_FD int dir = dir_of(w, &w->other);
    assert_text(dir, "a", "other");
    assert_int_equal(faccessat(dir, "b", F_OK, 0), -1);
}

/* ---- failures ---- */

static void test_store_away(void **state)
{
    struct world *w = *state;
    struct save_sum sum;

    fixture_plant(w->f, "a", "one");
    (void)save(w, &w->here);
    fixture_plant(w->f, "a", "two");
    fixture_plant(w->f, "b", "new");
    for (int puts = 0; puts < 3; puts++) {
        w->store.fail_after = w->store.puts + puts;
        assert_fails(save_conversation(&w->here, w->f->sb.name, &sum, &w->e), ERR_UNAVAILABLE,
                     w->e);
        /* Until the manifest is there, readers see the state of before. */
        AUTO_FREE char *path = mem_printf("%s/%s", w->other_path, w->f->sb.name);
        w->store.fail_after = -1;
        assert_int_equal(load(w, &w->there).outcome, LOAD_PLACED);
        AUTO_FD int dir = dir_of(w, &w->other);
        assert_text(dir, "a", "one");
        unit_remove_tree(path);
    }
    assert_int_equal(save(w, &w->here).outcome, SAVE_SENT);
    assert_int_equal(load(w, &w->there).files, 2);
}

static void test_store_that_lost_everything(void **state)
{
    struct world *w = *state;

    fixture_plant(w->f, "a", "one");
    fixture_plant(w->f, "b", "two");
    (void)save(w, &w->here);
    AUTO_FREE char *path = mem_printf("%s/%s", w->place, w->f->sb.name);
    unit_remove_tree(path);
    fixture_plant(w->f, "a", "changed");
    assert_int_equal(save(w, &w->here).files, 2); /* all anew */
    assert_int_equal(load(w, &w->there).files, 2);
}

static void test_damage_is_not_taken(void **state)
{
    struct world *w = *state;
    struct load_sum sum;
    char name[SANDBOX_NAME_LEN + 1];

    fixture_plant(w->f, "a", "content");
    (void)save(w, &w->here);
    AUTO_FREE char *folder = mem_printf("%s/%s", w->place, w->f->sb.name);
    AUTO_DIR DIR *d = opendir(folder);
    for (const struct dirent *entry; (entry = readdir(d));) {
        if (strlen(entry->d_name) != PAYLOAD_SUM_LEN)
            continue;
        AUTO_FD int fd = openat(dirfd(d), entry->d_name, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "CONTENT", 7, 0), 7);
    }
    assert_fails(load_conversation(&w->there, w->f->sb.name, &sum, &w->e), ERR_PROTOCOL, w->e);
    assert_int_equal(faccessat(w->other.fd, w->f->sb.name, F_OK, 0), -1);

    /* Another conversation's record is refused. */
    assert_works(sandbox_name(&w->other, "default", "other", name, &w->e), w->e);
    AUTO_FREE char *wrong = mem_printf("%s/%s", w->place, name);
    assert_int_equal(rename(folder, wrong), 0);
    assert_fails(load_conversation(&w->there, name, &sum, &w->e), ERR_INVALID, w->e);
}

static void test_bounds_are_those_of_the_machine(void **state)
{
    struct world *w = *state;
    struct load_sum sum;

    fixture_plant(w->f, "a", "eleven bytes");
    (void)save(w, &w->here);
    w->other.bounds.bytes = 10;
    assert_fails(load_conversation(&w->there, w->f->sb.name, &sum, &w->e), ERR_LIMIT, w->e);
    assert_contains(w->e.text, "SANDBOX_QUOTA");
    w->other.bounds.bytes = 0;
    w->other.bounds.ttl_s = 100;
    w->other.bounds.files = 1;
    assert_int_equal(load(w, &w->there).outcome, LOAD_PLACED);
}

/* ---- several nodes ---- */

static void test_newer_state_of_another_node(void **state)
{
    struct world *w = *state;

    fixture_plant(w->f, "a", "from n1");
    (void)save(w, &w->here);
    assert_int_equal(load(w, &w->here).outcome, LOAD_SAME);
    (void)load(w, &w->there);
    assert_int_equal(save(w, &w->there).outcome, SAVE_SENT); /* it is of n2 now */
    AUTO_FD int dir = dir_of(w, &w->other);
    assert_int_equal(unlinkat(dir, "a", 0), 0);
    AUTO_FD int fd = openat(dir, "b", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "from n2", 7), 7);
    assert_int_equal(save(w, &w->there).outcome, SAVE_SENT);

    /* The first node does not overwrite it, and gets it. */
    fixture_plant(w->f, "a", "late");
    assert_int_equal(save(w, &w->here).outcome, SAVE_STALE);
    assert_int_equal(save(w, &w->here).outcome, SAVE_STALE);
    struct load_sum sum = load(w, &w->here);
    assert_int_equal(sum.outcome, LOAD_STAGED);
    sandbox_close(&w->f->sb);
    assert_works(sandbox_exchange(&w->f->root, w->f->sb.name, sum.staged, &w->e), w->e);
    assert_works(save_record_put(&w->f->root, w->f->sb.name, &w->e), w->e);
    AUTO_FD int now = dir_of(w, &w->f->root);
    assert_text(now, "b", "from n2");
    assert_int_equal(faccessat(now, "a", F_OK, 0), -1);
    assert_int_equal(load(w, &w->here).outcome, LOAD_SAME);
}

static void test_deleted(void **state)
{
    struct world *w = *state;
    char trash[64];

    fixture_plant(w->f, "a", "one");
    (void)save(w, &w->here);
    sandbox_close(&w->f->sb);
    assert_works(sandbox_retire(&w->f->root, w->f->sb.name, TRASH_DIR, trash, &w->e), w->e);
    assert_int_equal(save(w, &w->here).outcome, SAVE_REMOVED);
    assert_int_equal(count_objects(w), 0);
    assert_int_equal(load(w, &w->there).outcome, LOAD_NONE);
    assert_int_equal(save(w, &w->here).outcome, SAVE_REMOVED);
}

/* A node whose copy expires leaves the one that another has taken over. */
static void test_deleted_where_it_no_longer_is(void **state)
{
    struct world *w = *state;
    char trash[64];

    fixture_plant(w->f, "a", "one");
    (void)save(w, &w->here);
    (void)load(w, &w->there);
    (void)save(w, &w->there);
    sandbox_close(&w->f->sb);
    assert_works(sandbox_retire(&w->f->root, w->f->sb.name, TRASH_DIR, trash, &w->e), w->e);
    (void)save(w, &w->here);
    assert_int_equal(count_objects(w), 2);
    assert_int_equal(load(w, &w->there).outcome, LOAD_SAME);
}

static void test_expired_in_the_store(void **state)
{
    struct world *w = *state;

    static const char old[] = "{\"tenant\":\"default\",\"conversationId\":\"talk\","
                              "\"createdAt\":1600000000,\"lastUsedAt\":1600000000}";
    AUTO_FREE char *record = mem_printf(STATE_DIR "/%s.json", w->f->sb.name);
    AUTO_FD int fd = openat(w->f->root.fd, record, O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_int_equal(write(fd, old, strlen(old)), (ssize_t)strlen(old));
    fixture_plant(w->f, "a", "one");
    (void)save(w, &w->here);
    w->other.bounds.ttl_s = 3600;
    assert_int_equal(load(w, &w->there).outcome, LOAD_EXPIRED);
    assert_true(state_expired_at(&w->other, w->f->sb.name) > 0); /* its next caller is told */
    assert_true(unsaved_has(&w->other, w->f->sb.name));
    assert_int_equal(save(w, &w->there).outcome, SAVE_REMOVED);
    assert_int_equal(count_objects(w), 0);
}

/* ---- notes ---- */

static void test_notes(void **state)
{
    struct world *w = *state;
    const struct sandbox_root *root = &w->f->root;
    const char *name = w->f->sb.name;
    AUTO_UNSAVED struct unsaved all = {0}, later = {0};

    assert_works(unsaved_list(root, false, &all, &w->e), w->e);
    assert_int_equal(all.n, 1); /* by its record */
    assert_false(all.items[0].again);
    assert_true(unsaved_take(root, name));
    assert_false(unsaved_take(root, name));
    assert_true(unsaved_has(root, name));
    assert_works(unsaved_list(root, true, &later, &w->e), w->e);
    assert_int_equal(later.n, 1);
    assert_true(later.items[0].since_ms == all.items[0].since_ms);
    unsaved_clear(&later);
    assert_works(unsaved_list(root, false, &later, &w->e), w->e);
    assert_int_equal(later.n, 0);
    unsaved_note_again(root, name);
    unsaved_done(root, name);
    assert_works(unsaved_list(root, false, &later, &w->e), w->e);
    assert_true(later.n == 1 && later.items[0].again);
    unsaved_clear(&later);
    unsaved_note(root, name); /* a change is more than "again" */
    assert_works(unsaved_list(root, false, &later, &w->e), w->e);
    assert_false(later.items[0].again);

    /* The saver was killed. */
    assert_true(unsaved_take(root, name));
    assert_works(unsaved_begin(root, &w->e), w->e);
    assert_true(unsaved_take(root, name));
    unsaved_done(root, name);
    /* What has a record is known; the rest is noted. */
    assert_works(unsaved_begin(root, &w->e), w->e);
    assert_true(unsaved_take(root, name));
    unsaved_done(root, name);
    (void)save(w, &w->here);
    assert_works(unsaved_begin(root, &w->e), w->e);
    assert_false(unsaved_has(root, name));
    /* Without a store nothing is noted. */
    unsaved_end(root);
    unsaved_note(root, name);
    assert_false(unsaved_has(root, name));
}

static void test_which_store(void **state)
{
    struct world *w = *state;
    char second[320];
    struct store_settings settings = {.place = w->place}, other = {.place = second};
    struct store *store = &w->store.base;

    assert_works(store_identify(store, &settings, &w->f->root, &w->e), w->e);
    assert_works(store_identify(store, &settings, &w->f->root, &w->e), w->e);
    assert_works(store_identify(store, &settings, &w->other, &w->e), w->e);
    /* What was mounted there is not. */
    AUTO_FREE char *mark = mem_printf("%s/" STORE_MARK, w->place);
    unlink(mark);
    assert_fails(store_identify(store, &settings, &w->f->root, &w->e), ERR_UNAVAILABLE, w->e);
    assert_contains(w->e.text, "mount");
    /* Another place: all is to be saved there. */
    (void)save(w, &w->here);
    assert_true(unsaved_take(&w->f->root, w->f->sb.name));
    unsaved_done(&w->f->root, w->f->sb.name);
    snprintf(second, sizeof second, "%s/second", w->f->dir);
    mkdir(second, 0700);
    AUTO_STORE struct store *elsewhere = store_open(&other, &w->e);
    assert_works(store_identify(elsewhere, &other, &w->f->root, &w->e), w->e);
    assert_true(unsaved_has(&w->f->root, w->f->sb.name));
}

/* The first calls of a new server each have a process. */
static void test_many_meet_a_store_at_once(void **state)
{
    enum { N = 8, TIMES = 20 };
    struct world *w = *state;
    struct store_settings settings = {.place = w->place};
    AUTO_FREE char *mark = mem_printf("%s/" STORE_MARK, w->place);
    AUTO_FREE char *here = mem_printf("%s/" STATE_DIR "/store", w->f->root.path);
    int status;

    for (int i = 0; i < TIMES; i++) {
        unlink(mark);
        unlink(here);
        for (int n = 0; n < N; n++)
            if (fork() == 0)
                _exit(store_identify(w->store.real, &settings, &w->f->root, &w->e) < 0);
        for (int n = 0; n < N; n++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
        assert_works(store_identify(w->store.real, &settings, &w->f->root, &w->e), w->e);
    }
}

static void test_settings(void **state)
{
    static char good[] = "/mnt/store", relative[] = "store", inside[] = "/srv/root/store",
                above[] = "/srv", bucket[] = "s3://bucket/a/b", bad[] = "s3://B/../x", empty[] = "",
                region[] = "eu-1", file[] = "/etc/credentials";
    static const char *const wrong[] = {relative, inside, above, bad};
    struct store_settings s = {
        .place = good, .endpoint = empty, .region = region, .credentials = file, .ca = empty};
    struct err e = ERR_INIT;

    (void)state;
    assert_works(store_settings_check(&s, "/srv/root", &e), e);
    s.place = bucket;
    assert_works(store_settings_check(&s, "/srv/root", &e), e);
    s.credentials = empty;
    assert_fails(store_settings_check(&s, "/srv/root", &e), ERR_INVALID, e);
    assert_contains(e.text, "SANDBOX_STORE_CREDENTIALS");
    s.credentials = file;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        s.place = (char *)(uintptr_t)wrong[i];
        assert_fails(store_settings_check(&s, "/srv/root", &e), ERR_INVALID, e);
        assert_contains(e.text, "SANDBOX_STORE");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_another_machine_has_it, setup, teardown),
    cmocka_unit_test_setup_teardown(test_hostile_names, setup, teardown),
    cmocka_unit_test_setup_teardown(test_holes_are_not_sent, setup, teardown),
    cmocka_unit_test_setup_teardown(test_nothing_is_sent_twice, setup, teardown),
    cmocka_unit_test_setup_teardown(test_a_file_that_changes_while_it_is_read, setup, teardown),
    cmocka_unit_test_setup_teardown(test_what_cannot_be_saved_is_left_out_at_the_bound_too, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(test_store_away, setup, teardown),
    cmocka_unit_test_setup_teardown(test_store_that_lost_everything, setup, teardown),
    cmocka_unit_test_setup_teardown(test_damage_is_not_taken, setup, teardown),
    cmocka_unit_test_setup_teardown(test_bounds_are_those_of_the_machine, setup, teardown),
    cmocka_unit_test_setup_teardown(test_newer_state_of_another_node, setup, teardown),
    cmocka_unit_test_setup_teardown(test_deleted, setup, teardown),
    cmocka_unit_test_setup_teardown(test_deleted_where_it_no_longer_is, setup, teardown),
    cmocka_unit_test_setup_teardown(test_expired_in_the_store, setup, teardown),
    cmocka_unit_test_setup_teardown(test_notes, setup, teardown),
    cmocka_unit_test_setup_teardown(test_which_store, setup, teardown),
    cmocka_unit_test_setup_teardown(test_many_meet_a_store_at_once, setup, teardown),
    cmocka_unit_test(test_settings),
};
UNIT_TESTS(tests)
