/* Runner images in the engine's list of images (GET /images/json). The labels are an image author's
 * text: bounded, checked. */
#ifndef SANDCGI_ENGINE_DOCKER_RUNNERS_H
#define SANDCGI_ENGINE_DOCKER_RUNNERS_H

#include "common/base/err.h"
#include "common/engine/engine.h"
#include "common/engine/entry_frame.h"

#include <stddef.h>

#define RUNNERS_MAX          64
#define RUNNER_IMAGE_MAX     255
#define RUNNER_VERSION_MAX   64
#define RUNNER_LIBRARIES_MAX 8192
#define RUNNER_PRELOAD_MAX   ENTRY_PRELOAD_MAX

/*
 * Images with the label sandbox.runner=true, a language within the grammar and a tag that allow
 * admits; the newest of each language. Anything else in the reply is passed over. ERR_PROTOCOL when
 * the reply is not a list.
 */
int runners_parse(const char *reply, size_t len, const char *allow, struct engine_runners *out,
                  struct err *e);

#endif
