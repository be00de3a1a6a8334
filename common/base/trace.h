/* Names that lines of several processes about one call have in common (notes of log.h): its trace,
 * as of W3C trace context, version 00 ("00-<32 hex>-<16 hex>-<2 hex>"), and its conversation. */
#pragma once

#include <stdbool.h>

#define TRACE_LEN 55

/* Notes (log.h) the trace that a caller's traceparent names, with a span of this server; of one
 * that is NULL or malformed nothing is noted. */
bool trace_take(const char *traceparent);
/* Notes a new trace. */
void trace_begin(void);
/* Notes the tenant, and a hash of both that names the conversation. Either NULL: nothing is noted
 * of it. */
void trace_conversation(const char *tenant, const char *conversation);
