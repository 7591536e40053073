/* Attention in blocks of query rows. */
#ifndef CODEGEN_CPU_KERNELS_ATTENTION_H
#define CODEGEN_CPU_KERNELS_ATTENTION_H

#include "cpu.h"

struct ckr_attention {
	int64_t batch, heads, groups, queries, keys, dim, vdim;
	int64_t q[3], k[3], v[3], o[3];         /* strides: batch, head, row */
	int64_t d_o[3], dq[3], dk[3], dv[3];
	int64_t mask[4];
	int mask_type;                          /* CKR_NONE: there is none */
	int causal;
	float scale;
	double ratio;
	uint32_t stream;
	int64_t rows;                           /* of a block */
	int64_t ld;                             /* of a block's scores */
	int64_t workspace;                        /* floats per thread */
	/* of a piece of the batch or the heads: heads of the whole, 0 if it is
	 * the whole, and how many (image, head) come before */
	int64_t all, first;
	/* Query i of this replica is query i + before[i >= stretch] of the
	 * `all_queries` that replicas with these samples have together; causal:
	 * query n of these sees keys j <= n + shift. */
	int64_t shift, all_queries, stretch, before[2];
	int type;               /* of q, k, v, o and their gradients */
};

void ckr_attention(const struct ckr_attention *a, void *o, float *lse,
                   const void *q, const void *k, const void *v,
                   const void *mask, float *workspace,
                   const struct ckr_env *env);

#endif
