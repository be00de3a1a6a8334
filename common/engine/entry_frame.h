/*
 * The entry protocol (label sandbox.protocol=1), both directions; runners/README.md describes it
 * for authors of images.
 *
 * To the container's stdin goes one envelope: "SBX1", then records {tag, length as 32 bits
 * big-endian, payload}. From its stdout come frames {tag, length, payload}: 'O' and 'E' the
 * program's two streams, 'R' the report, once, last. Everything that comes back is written by a
 * container and so is hostile: it is passed through or refused, never kept.
 */
#ifndef SANDCGI_ENGINE_ENTRY_FRAME_H
#define SANDCGI_ENGINE_ENTRY_FRAME_H

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/docker_frame.h"
#include "common/engine/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENTRY_MAGIC       "SBX1"
#define ENTRY_FRAME_MAX   65536 /* payload of one frame */
#define ENTRY_REPORT_MAX  1024
#define ENTRY_RECORD_HEAD 5

struct entry_report {
    int exit_code; /* 0..255; -1 when ended by a signal */
    int signal;    /* 1..64; 0 when not */
    uint64_t cpu_us;
    uint64_t peak_memory_bytes;
    uint64_t oom_kills;
    bool timed_out; /* the entry program's own deadline passed first */
};

/* All zero is the state before the first byte. */
struct entry_frame {
    unsigned char head[ENTRY_RECORD_HEAD];
    size_t head_have;
    uint32_t left;
    char tag;
    char report_text[ENTRY_REPORT_MAX];
    size_t report_len;
    bool reported; /* report is filled */
    struct entry_report report;
};

/*
 * The program's output goes to sink as it arrives. FRAME_STOP when the report is complete (reported
 * is true; what follows is ignored) or when the sink said stop (reported is false); FRAME_BROKEN
 * with ERR_PROTOCOL on anything else than the protocol allows.
 */
enum frame_push entry_frame_push(struct entry_frame *f, const char *data, size_t len,
                                 const struct engine_sink *sink, struct err *e);

/* Bytes that entry_write appends for spec; ERR_LIMIT when they do not fit 32-bit records. */
int entry_size(const struct engine_spec *spec, size_t *out, struct err *e);
/* Appends the envelope of spec. */
int entry_write(const struct engine_spec *spec, struct buf *out, struct err *e);

#endif
