#include "config.h"

#include "common/tools/files/uri.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/parse.h"
#include "common/sandbox/files/files.h"

#include <stdint.h>
#include <string.h>

#define SCHEME  "sandbox://"
#define URI_MAX (sizeof(SCHEME) + 3 * (SANDBOX_ID_MAX + FILES_NAME_MAX) + 1)

static void uri_encode(const char *s, bool keep_slashes, struct buf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *s; s++) {
        if (strchr(plain, *s) || (keep_slashes && *s == '/'))
            buf_add_char(out, *s);
        else
            buf_addf(out, "%%%02X", (unsigned char)*s);
    }
}

char *uri_of_file(const char *conversation, const char *name)
{
    AUTO_BUF struct buf uri = BUF_INIT(sizeof(SCHEME) + 3 * (strlen(conversation) + strlen(name)) +
                                       1);

    buf_add_str(&uri, SCHEME);
    uri_encode(conversation, false, &uri);
    buf_add_char(&uri, '/');
    uri_encode(name, true, &uri);
    return buf_take(&uri);
}

/* NULL when the part has a character that is not allowed there, or a NUL. Heap. */
static char *uri_decode(const char *s, size_t len)
{
    AUTO_BUF struct buf out = BUF_INIT(len);

    for (size_t i = 0; i < len; i++) {
        if (s[i] == '?' || s[i] == '#')
            return NULL;
        if (s[i] != '%') {
            buf_add_char(&out, s[i]);
            continue;
        }
        int byte = parse_percent(s + i, len - i);
        if (byte <= 0)
            return NULL;
        buf_add_char(&out, (char)byte);
        i += 2;
    }
    return buf_take(&out);
}

int uri_parse(const char *uri, struct uri_file *out, struct err *e)
{
    AUTO_URI_FILE struct uri_file f = {0};
    struct err why = ERR_INIT;
    const char *slash = NULL;

    if (strlen(uri) <= URI_MAX && strncmp(uri, SCHEME, strlen(SCHEME)) == 0) {
        uri += strlen(SCHEME);
        slash = strchr(uri, '/');
    }
    if (slash) {
        f.conversation = uri_decode(uri, (size_t)(slash - uri));
        f.name = uri_decode(slash + 1, strlen(slash + 1));
    }
    const size_t len = f.conversation ? strlen(f.conversation) : 0;
    if (len == 0 || len > SANDBOX_ID_MAX || !sandbox_text_ok(f.conversation, len) || !f.name ||
        files_check_name("name", f.name, strlen(f.name), &why) < 0)
        return err_set(e, ERR_NOT_FOUND, "there is no such resource");
    *out = f;
    f = (struct uri_file){0};
    return 0;
}

void uri_file_clear(struct uri_file *f)
{
    free(f->conversation);
    free(f->name);
    *f = (struct uri_file){0};
}

bool uri_is_ours(const char *uri)
{
    AUTO_URI_FILE struct uri_file f = {0};
    struct err e = ERR_INIT;

    if (uri_parse(uri, &f, &e) < 0)
        return false;
    AUTO_FREE char *again = uri_of_file(f.conversation, f.name);
    return strcmp(again, uri) == 0;
}
