/* Tells those who listen that a run has ended whose caller may not be there any more: what became
 * of its task, and which files it changed. */
#ifndef SANDCGI_FCGI_RUN_NEWS_H
#define SANDCGI_FCGI_RUN_NEWS_H

#include "common/broker/server.h"

/* broker_config.run_ended; ctx is the struct settings, constant. */
void run_news_tell(void *ctx, const struct broker_run_news *news);

#endif
