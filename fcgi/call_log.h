/* The line of the log that each call has, and what it says of one that is refused. */
#pragma once

#include "common/mcp/server.h"

/* "ok", "sent_on", "failed" or "refused". error: the kind of a tool's error; NULL: none. Of one
 * that is not ok the log has a reason from now on; of one that is, none. */
const char *call_log_outcome(int status, const char *error);

/* One line for a message that was refused or has failed; it is mcp_origin.refused, and what stdio
 * says, where there is no line for each call. */
void call_log_refusal(const struct mcp_answer *a);
