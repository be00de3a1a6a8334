#include "config.h"

#include "fcgi/doctor/findings.h"

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/mem.h"

#include <stdlib.h>

void findings_add(struct findings *f, enum finding_state state, const char *about, const char *mend,
                  const char *fmt, ...)
{
    AUTO_BUF struct buf raw = BUF_INIT(sizeof((struct err *)0)->text);
    struct err text = ERR_INIT; /* bounds and cleans it */
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&raw, fmt, ap);
    va_end(ap);
    err_set(&text, ERR_INVALID, "%s", buf_str(&raw));
    f->items = mem_resize(f->items, f->n + 1, sizeof *f->items);
    f->items[f->n++] = (struct finding){
        .state = state, .about = about, .text = mem_strdup(text.text), .mend = mem_strdup(mend)};
}

size_t findings_count(const struct findings *f, enum finding_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += f->items[i].state == state;
    return n;
}

const char *finding_state_name(enum finding_state state)
{
    static const char *const names[] = {
        [FINDING_OK] = "ok", [FINDING_NOTE] = "note", [FINDING_WRONG] = "wrong"};

    return names[state];
}

void findings_clear(struct findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->items[i].text);
        free(f->items[i].mend);
    }
    free(f->items);
    *f = (struct findings){0};
}
