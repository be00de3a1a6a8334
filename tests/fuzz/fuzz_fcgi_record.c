/* FastCGI records in any order, from a web server or another peer of the hub's socket. */
#include "config.h"

#include "fcgi/hub/fcgi_record.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 1000

/* The result of reading the bytes in pieces of that size. */
static int read_in_pieces(struct fcgi_reader *r, const uint8_t *data, size_t len, size_t piece)
{
    struct err e = ERR_INIT;
    int rc = 0;

    fcgi_reader_init(r, BODY_MAX);
    for (size_t at = 0; at < len && rc == 0; at += piece)
        rc = fcgi_reader_feed(r, data + at, len - at < piece ? len - at : piece, &e);
    PROMISE((rc == 1) == r->complete || rc < 0);
    PROMISE(r->params.len <= FCGI_PARAMS_MAX && r->body.len <= BODY_MAX + 65536);
    if (rc < 0)
        promise_error(&e);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fcgi_reader whole, pieces;
    int rc = read_in_pieces(&whole, data, len, len ? len : 1);

    PROMISE(read_in_pieces(&pieces, data, len, 3) == rc);
    if (rc == 1) {
        const char *method = fcgi_reader_param(&whole, "REQUEST_METHOD");
        const char *again = fcgi_reader_param(&pieces, "REQUEST_METHOD");
        PROMISE(whole.request_id > 0 && whole.request_id == pieces.request_id);
        PROMISE(!method == !again && (!method || strcmp(method, again) == 0));
        PROMISE(whole.body.len >= pieces.body.len);
    }
    fcgi_reader_clear(&whole);
    fcgi_reader_clear(&pieces);
    return 0;
}
