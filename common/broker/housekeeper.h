/*
 * The housekeeper: the broker's long-lived child that talks to the engine between calls. It
 * tells the broker which runner images there are (at start, and within seconds of a change), and
 * removes containers that have lost their supervisor.
 */
#ifndef SANDCGI_BROKER_HOUSEKEEPER_H
#define SANDCGI_BROKER_HOUSEKEEPER_H

#include "common/sandbox/sandbox.h"
#include "common/scheduler/broker_config.h"

/*
 * The housekeeper's life; does not return until fd (its end of a socket pair with the broker) is
 * closed. It sends messages of sock.h: {"runners":[…]} or {"engineError":"why the engine cannot
 * be reached"}; the broker sends {"sweep":true} when a child died without cleaning up.
 */
void housekeeper_main(const struct broker_config *config, const struct sandbox_root *root, int fd);

/* Removes what processes that ended too early left in the tree's own folders. now is Unix time. */
void housekeeper_sweep_files(const struct sandbox_root *root, int64_t now);

#endif
