/* Elements of any type: writing them, and what holds the same ones. */
#ifndef IR_ELEMENT_H
#define IR_ELEMENT_H

#include "ir/ir.h"

/* Element i of an array of dt, of any alignment, becomes x: converted as the
 * op `cast` does; a float that no integer of 64 bits can hold is cut to their
 * range first, so that nothing is undefined. */
void element_set_int(DType, void *array, int64_t i, int64_t x);
void element_set_float(DType, void *array, int64_t i, double x);
/* The same of n elements from number `at` on, and what val_int and val_float
 * read there. */
void element_set_ints(DType, void *array, int64_t at, int n, const int64_t *);
void element_set_floats(DType, void *array, int64_t at, int n, const double *);
void element_get_ints(DType, const void *array, int64_t at, int n, int64_t *);
void element_get_floats(DType, const void *array, int64_t at, int n, double *);

/* Whether values of two graphs are one thing, by name: what is given from
 * outside, states, or constants with the same contents. */
bool element_equal(const Val *, const Val *);
/* The same of value v in two graphs that began as one. */
bool element_same(const Graph *, const Graph *, ValId v);

#endif
