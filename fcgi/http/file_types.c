#include "config.h"

#include "fcgi/http/file_types.h"

#include "common/base/auto.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct row {
    const char *extension;
    struct file_type type;
};

/* Sorted by extension (bsearch). */
static const struct row rows[] = {
    {"avif", {"image/avif", true}},
    {"bmp", {"image/bmp", true}},
    {"css", {"text/css", false}},
    {"csv", {"text/csv; charset=utf-8", true}},
    {"db", {"application/vnd.sqlite3", false}},
    {"docx", {"application/vnd.openxmlformats-officedocument.wordprocessingml.document", false}},
    {"gif", {"image/gif", true}},
    {"gz", {"application/gzip", false}},
    {"htm", {"text/html; charset=utf-8", false}},
    {"html", {"text/html; charset=utf-8", false}},
    {"ini", {"text/plain; charset=utf-8", false}},
    {"ipynb", {"application/json", false}},
    {"jpeg", {"image/jpeg", true}},
    {"jpg", {"image/jpeg", true}},
    {"js", {"text/javascript", false}},
    {"json", {"application/json", true}},
    {"jsonl", {"application/x-ndjson", false}},
    {"log", {"text/plain; charset=utf-8", true}},
    {"md", {"text/markdown; charset=utf-8", true}},
    {"mjs", {"text/javascript", false}},
    {"mp3", {"audio/mpeg", true}},
    {"mp4", {"video/mp4", true}},
    {"ndjson", {"application/x-ndjson", false}},
    {"ogg", {"audio/ogg", true}},
    {"parquet", {"application/vnd.apache.parquet", false}},
    {"pdf", {"application/pdf", false}},
    {"png", {"image/png", true}},
    {"pptx", {"application/vnd.openxmlformats-officedocument.presentationml.presentation", false}},
    {"py", {"text/plain; charset=utf-8", false}},
    {"sh", {"text/plain; charset=utf-8", false}},
    {"sql", {"text/plain; charset=utf-8", false}},
    {"sqlite", {"application/vnd.sqlite3", false}},
    {"svg", {"image/svg+xml", false}},
    {"tar", {"application/x-tar", false}},
    {"tgz", {"application/gzip", false}},
    {"toml", {"text/plain; charset=utf-8", false}},
    {"ts", {"text/plain; charset=utf-8", false}},
    {"tsv", {"text/tab-separated-values; charset=utf-8", true}},
    {"txt", {"text/plain; charset=utf-8", true}},
    {"wav", {"audio/wav", true}},
    {"webm", {"video/webm", true}},
    {"webp", {"image/webp", true}},
    {"xhtml", {"application/xhtml+xml", false}},
    {"xlsx", {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", false}},
    {"xml", {"text/xml", false}},
    {"yaml", {"text/plain; charset=utf-8", false}},
    {"yml", {"text/plain; charset=utf-8", false}},
    {"zip", {"application/zip", false}},
};

static int compare(const void *extension, const void *row)
{
    return strcasecmp(extension, ((const struct row *)row)->extension);
}

struct file_type file_type_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
    const struct row *row = NULL;

    if (dot > base) /* ".csv" has no extension */
        row = bsearch(dot + 1, rows, ARRAY_LEN(rows), sizeof rows[0], compare);
    return row ? row->type : (struct file_type){"application/octet-stream", false};
}
