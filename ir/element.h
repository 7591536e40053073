/* Writing elements of any type. */
#ifndef IR_ELEMENT_H
#define IR_ELEMENT_H

#include "ir/ir.h"

/* Element i of an array of dt, of any alignment, becomes x: converted as the
 * op `cast` does; a float that no integer of 64 bits can hold is cut to their
 * range first, so that nothing is undefined. */
void element_put_int(DType, void *array, int64_t i, int64_t x);
void element_put_float(DType, void *array, int64_t i, double x);

#endif
