/*
 * The owner's side of room for a content on its way (broker/rooms.h): a socket to the main process.
 * The room is held as long as a copy of the socket is open. The first message, a job's
 * (jobs/job_room.c), names the sandbox.
 */
#pragma once

#include "common/base/err.h"

#include <jansson.h>
#include <stdint.h>

/* Sends it and waits for the answer: ERR_LIMIT with a sentence for the client; ERR_CANCELLED: the
 * main process has ended, and with it all room; another must be asked. */
int room_ask(int fd, json_t *take_message, struct err *e);

/* May the content have so many bytes, there of which are on the disk? */
int room_keep(int fd, uint64_t bytes, uint64_t there, struct err *e);

/* So many bytes are among the sandbox's files now. A failure does not matter: then what is on its
 * way meanwhile is judged without them until it has come. */
void room_land(int fd, uint64_t bytes);
