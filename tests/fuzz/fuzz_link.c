/* A request's URI as a signed link or a file's URL: whatever it says, nothing is signed that we did
 * not sign, and a subject is a path that stays where it is. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/sandbox/links/file_link.h"
#include "common/sandbox/links/link.h"

#include <string.h>

static void check_subject(const struct link_keys *keys, const char *uri, enum link_kind kind)
{
    struct err e = ERR_INIT;
    AUTO_FREE char *subject = link_subject(uri, kind);

    if (!subject)
        return;
    PROMISE(strlen(subject) <= LINK_SUBJECT_MAX && subject[0] != '/' && !strstr(subject, "//"));
    PROMISE(strncmp(subject, "../", 3) != 0 && !strstr(subject, "/../"));
    PROMISE(link_verify(keys, kind, subject, uri, 0, &e) < 0);

    AUTO_FREE char *url = link_url(&keys->now, "https://x.test", kind, subject, 1);
    AUTO_FREE char *again = link_subject(url, kind);
    PROMISE(again && strcmp(again, subject) == 0);
    PROMISE(link_verify(keys, kind, subject, url, 0, &e) == 0);
}

static void check_file(const char *uri, bool with_expiry)
{
    static const struct file_keys keys = {
        .now = {"no key of ours"}, .old = {"nor this"}, .old_until = 1};
    AUTO_FILE_URL struct file_url u = {.path = NULL};
    struct err e = ERR_INIT;

    if (file_url_parse(uri, with_expiry, &u, &e) < 0)
        return;
    PROMISE(strlen(u.id) == FILE_ID_LEN && !strchr(u.id, '/') && !strchr(u.id, '.'));
    PROMISE(u.path[0] != '/' && !strstr(u.path, "//"));
    PROMISE(strncmp(u.path, "../", 3) != 0 && !strstr(u.path, "/../"));
    PROMISE((u.expires > 0) == with_expiry);
    PROMISE(file_url_check(&keys, &u, 0, &e) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct link_keys keys = {.now = {{1, 2, 3}}, .old = {{4}}, .old_until = 1};
    AUTO_FREE char *uri = mem_strndup((const char *)data, size);

    for (int kind = LINK_UPLOAD; kind <= LINK_ARCHIVE; kind++)
        check_subject(&keys, uri, (enum link_kind)kind);
    check_file(uri, false);
    check_file(uri, true);
    return 0;
}
