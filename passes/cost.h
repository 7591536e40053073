/* The device that costs are reckoned for. */
#ifndef PASSES_COST_H
#define PASSES_COST_H

#include "passes/passes.h"

struct device {
	const char *name;
	double product_flops;           /* FLOP/s of matrix products, f32 */
	double product_flops16;         /* the same, bf16 and f16 */
	double vector_flops;            /* FLOP/s of everything else */
	double bandwidth;               /* bytes/s of memory */
	double launch;                  /* seconds to start one op */
	double memory;                  /* bytes; 0: not said */
};

/* Two cores of a present x86 server. */
extern const struct device device_default;
/* The device of a graph. */
const struct device *device_of(const Graph *);
/* The profile as one JSON object. */
char *device_json(const struct device *, Arena *);
/* A profile by name (A100-80GB, H100, H200, cpu), `host` (measured once and
 * cached) or from a file written by device_json; NULL after a diagnostic. */
const struct device *device_find(const char *name, Diag *, Arena *);
/* device_host.c: measure this machine with so many threads. */
void device_measure(struct device *, int threads);

#endif
