/* Telling output to a waiter while it comes: batches of whole lines, and never more than the waiter
 * takes. Private to common/broker. */
#ifndef SANDCGI_SUPERVISOR_OUTPUT_STREAM_H
#define SANDCGI_SUPERVISOR_OUTPUT_STREAM_H

#include "common/records/output_ring.h"
#include "common/supervisor/waiters.h"

#define OUTPUT_RING_TELL_MS 50 /* output is told so often at most */

/*
 * The next batch of output for a live waiter that has taken the one before; over: no more will
 * come. True when there is more to tell at the next moment. A line without its end is told when it
 * has waited: then waiter.rest_by says when to call again.
 */
bool output_stream_send(const struct output_ring *output, struct waiter *r, bool over);

#endif
