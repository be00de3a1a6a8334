/* The broker's configuration, as the settings say it. */
#ifndef SANDCGI_FCGI_PROCESS_BROKER_CONFIG_H
#define SANDCGI_FCGI_PROCESS_BROKER_CONFIG_H

#include "common/broker/server.h"
#include "fcgi/settings.h"

/* Pointers are borrowed from s. client_uid: who besides the broker's own account may connect. */
struct broker_config broker_config_of(const struct settings *s, uid_t client_uid);

#endif
