#include "config.h"

#include "common/sandbox/files/media.h"

#include "common/base/auto.h"

#include <magic.h>
#include <stdbool.h>
#include <string.h>

#define UNKNOWN  "application/octet-stream"
#define HEAD_MAX 65536
#define EXT_MAX  8

struct media_row {
    char ext[EXT_MAX + 1];
    const char *type;
};

/* Sorted by extension (bsearch); lower case. */
static const struct media_row table[] = {
    {"7z", "application/x-7z-compressed"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"c", "text/x-c"},
    {"cpp", "text/x-c++"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"db", "application/vnd.sqlite3"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"epub", "application/epub+zip"},
    {"feather", "application/vnd.apache.arrow.file"},
    {"flac", "audio/flac"},
    {"geojson", "application/geo+json"},
    {"gif", "image/gif"},
    {"go", "text/x-go"},
    {"gz", "application/gzip"},
    {"h", "text/x-c"},
    {"heic", "image/heic"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", "text/calendar"},
    {"ini", "text/plain"},
    {"ipynb", "application/x-ipynb+json"},
    {"java", "text/x-java"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"jsonl", "application/x-ndjson"},
    {"jsx", "text/javascript"},
    {"log", "text/plain"},
    {"m4a", "audio/mp4"},
    {"map", "application/json"},
    {"markdown", "text/markdown"},
    {"md", "text/markdown"},
    {"mjs", "text/javascript"},
    {"mkv", "video/x-matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"ndjson", "application/x-ndjson"},
    {"npy", "application/x-npy"},
    {"npz", "application/zip"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"ogg", "audio/ogg"},
    {"orc", "application/vnd.apache.orc"},
    {"otf", "font/otf"},
    {"parquet", "application/vnd.apache.parquet"},
    {"pdf", "application/pdf"},
    {"php", "text/x-php"},
    {"pickle", "application/octet-stream"},
    {"pkl", "application/octet-stream"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"ps", "application/postscript"},
    {"py", "text/x-python"},
    {"r", "text/x-r"},
    {"rar", "application/vnd.rar"},
    {"rb", "text/x-ruby"},
    {"rs", "text/x-rust"},
    {"rst", "text/x-rst"},
    {"rtf", "application/rtf"},
    {"sh", "application/x-sh"},
    {"sql", "application/sql"},
    {"sqlite", "application/vnd.sqlite3"},
    {"sqlite3", "application/vnd.sqlite3"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tex", "application/x-tex"},
    {"tgz", "application/gzip"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ts", "text/x-typescript"},
    {"tsv", "text/tab-separated-values"},
    {"tsx", "text/x-typescript"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

static int compare_ext(const void *key, const void *row)
{
    return strcmp(key, ((const struct media_row *)row)->ext);
}

static const char *by_extension(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    const char *dot = strrchr(base, '.');
    char ext[EXT_MAX + 1];
    size_t n = 0;

    if (!dot || dot == base) /* ".csv" is a hidden file without an extension */
        return NULL;
    for (const char *p = dot + 1; *p; p++) {
        if (n == EXT_MAX)
            return NULL;
        ext[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
    }
    ext[n] = '\0';
    const struct media_row *row = bsearch(ext, table, ARRAY_LEN(table), sizeof(table[0]),
                                          compare_ext);
    return row ? row->type : NULL;
}

/*
 * Loaded at the first use only: most workers never meet an unknown extension, and the database is
 * large. The checks left out unpack or way nested structures of a file that a hostile program
 * made, or guess badly.
 */
static magic_t open_magic(void)
{
    static magic_t cookie;
    static bool tried;

    if (tried)
        return cookie;
    tried = true;
    cookie = magic_open(MAGIC_MIME_TYPE | MAGIC_NO_CHECK_COMPRESS | MAGIC_NO_CHECK_ELF |
                        MAGIC_NO_CHECK_CDF | MAGIC_NO_CHECK_CSV);
    if (cookie && magic_load(cookie, NULL) != 0) {
        magic_close(cookie);
        cookie = NULL;
    }
    return cookie;
}

/* libmagic's answer goes into JSON and headers: it has to look like type/subtype. */
static bool is_media_type(const char *s)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$&^_.+-";
    size_t type = strspn(s, plain);

    if (type == 0 || s[type] != '/')
        return false;
    size_t subtype = strspn(s + type + 1, plain);
    return subtype > 0 && s[type + 1 + subtype] == '\0';
}

static const char *by_content(const void *head, size_t head_len)
{
    magic_t cookie = open_magic();

    if (!cookie)
        return NULL;
    const char *type = magic_buffer(cookie, head, head_len < HEAD_MAX ? head_len : HEAD_MAX);
    return type && is_media_type(type) ? type : NULL;
}

const char *media_type(const char *name, const void *head, size_t head_len)
{
    const char *type = by_extension(name);

    if (!type && head && head_len > 0)
        type = by_content(head, head_len);
    return type ? type : UNKNOWN;
}
