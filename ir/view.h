/* Views as strides. */
#ifndef PASSES_VIEW_H
#define PASSES_VIEW_H

#include "ir/ir.h"

/* Strides under shape `to` of what has shape `from` and the strides given;
 * false if no strides can say it.  Both shapes have as many elements. */
bool view_reshape(const Shape *from, const int64_t *stride, const Shape *to,
                  int64_t out[MAX_RANK]);

#endif
