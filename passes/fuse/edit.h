/* Edits on the node array: nodes die, change in place, or are appended with a
 * place in the order; edit_commit brings the array in line. */
#ifndef PASSES_FUSE_EDIT_H
#define PASSES_FUSE_EDIT_H

#include "passes/pass.h"

struct edit {
	Pass *p;
	Graph *g;
	struct uses uses;               /* readers in the graph before the
	                                 * edits */
	NodeId nold;                    /* nodes with ids from here on were
	                                 * appended */
	bool *dead;                     /* by node before the edits */
	NodeId *before;                 /* by appended node: the node that it
	                                 * stands before */
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
/* v in another shape, for node `before`, from its root: v's own reshape may
 * stand further down; 0 after a diagnostic. */
ValId edit_reshaped(struct edit *, ValId v, const Shape *, NodeId before);
/* Node `by`, whose result has as many elements as that of node id, computes
 * that from now on: under its name if shapes agree, else node id reshapes. */
void edit_replace_node(struct edit *, NodeId id, NodeId by);

/* Tell the outputs of n who writes them now. */
static inline void
edit_claim(Graph *g, const Node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			g->val[n->out[k]].def = node_id(g, n);
			g->val[n->out[k]].result_index = k;
		}
}

#endif
