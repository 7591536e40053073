/* Models of equal layers with fewer of them. */
#ifndef PASSES_AUTO_SHORTEN_H
#define PASSES_AUTO_SHORTEN_H

#include "ir/ir.h"

/* Fewer layers than LAYERS_LEAST are planned in another way: equal layers are
 * not found, and the last ones are not far from the first. */
enum { LAYERS_LEAST = 4 };

/* Equal layers, one behind the other, with one activation between two. */
struct layers {
	int32_t n;                      /* 0: none that may be left out */
	int32_t nodes;                  /* of a layer */
	const NodeId *const *node;      /* by layer: they, in order */
	const ValId *before;            /* [n + 1] what layer i takes of the
	                                 * one before it; the last: what the
	                                 * last layer gives */
};

/* Layers of a forward graph, all of whose nodes are first runs: equal in ops,
 * attributes, shapes and in what they read. */
void layers_find(struct layers *, const Graph *, Arena *);
/* Leave out all but `keep` of the layers, of which the last two are the last
 * ones of the model.  False: something else reads what is left out, and the
 * graph is of no use. */
bool layers_shorten(Graph *, const struct layers *, int32_t keep);
/* By origin of g, the whole graph: its layer of those that are kept, from 0;
 * -1: none, or several. */
int32_t *layers_of_origins(const Graph *g, const struct layers *, int32_t keep,
                           Arena *);

#endif
