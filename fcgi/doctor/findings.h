/* What a look at settings and machine has found: a list of sentences. */
#pragma once

#include <stddef.h>

enum finding_state {
    FINDING_OK,
    FINDING_NOTE, /* worth knowing; the server works */
    FINDING_WRONG,
};

/* Strings are owned by the list. */
struct finding {
    enum finding_state state;
    const char *about; /* a literal: "engine", "disk" */
    char *text;        /* one sentence */
    char *mend;        /* the command or the setting that mends it; "": none */
};

struct findings {
    struct finding *items;
    size_t n;
};

/* about is kept by pointer; mend is copied. Control characters in the text become blanks. */
void findings_add(struct findings *f, enum finding_state state, const char *about, const char *mend,
                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
size_t findings_count(const struct findings *f, enum finding_state state);
const char *finding_state_name(enum finding_state state);
void findings_clear(struct findings *f);
