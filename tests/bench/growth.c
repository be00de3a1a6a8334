/*
 * What parsers of foreign bytes make of them in memory: the worst input known for each, its size,
 * and by how much it makes a process grow. A bounded parser refuses what would grow beyond its
 * bound.
 */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/engine/docker_list.h"
#include "common/engine/entry_frame.h"
#include "common/rpc/json.h"
#include "common/sandbox/archive/archive.h"
#include "fcgi/hub/fcgi_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB      ((size_t)1024 * 1024)
#define BODY_MAX (16 * MIB)

static bool parse_json(const struct buf *in)
{
    struct err e = ERR_INIT;
    json_auto_t *value = json_parse(in->data, in->len, JSON_MAX_DEPTH, &e);

    return value != NULL;
}

static bool parse_images(const struct buf *in)
{
    struct engine_runners r = {0};
    struct err e = ERR_INIT;
    bool taken = runners_parse(in->data, in->len, "*", &r, &e) == 0;

    engine_runners_clear(&r);
    return taken;
}

static bool parse_records(const struct buf *in)
{
    struct fcgi_reader r;
    struct err e = ERR_INIT;

    fcgi_reader_init(&r, BODY_MAX);
    return fcgi_reader_feed(&r, in->data, in->len, &e) >= 0;
}

static bool parse_entry(const struct buf *in)
{
    struct engine_event event;
    struct err e = ERR_INIT;
    ssize_t n = 1;

    for (size_t at = 0; at < in->len && n > 0; at += (size_t)n)
        n = entry_frame_take(in->data + at, in->len - at, &event, &e);
    return n >= 0;
}

static bool parse_archive(const struct buf *in)
{
    struct err e = ERR_INIT;
    AUTO_FD int archive = memfd_create("archive", MFD_CLOEXEC);
    AUTO_FD int out = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (fdio_write_all(archive, in->data, in->len, &e) < 0 || lseek(archive, 0, SEEK_SET) < 0)
        return false;
    unpack_read(archive, out, UINT64_C(1) << 30);
    return true;
}

static bool repair_text(const struct buf *in)
{
    json_auto_t *text = json_from_bytes(in->data, in->len);

    return text != NULL;
}

static bool decode_base64(const struct buf *in)
{
    AUTO_BUF struct buf out = BUF_INIT(in->len);

    return b64_decode(in->data, in->len, &out) == 0;
}

struct text {
    const char *data;
    size_t len;
};

#define T(s)                                                                                       \
    {                                                                                              \
        s, sizeof s - 1                                                                            \
    }

static const struct row {
    const char *what;
    bool (*parse)(const struct buf *in);
    struct text head, repeat;
    const char *tail;
    size_t bytes;
} rows[] = {
    {"request: objects, as many as are taken", parse_json, T("["), T("{},"), "0]", 299997},
    {"request: keys, as many as are taken", parse_json, T("["), T("{\"a\":0},"), "0]", 533328},
    {"request: millions of objects", parse_json, T("["), T("{},"), "0]", BODY_MAX},
    {"request: one string", parse_json, T("\""), T("x"), "\"", BODY_MAX},
    {"request: one string of escapes", parse_json, T("\""), T("\\u00e9"), "\"", BODY_MAX},
    {"engine: list of images", parse_images, T("["), T("{\"Labels\":{\"a\":\"\"}},"), "{}]",
     500000},
    {"FastCGI: parameters", parse_records, T("\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0"),
     T("\1\4\0\1\0\4\0\0\1\1ab"), "", BODY_MAX},
    {"FastCGI: body", parse_records, T("\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0\1\4\0\1\0\0\0\0"),
     T("\1\5\0\1\0\10\0\0________"), "", BODY_MAX},
    {"container: frames of output", parse_entry, T(""), T("O\0\0\0\5\0\0\0\1x"), "", BODY_MAX},
    {"output that is no UTF-8", repair_text, T(""), T("\xff"), "", 2 * MIB},
    {"base64", decode_base64, T(""), T("QUFB"), "", BODY_MAX},
};

static void make_input(const struct row *row, struct buf *in)
{
    buf_add(in, row->head.data, row->head.len);
    while (in->len + row->repeat.len < row->bytes)
        buf_add(in, row->repeat.data, row->repeat.len);
    buf_add_str(in, row->tail);
}

static long peak_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* In a process of its own, whose peak is that of one input. path: a file instead of the row's. */
static void measure(const struct row *row, const char *path)
{
    AUTO_BUF struct buf in = BUF_INIT(64 * MIB);
    struct err e = ERR_INIT;

    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0) {
        waitpid(pid, NULL, 0);
        return;
    }
    if (!path)
        make_input(row, &in);
    else if (fdio_read_file(path, &in, &e) < 0)
        fprintf(stderr, "%s\n", e.text);
    long before = peak_kib();
    bool taken = row->parse(&in);
    double mb = (double)in.len / 1e6, more = (double)(peak_kib() - before) * 1024 / 1e6;
    printf("| %s | %.1f | %s | %.1f | %.1f |\n", row->what, mb, taken ? "yes" : "no", more,
           more / mb);
    fflush(stdout);
    _exit(0);
}

/* Arguments: archives. */
int main(int argc, char **argv)
{
    printf("| input | MB | taken | grows by MB | factor |\n|---|---:|---|---:|---:|\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        measure(&rows[i], NULL);
    for (int i = 1; i < argc; i++)
        measure(&(struct row){.what = argv[i], .parse = parse_archive}, argv[i]);
    return 0;
}
