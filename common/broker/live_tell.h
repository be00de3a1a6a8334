/* Telling output to a reader while it comes: batches of whole lines, and never more than the reader
 * takes. Private to common/broker. */
#ifndef SANDCGI_BROKER_LIVE_TELL_H
#define SANDCGI_BROKER_LIVE_TELL_H

#include "common/broker/live.h"
#include "common/broker/readers.h"

#define LIVE_TELL_MS 50 /* output is told so often at most */

/*
 * The next batch of output for a live reader that has taken the one before; over: no more will
 * come. True when there is more to tell at the next moment. A line without its end is told when it
 * has waited: then reader.rest_by says when to call again.
 */
bool live_tell(const struct live *output, struct reader *r, bool over);

#endif
