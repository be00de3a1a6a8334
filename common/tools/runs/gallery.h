/*
 * The pictures of a run as image content: in the order in which they were made, none twice, as many
 * as images_max of broker_limits, and together as much as a client takes. What is drawn as SVG, has
 * more pixels than a model sees or too many bytes is drawn or scaled by one program inside the
 * sandbox; the file stays as it is.
 */
#pragma once

#include "common/tools/runs/run_files.h"

/* Appends a line about them to *about, unless there is one picture only. */
void gallery_show(const struct mcp_tool_call *c, const struct run_files *files,
                  struct mcp_result *out, struct buf *about);
