/*
 * The run protocol on the broker's socket, both directions. Private to common/broker.
 *
 * A connection carries one request and one reply, each a message of sock.h holding a JSON object:
 *   request  {"op":"run"|"put"|"open"|"list"|"names"|"runners"|"ping", …}
 *   reply    {"result": …}  or  {"error":{"kind":"…","text":"…"}}
 * With put the content's descriptor rides along, with open's reply the file's.
 */
#ifndef SANDCGI_BROKER_WIRE_H
#define SANDCGI_BROKER_WIRE_H

#include "common/broker/run.h"

#include "common/base/clock.h"

#include <jansson.h>

/* Code, stdin, arguments and environment, each escaped at worst sixfold in JSON, stay below this.
 */
#define WIRE_MESSAGE_MAX (64u * 1024 * 1024)

/* The "run" request as JSON, and back. run_decode points into object, which must outlive *out;
 * clear it with run_decoded_clear. */
json_t *wire_run_encode(const struct run_request *request);
int wire_run_decode(const json_t *object, struct run_request *out, struct err *e);
void wire_run_decoded_clear(struct run_request *request);

/* Sends a JSON object with an optional descriptor (-1: none). */
int wire_send(int fd, const json_t *message, int pass_fd, struct err *e);
/* Receives a JSON object; new reference or NULL. out_fd may be NULL. */
json_t *wire_recv(int fd, int *out_fd, struct deadline d, struct err *e);

/* {"result": take_result} and {"error": …}. */
json_t *wire_result_new(json_t *take_result);
json_t *wire_error_new(const struct err *problem);

#endif
