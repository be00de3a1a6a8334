#include "config.h"

#include "common/sandbox/files/media.h"

#include "common/base/auto.h"
#include "common/base/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN  "application/octet-stream"
#define HEAD_MAX 65536
#define THEN_AT  8
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

/* What files begin with; at offset 8, too, where then is not empty. */
static const struct {
    const char *start;
    size_t len;
    const char *then;
    const char *type;
} starts[] = {
#define START(bytes) (bytes), sizeof(bytes) - 1
    {START("\x89PNG\r\n\x1a\n"), "", "image/png"},
    {START("\xff\xd8\xff"), "", "image/jpeg"},
    {START("GIF87a"), "", "image/gif"},
    {START("GIF89a"), "", "image/gif"},
    {START("RIFF"), "WEBP", "image/webp"},
    {START("RIFF"), "WAVE", "audio/wav"},
    {START("II*\0"), "", "image/tiff"},
    {START("MM\0*"), "", "image/tiff"},
    {START("%PDF-"), "", "application/pdf"},
    {START("%!PS"), "", "application/postscript"},
    {START("{\\rtf"), "", "application/rtf"},
    {START("PK\x03\x04"), "", "application/zip"},
    {START("PK\x05\x06"), "", "application/zip"}, /* without an entry */
    {START("\x1f\x8b"), "", "application/gzip"},
    {START("BZh"), "", "application/x-bzip2"},
    {START("\xfd\x37zXZ\0"), "", "application/x-xz"},
    {START("\x28\xb5\x2f\xfd"), "", "application/zstd"},
    {START("7z\xbc\xaf\x27\x1c"), "", "application/x-7z-compressed"},
    {START("SQLite format 3\0"), "", "application/vnd.sqlite3"},
    {START("PAR1"), "", "application/vnd.apache.parquet"},
    {START("ARROW1\0\0"), "", "application/vnd.apache.arrow.file"},
    {START("\x93NUMPY"), "", "application/x-npy"},
    {START("\x89HDF\r\n\x1a\n"), "", "application/x-hdf5"},
    {START("\0asm"), "", "application/wasm"},
    {START("OggS"), "", "audio/ogg"},
    {START("fLaC"), "", "audio/flac"},
    {START("ID3"), "", "audio/mpeg"},
#undef START
};

static bool is_text(const char *head, size_t len)
{
    static const char controls[] = "\a\b\t\n\v\f\r\x1b";

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)head[i] < ' ' && !memchr(controls, head[i], sizeof controls - 1))
            return false;
    return utf8_valid(head, utf8_whole_len(head, len));
}

static const char *by_content(const char *head, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        size_t then = strlen(starts[i].then);
        if (len >= starts[i].len && memcmp(head, starts[i].start, starts[i].len) == 0 &&
            (then == 0 ||
             (len >= THEN_AT + then && memcmp(head + THEN_AT, starts[i].then, then) == 0)))
            return starts[i].type;
    }
    return is_text(head, len < HEAD_MAX ? len : HEAD_MAX) ? "text/plain" : NULL;
}

const char *media_type(const char *name, const void *head, size_t head_len)
{
    const char *type = by_extension(name);

    if (!type && head && head_len > 0)
        type = by_content(head, head_len);
    return type ? type : UNKNOWN;
}
