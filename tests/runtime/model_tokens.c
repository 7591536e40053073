/* A compiled model written by hand that shows what it was fed: integer inputs
 * go out again unchanged, the loss is the mean of table[ids].  No optimizer.
 * REPLICAS: it may be one of several, and the batch is split.
 */
#include <string.h>

#include "runtime/ckr_abi.h"

enum { B = 2, T = 4, VOCAB = 16 };

/* ids, labels, mask, positions, table -> seen ids, labels, mask, positions,
 * loss */
static void
k_look(void *const *p, const int64_t *c, struct ckr_env *env)
{
	const int64_t *ids = p[0];
	const float *table = p[4];
	float sum = 0;

	memcpy(p[5], p[0], B * T * sizeof(int64_t));
	memcpy(p[6], p[1], B * T * sizeof(int32_t));
	memcpy(p[7], p[2], B * T * sizeof(int64_t));
	memcpy(p[8], p[3], T * sizeof(int64_t));
	for (int i = 0; i < B * T; i++) {
		if (ids[i] < 0 || ids[i] >= VOCAB) {
			env->fault = "token outside the vocabulary of 16";
			env->fault_value = ids[i];
			return;
		}
		sum += table[ids[i]];
	}
	*(float *)p[9] = sum / (B * T * env->replicas);
	(void)c;
}

#ifdef REPLICAS
#define SAMPLES .batch = 1
#else
#define REPLICAS 0
#define SAMPLES .batch = 0
#endif
#ifndef LABEL_FLAGS
#define LABEL_FLAGS 0
#endif
#ifndef LABELS
#define LABELS "labels"
#endif

#define I64_BT .dtype = CKR_I64, .rank = 2, .dim = { B, T }, \
	.stride = { T, 1 }, .nbytes = 8 * B * T, SAMPLES
#define I32_BT .dtype = CKR_I32, .rank = 2, .dim = { B, T }, \
	.stride = { T, 1 }, .nbytes = 4 * B * T, SAMPLES
#define I64_T .dtype = CKR_I64, .rank = 1, .dim = { T }, .stride = { 1 }, \
	.nbytes = 8 * T
#define IN(at) .kind = CKR_INPUT, .offset = 64 * (at), .param = -1, \
	.ready = -1
#define OUT(at) .kind = CKR_OTHER, .flags = CKR_OUTPUT, \
	.offset = 64 * (at), .param = -1, .ready = 0

static const struct ckr_tensor tensors[] = {
	{ "input_ids", I64_BT, IN(0), .flags = CKR_RESIDENT },
	{ LABELS, I32_BT, IN(1), .flags = CKR_RESIDENT | LABEL_FLAGS },
	{ "attention_mask", I64_BT, IN(2), .flags = CKR_RESIDENT },
	{ "position_ids", I64_T, IN(3), .flags = CKR_RESIDENT },
	{ "table", .dtype = CKR_F32, .rank = 1, .dim = { VOCAB },
	  .stride = { 1 }, .nbytes = 4 * VOCAB, .kind = CKR_PARAM,
	  .flags = CKR_RESIDENT | CKR_FROZEN, .offset = 256, .param = -1,
	  .ready = -1 },
	{ "seen_ids", I64_BT, OUT(0) },
	{ "seen_labels", I32_BT, OUT(1) },
	{ "seen_mask", I64_BT, OUT(2) },
	{ "seen_positions", I64_T, OUT(3) },
	{ "part", .dtype = CKR_F32, .nbytes = 4, .kind = CKR_OTHER,
	  .offset = 256, .param = -1, .ready = 0 },
	{ "loss", .dtype = CKR_F32, .nbytes = 4, .kind = CKR_OTHER,
	  .flags = CKR_OUTPUT | CKR_LOSS, .offset = 320, .param = -1,
	  .ready = 1 },
};
static const int32_t args[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10 };
static const struct ckr_comm sum = { .kind = CKR_ALL_REDUCE, .axis = REPLICAS
                                     ? CKR_DP : CKR_TP, .end = 1 };
static const struct ckr_instr steps[] = {
	{ k_look, "look", "gather", 0, 10, 0, 0, CKR_FORWARD, 0, 0, 0, NULL,
	  0, 0 },
	{ NULL, "all_reduce", "", 10, 2, 0, 0, CKR_FORWARD, 0, 0, 0, &sum, 0, 0 },
};

const struct ckr_library ckr_library = {
	.abi = CKR_ABI_VERSION, .threads = 1, .name = "tokens",
	.compiler = "by hand",
	.program = { { steps, 2, 2, 2, args, NULL, tensors, 11, 10, 384,
	               320, 0 } },
	.nshared = 5, .grad_accum = 1, .clip_ok = 1, .peak_bytes = 704,
	.replicas = REPLICAS,
};
