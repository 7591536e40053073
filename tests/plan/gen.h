/* Training graphs made to measure, laid out as the planner expects them. */
#ifndef TESTS_PLAN_GEN_H
#define TESTS_PLAN_GEN_H

#include "passes/remat_model/remat_model.h"

struct gen_gpt {
	int64_t layers, hidden, heads, batch, seq, vocab;
};

/* A GPT's training step after fusion: packed attention, classifier, AdamW. */
Graph *gen_gpt(const struct gen_gpt *);
/* Equal layers of a product and a gelu; weights are updated in backward, so
 * that activations are all there is.  Values are width * 4 bytes, weights
 * small beside them. */
Graph *gen_chain(int layers, int64_t width);
/* nfwd forward nodes with random operands and sizes, and their backward. */
Graph *gen_random(uint64_t seed, int nfwd);
/* Append nodes to it: some of backward, and of phase weight, which read random
 * values of forward and backward. */
void gen_weights(Graph *, uint64_t seed);
/* Step of a splitmix generator. */
uint64_t gen_next(uint64_t *state);

#endif
