/* Samples of a measurement and what is told of them. */
#pragma once

#include <stddef.h>

struct samples {
    double *v;
    size_t n, cap;
};

void samples_add(struct samples *s, double value);
void samples_clear(struct samples *s);

/* The value below which this share (0..1) of the samples lies, between neighbours interpolated; 0
 * without samples. */
double samples_quantile(const struct samples *s, double share);
