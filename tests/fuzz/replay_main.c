/*
 * The main of a fuzz target without a fuzzer: runs it over its seeds, and over cut and changed
 * copies of them, so that "make check" exercises every parser of foreign bytes with any compiler.
 * Arguments: files or folders; none: the target's folder below tests/fuzz/corpus.
 */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SEED_MAX (1 << 20)
#define VARIANTS 300 /* of one kind, of one seed */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A copy of exactly that size, so that a sanitizer sees a read beyond its end. */
static void run_one(const void *data, size_t len)
{
    AUTO_FREE uint8_t *copy = mem_alloc(len);
    if (len > 0)
        memcpy(copy, data, len);
    LLVMFuzzerTestOneInput(copy, len);
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

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    const char *srcdir = getenv("srcdir"), *name = strrchr(argv[0], '/');
    name = name ? name + 1 : argv[0];
    if (strncmp(name, "fuzz_", 5) == 0)
        name += 5;
    AUTO_FREE char *own = mem_printf("%s/tests/fuzz/corpus/%s", srcdir ? srcdir : ".", name);

    int total = argc > 1 ? 0 : replay(own, &e);
    for (int i = 1; i < argc && total >= 0; i++) {
        int n = replay(argv[i], &e);
        total = n < 0 ? -1 : total + n;
    }
    if (total > 0)
        return 0;
    fprintf(stderr, "%s\n", total < 0 ? e.text : "there are no seeds to replay");
    return 1;
}
