/*
 * Runs every fuzz target over its seeds, and over cut and changed copies of them, so that "make
 * check" exercises every parser of foreign bytes with any compiler. Arguments: tests/unit/main.c.
 */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "tests/fuzz/replay.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SEED_MAX (1 << 20)
#define VARIANTS 300 /* of one kind, of one seed */

static int (*one_input)(const uint8_t *data, size_t len);

/* A copy of exactly that size, so that a sanitizer sees a read beyond its end. */
static void run_one(const void *data, size_t len)
{
    AUTO_FREE uint8_t *copy = mem_alloc(len);
    if (len > 0)
        memcpy(copy, data, len);
    one_input(copy, len);
}

static void run_variants(struct buf *seed)
{
    static const char changes[] = {0, '\n', '"', '\\', '=', (char)0x7f, (char)0x80, (char)0xff};
    size_t step = seed->len / VARIANTS + 1;
    for (size_t cut = 0; cut < seed->len; cut += step)
        run_one(seed->data, cut);
    for (size_t i = 0; i < seed->len; i += step) {
        char before = seed->data[i];
        for (size_t k = 0; k < sizeof changes; k++) {
            seed->data[i] = changes[k];
            run_one(seed->data, seed->len);
        }
        seed->data[i] = before;
    }
}

static int replay_file(const char *path, struct err *e)
{
    AUTO_BUF struct buf seed = BUF_INIT(SEED_MAX);
    if (fdio_read_file(path, &seed, e) < 0)
        return -1;
    run_one(buf_str(&seed), seed.len);
    run_variants(&seed);
    return 1;
}

/* How many seeds were replayed, or -1. */
static int replay(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_errno(e, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return replay_file(path, e);
    AUTO_DIR DIR *dir = opendir(path);
    if (!dir)
        return err_errno(e, "%s", path);
    int total = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        AUTO_FREE char *inner = mem_printf("%s/%s", path, entry->d_name);
        int n = replay(inner, e);
        if (n < 0)
            return -1;
        total += n;
    }
    return total;
}

const char *replay_name(const struct unit_group *g, size_t i)
{
    (void)g;
    (void)i;
    return "its_seeds_and_changes_of_them_break_no_promise";
}

/* Of ".../fuzz_json.c" the seeds are in corpus/json. */
bool replay_passes(const struct unit_group *g, size_t i, bool first, bool last)
{
    struct err e = ERR_INIT;
    const char *srcdir = getenv("srcdir"), *name = strrchr(g->name, '/') + strlen("/fuzz_");
    AUTO_FREE char *seeds = mem_printf("%s/tests/fuzz/corpus/%.*s", srcdir ? srcdir : ".",
                                       (int)strcspn(name, "."), name);

    (void)i;
    (void)first;
    (void)last;
    one_input = ((const struct replay_target *)g->tests)->one_input;
    int n = replay(seeds, &e);
    if (n <= 0)
        fprintf(stderr, "%s\n", n < 0 ? e.text : "there are no seeds to replay");
    return n > 0;
}
