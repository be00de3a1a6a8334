/*
 * The URIs of files in sandboxes: sandbox://<conversationId>/<name>, in both parts everything but
 * letters, digits and "-._~" percent-encoded (the slashes between a name's folders are not).
 */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>

/* As an RFC 6570 template. */
#define URI_TEMPLATE              "sandbox://{conversationId}/{+path}"
#define URI_VARIABLE_CONVERSATION "conversationId"
#define URI_VARIABLE_PATH         "path"

/* Heap. */
char *uri_of_file(const char *conversation, const char *name);

struct uri_file {
    char *conversation;
    char *name; /* passes files_check_name */
};

#define AUTO_URI_FILE AUTO(uri_file_clear)

/* Reads a client's URI; other spellings than ours are accepted. ERR_NOT_FOUND when it cannot be
 * that of a file. */
int uri_parse(const char *uri, struct uri_file *out, struct err *e);
void uri_file_clear(struct uri_file *f);

/* Is it in the spelling of uri_of_file? Subscriptions need that one. */
bool uri_is_ours(const char *uri);
