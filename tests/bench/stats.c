#include "config.h"

#include "tests/bench/stats.h"

#include "common/base/auto.h"
#include "common/base/mem.h"

#include <string.h>

void samples_add(struct samples *s, double value)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->v = mem_resize(s->v, s->cap, sizeof(*s->v));
    }
    s->v[s->n++] = value;
}

void samples_clear(struct samples *s)
{
    free(s->v);
    *s = (struct samples){0};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double samples_quantile(const struct samples *s, double share)
{
    if (s->n == 0)
        return 0;
    AUTO_FREE double *sorted = mem_array(s->n, sizeof(*sorted));
    memcpy(sorted, s->v, s->n * sizeof(*sorted));
    qsort(sorted, s->n, sizeof(*sorted), compare);
    double at = share * (double)(s->n - 1);
    size_t low = (size_t)at;
    size_t high = low + 1 < s->n ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}
