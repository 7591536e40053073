/* What the parts of pass fuse share. */
#ifndef PASSES_FUSE_H
#define PASSES_FUSE_H

#include "passes/passes.h"

/* Edits on the node array: nodes die, change in place, or are appended with a
 * place in the order; fuse_commit brings the array in line. */
struct edit {
	Pass *p;
	Graph *g;
	struct uses uses;               /* of the graph before the edits */
	NodeId nold;                    /* nodes from here on were appended */
	bool *dead;                     /* [nold] */
	NodeId *before;                 /* appended node i - nold stands before
	                                 * this one */
	size_t nbefore, cap;
};

struct edit edit_new(Pass *, Graph *);
/* The node appended last stands before node `id`; emission order is kept. */
void edit_place(struct edit *, NodeId appended, NodeId id);
void edit_commit(struct edit *);
/* Uses of v by nodes that have not died. */
int edit_nuses(const struct edit *, ValId v);
/* v is read by one node and wanted by nobody else. */
bool edit_single(const struct edit *, ValId v);
/* Follow reshapes upwards. */
ValId edit_through_reshapes(const Graph *, ValId v);

/* Tell the outputs of n who writes them now. */
static inline void
fuse_claim(Graph *g, const Node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			g->val[n->out[k]].def = node_id(g, n);
			g->val[n->out[k]].slot = k;
		}
}

/* fuse_ends.c: rewrites of matrix products and attention. */
bool fuse_classifier(Pass *, Graph *);
bool fuse_packed(Pass *, Graph *);
bool fuse_accumulators(Pass *, Graph *);

/* fuse_turn.c: loops that write transposed. */
bool fuse_turned(Pass *, Graph *);

#endif
