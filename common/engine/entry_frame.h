/*
 * The entry protocol (label sandbox.protocol=1), both directions; runners/README.md describes it
 * for authors of images.
 *
 * To the container's stdin goes one envelope: "SBX1", then records {tag, length as 32 bits
 * big-endian, payload}; "SBX1" and 'P' (names to preload) may come long before the rest. From
 * its stdout come frames {tag, length, payload}: 'W' the tier of a warm container, 'S'
 * the program starts, 'O' and 'E' the program's two streams, 'R' the report, once, last. Everything
 * that comes back is written by a container and so is hostile: it is passed through or refused,
 * never kept.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/engine.h"
#include "common/engine/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENTRY_MAGIC       "SBX1"
#define ENTRY_FRAME_MAX   65536 /* payload of one frame */
#define ENTRY_REPORT_MAX  1024
#define ENTRY_WORD_MAX    32   /* payload of 'W' and 'S' */
#define ENTRY_PRELOAD_MAX 1024 /* payload of P */
#define ENTRY_RECORD_HEAD 5

struct entry_report {
    int exit_code; /* 0..255; -1 when ended by a signal */
    int signal;    /* 1..64; 0 when not */
    uint64_t cpu_us;
    uint64_t peak_memory_bytes;
    uint64_t oom_kills;
    bool timed_out; /* the entry program's own deadline passed first */
};

/* All zero is the state before the first byte, with no program handed over yet. */
struct entry_frame {
    bool handed; /* set by the owner before the program is sent: until then output is refused */

    struct frame_reader reader;
    const struct engine_sink *sink; /* borrowed during a push */
    char text[ENTRY_REPORT_MAX];    /* of a frame that is not output */
    size_t text_len;

    enum engine_tier tier;
    uint64_t memory_bytes; /* of 'W'; 0: not reported */
    bool started;          /* 'S' came, or else the program's first frame */
    bool warm;             /* 'S' said so */
    bool reported;         /* report is filled */
    struct entry_report report;
};

/*
 * The program's output goes to sink (which may be NULL until handed) as it arrives. FRAME_STOP when
 * the report is complete (reported is true; what follows is ignored) or when the sink said stop
 * (reported is false); FRAME_BROKEN with ERR_PROTOCOL on anything else than the protocol allows.
 */
enum frame_push entry_frame_push(struct entry_frame *f, const char *data, size_t len,
                                 const struct engine_sink *sink, struct err *e);

/* ERR_PROTOCOL, ERR_INVALID: the report is not valid. */
int entry_report_parse(const char *text, size_t len, struct entry_report *out, struct err *e);
/* Fills the members of an outcome that a report has. */
void entry_report_outcome(const struct entry_report *report, struct engine_outcome *out);

/* Bytes that entry_write appends for program; ERR_LIMIT when they do not fit 32-bit records. */
int entry_size(const struct engine_program *program, size_t *out, struct err *e);
/* Appends the records of program, to follow ENTRY_MAGIC. */
int entry_write(const struct engine_program *program, struct buf *out, struct err *e);
/* Appends the record that has names preloaded. */
int entry_write_preload(const char *names, struct buf *out, struct err *e);
