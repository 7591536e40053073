/* The device that costs are reckoned for. */
#ifndef PASSES_COST_H
#define PASSES_COST_H

#include "passes/passes.h"

struct device {
	const char *name;
	double product_flops;           /* FLOP/s of matrix products, f32 */
	double vector_flops;            /* FLOP/s of everything else */
	double bandwidth;               /* bytes/s of memory */
	double launch;                  /* seconds to start one op */
};

/* Two cores of a present x86 server. */
extern const struct device device_default;
/* The profile as one JSON object. */
char *device_json(const struct device *, Arena *);

#endif
