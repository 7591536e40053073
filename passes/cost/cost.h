/* Room cost: what a node costs on a device.
 *
 * in      a node with shapes, a device profile
 * out     FLOPs, bytes moved, seconds
 * must not know order and memory
 */
#ifndef PASSES_COST_COST_H
#define PASSES_COST_COST_H

#include "passes/pass.h"

/* Seconds of a step beyond which nothing is planned: sums and products of
 * several stay finite below. */
#define COST_MAX 1e250

/* Cost of one node under the device profile. */
struct cost node_cost(const Graph *, const Node *);
/* Of its first run, if it is a clone: a clone without some of the outputs takes
 * as long. */
static inline struct cost
first_cost(const Graph *g, const Node *n)
{
	return node_cost(g, n->of ? &g->node[n->of] : n);
}

/* Seconds on its lane (lanes.h) of a node of that cost: a transfer takes those
 * of its message, with all that join it (node_joins), and one that joins
 * another takes none. */
double node_lane_seconds(const Graph *, const Node *, struct cost);
/* Seconds of a transfer before its first byte arrives, part of node_cost. */
double transfer_latency(const Graph *, const Node *);
/* Of a loop whose work another one does again without storing it; part of
 * node_cost of that one. */
struct cost inlined_cost(const Graph *, const Node *first);

struct device_profile {
	const char *name;
	double product_flops;           /* FLOP/s of matrix products, f32 */
	double product_flops16;         /* the same, bf16 and f16 */
	double vector_flops;            /* FLOP/s of everything else */
	double bandwidth;               /* bytes/s of memory */
	double launch;                  /* seconds to start one op */
	double memory;                  /* bytes; 0: unknown */
	double serial;                  /* not 0: a product first moves its
	                                 * operands, as CPU kernels do */
	double link;                    /* bytes/s that a rank sends */
	double link_latency;            /* seconds of a message */
	double node;                    /* devices that `link` connects; 0: all
	                                 * of them */
	double net;                     /* bytes/s that a device sends to other
	                                 * nodes; 0: as `link` */
	double net_latency;             /* seconds of such a message */
	double host;                    /* bytes/s to host memory, and from it
	                                 * at the same time; 0: unknown */
	double host_latency;            /* seconds of such a transfer */
	/* shares of these rates that large ops reach: products, loops and
	 * other ops without products, memory; 0: all */
	double product_share, vector_share, memory_share;
	double product_start;           /* a product takes as long as one of so
	                                 * many elements more along k */
	double scale[OP_COUNT];         /* seconds over what the rates above
	                                 * say; 0: as they say */
	double scale16[OP_COUNT];       /* the same of ops on 16-bit operands;
	                                 * 0: as above */
	/* measured seconds, sorted; taken for equal work */
	const struct measured *measured;
	int nmeasured;
	double spread;                  /* of them: mean over least; 0 */
	double cold;                    /* ops that were called once, just
	                                 * after loading */
};

/* How long an op took once. */
struct measured {
	Op op;
	double flops, bytes, sec;
};

/* The device of a graph; the default is two cores of a present x86 server. */
const struct device_profile *device_of(const Graph *);
/* The profile as one JSON object. */
char *device_json(const struct device_profile *, Arena *);
/* known_devices.c: a GPU by its name, or by the one that nvidia-smi prints;
 * case, blanks and dashes do not matter.  NULL: there is none. */
const struct device_profile *device_known(const char *name);
/* All names, with commas between them. */
const char *device_names(Arena *);
/* A profile by name (cpu, or that of a GPU) or from a file: what device_json
 * writes, or the measurements of ckrun --profile.  NULL after a diagnostic. */
const struct device_profile *device_find(const char *name, Diag *, Arena *);
/* The same from text; false if it is neither. */
bool device_parse(struct device_profile *, const char *text, size_t n, Arena *);
/* Seconds of an op whose flops, bytes and product are given; has_16bit: its
 * operands have 16 bits. */
double device_seconds(const struct device_profile *, Op, bool has_16bit,
                      const struct cost *);
/* The share of its scores that causal attention, or its gradient, computes: of
 * the replica that computes most, if each has a part of the queries. */
double causal_share(const Graph *, const Node *);
/* World ranks of a collective: `stride` apart. */
struct ring {
	int64_t ranks, stride;
};

/* Of the ranks of a group (enum rank_group). */
struct ring group_ring(const Graph *, int64_t group);
/* How fast its members send.  A ring over several nodes crosses the border of a
 * node once in each direction, and the network bandwidth of all members in the
 * node serves it there. */
struct ring_link {
	double rate, latency;           /* bytes/s; seconds of a message */
	bool network;                   /* it leaves a node */
};
struct ring_link device_ring_link(const struct device_profile *, struct ring);
/* Seconds of a collective in which every rank sends so many bytes. */
double device_ring_seconds(const struct device_profile *, struct ring,
                           double bytes);
/* Seconds of a transfer between device and host memory. */
double device_host_seconds(const struct device_profile *, double bytes);
/* Seconds that equal work took; -1: it was not measured. */
double device_measured(const struct device_profile *, Op, double flops,
                       double bytes);
/* device_fit.c: rates and scales under which the plan's steps take what they
 * took.  False if too few of them were measured. */
bool device_fit(struct device_profile *, const Plan *,
                const struct device_profile *measured);
/* Those of ops on 16-bit operands, for a profile that has the others. */
bool device_fit16(struct device_profile *, const Plan *,
                  const struct device_profile *measured);

#endif
