/* The engine's lists of images and containers (GET /images/json, /containers/json). The labels of
 * an image are its author's text: bounded and checked. */
#pragma once

#include "common/base/err.h"
#include "common/engine/engine.h"
#include "common/engine/entry_frame.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNNERS_MAX          64
#define RUNNER_IMAGE_MAX     255
#define RUNNER_LANGUAGES_MAX 1024 /* bytes of a label that lists them */
#define RUNNER_VERSION_MAX   64
#define RUNNER_LIBRARIES_MAX 8192
#define RUNNER_PRELOAD_MAX   ENGINE_PRELOAD_MAX

/*
 * Images with the label sandbox.runner=true, a language within the grammar and a tag that allow
 * admits, once for each of their languages; the newest of each. Anything else in the reply is
 * passed over. ERR_PROTOCOL when the reply is not a list.
 */
int runners_parse(const char *reply, size_t len, const char *allow, struct engine_runners *out,
                  struct err *e);

/*
 * Whether container (one member of the list) carries our labels with exactly this instance; then
 * its run id (borrowed, "" when the label is missing) and its deadline. One that cannot be read is
 * 0, long passed: all of ours have one.
 */
bool reap_read(const json_t *container, const char *instance, const char **out_run_id,
               int64_t *out_deadline);
