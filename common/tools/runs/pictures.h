/*
 * The pictures among a run's files as image content, so that a model can look at them. Nothing is
 * decoded here: PNG, JPEG, GIF and WebP are passed on when they begin as such, SVG is drawn by a
 * program inside the sandbox.
 */
#ifndef SANDCGI_TOOLS_RUNS_PICTURES_H
#define SANDCGI_TOOLS_RUNS_PICTURES_H

#include "common/base/buf.h"
#include "common/mcp/features/tool.h"
#include "common/tools/runs/run_files.h"

/* The rows have their mimeType. Bounded by image_max and images_max of tools_limits. */
void pictures_add(const struct mcp_tool_call *c, const struct run_files *files,
                  struct mcp_result *out);

/* One picture's whole content as an image block; NULL when it is none of these by its type and its
 * first bytes. New reference. */
json_t *picture_new(const char *mime_type, const struct buf *content);

#endif
