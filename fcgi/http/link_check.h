/* What our nginx asks before it serves a file or takes a body: is this link good? */
#ifndef SANDCGI_FCGI_HTTP_LINK_CHECK_H
#define SANDCGI_FCGI_HTTP_LINK_CHECK_H

#include "fcgi/app.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/http/http_request.h"

/* Answers 204, or 403 with the status that the client is to see as Sandcgi-Verdict: nginx takes no
 * other status for a "no". */
void link_check_serve(const struct app *app, struct http_request *r, struct http_answer *a);

#endif
