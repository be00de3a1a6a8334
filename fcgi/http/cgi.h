/* The plain CGI front end (RFC 3875): one request from the environment and standard input, then the
 * process ends. */
#ifndef SANDCGI_FCGI_HTTP_CGI_H
#define SANDCGI_FCGI_HTTP_CGI_H

#include "fcgi/app.h"

#include <stdbool.h>

/* Was this process started by a web server as a CGI program? */
bool cgi_detected(void);

void cgi_serve(const struct app *app);

#endif
