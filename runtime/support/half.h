/* 16-bit floats as bit patterns.  Rounding is to nearest, ties to even; NaN
 * stays NaN with the upper bits of its payload. */
#ifndef RUNTIME_SUPPORT_HALF_H
#define RUNTIME_SUPPORT_HALF_H

#include <stdint.h>

float half_to_float(uint16_t);
uint16_t float_to_half(float);
float bf16_to_float(uint16_t);
uint16_t float_to_bf16(float);

#endif
