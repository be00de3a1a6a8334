/* How persistent sandboxes are told to a client: the rows of create_sandbox, get_sandbox_status,
 * close_sandbox and reset_session. */
#ifndef SANDCGI_TOOLS_SANDBOXES_SANDBOX_ROWS_H
#define SANDCGI_TOOLS_SANDBOXES_SANDBOX_ROWS_H

#define SANDBOX_ID_HELP "The sandbox's sandboxId, as create_sandbox told it."

#endif
