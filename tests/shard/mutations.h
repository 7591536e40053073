/* What can be wrong with a sharded graph. */
#ifndef TESTS_SHARD_MUTATIONS_H
#define TESTS_SHARD_MUTATIONS_H

#include "ir/ir.h"

struct site {
	Graph *g;
	Diag *quiet;
	NodeId node;
	ValId val;
};

/* A change at the site; false, and the graph as it was, if there is none of
 * that kind. */
typedef bool Mutation(struct site *, int variant);

struct mutation_kind {
	const char *name;
	Mutation *make;
	int variants;
	bool of_val;                    /* sites are values */
	bool stated;                    /* states are left as they were */
};

extern const struct mutation_kind mutation_kind[];
extern const int mutation_kinds;

#endif
