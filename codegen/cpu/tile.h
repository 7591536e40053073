/* How kernels cut their work into cache tiles, and the workspace that follows.
 *
 * None of these depends on the number of threads at run time, so that sums
 * have the same shape on every machine; workspace that is per thread is sized
 * for the threads given.
 */
#ifndef CODEGEN_CPU_TILE_H
#define CODEGEN_CPU_TILE_H

#include "codegen/rules/emit.h"

enum {
	TILE_ROWS = 64,                 /* query rows of one attention block */
	TILE_PARTS = 64,                /* partial sums, at most */
	TILE_PART_ROWS = 16,            /* rows of a partial sum, at least */
	TILE_LOGITS = 64 << 20,         /* bytes of one classifier chunk */
	TILE_LOGIT_ROWS = 512,          /* its rows of 16-bit floats, at most */
	TILE_WEIGHTS = 4 << 20,         /* bytes of its weights that are rounded
	                                 * at a time */
	TILE_STAGING = 8 << 20,         /* bytes of float32 copies of images */
	/* a tile of a product of 16-bit floats: */
	TILE_PRODUCT_ROWS = 512,        /* rows, at most */
	TILE_PRODUCT_COLS = 384,        /* columns, at most */
	TILE_PRODUCT_DEPTH = 256,       /* depth of one partial product */
	TILE_PRODUCTS = 12,             /* tiles wanted: with fewer, tiles are
	                                 * made smaller */
	TILE_PRODUCT_LEAST = 192,       /* ... but have this extent at least */
	/* of a product of an expert's float32 rows: */
	TILE_EXPERT_ROWS = 768, TILE_EXPERT_COLS = 768,
	TILE_EXPERT_DEPTH = 512,
	TILE_STRIP_LEAST = 64,          /* columns of a tile with all rows, at
	                                 * least */
};

static inline int64_t
ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static inline int64_t
smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Workspace of kernels on float32. */
WorkRule work_adafactor, work_adafactor_squares, work_attention,
	work_classifier, work_det, work_expert_dw, work_expert_matmul,
	work_expert_slots,
	work_matmul, work_norm, work_norm_grad,
	work_topk;

/* Whether an operand is a 16-bit float, or blocks of quantised weights. */
bool tile_is_mixed(const Graph *, const Node *);
/* A tile of a product of 16-bit floats, which one thread converts and
 * computes. */
struct product_tile {
	int64_t rows, cols, depth;
};

struct product_tile tile_product(int64_t batch, int64_t m, int64_t n,
                                 int64_t k);
/* Floats for each thread of a matmul, however its dims before the last two are
 * seen, as rows or as a batch; -1: too many. */
int64_t tile_matmul(const Graph *, const Node *);

/* How products of experts are cut, and where in workspace, in floats, tiles
 * are: behind the sorted rows. */
struct expert_tile {
	int64_t experts, inner, width;  /* of x and y, or of a and b */
	struct product_tile tile;
	int64_t thread;                 /* floats for each thread's tiles */
	int64_t tiles, floats;          /* where they are; all; -1: too many */
};

struct expert_tile tile_expert_matmul(const Graph *, const Node *,
                                      int threads);
struct expert_tile tile_expert_dw(const Graph *, const Node *, int threads);

/* Rows per attention block, given the number of queries. */
int64_t tile_attention_rows(int64_t nquery);
/* Floats of a thread's workspace; -1: too many.  ORDER TILE: kernels in
 * kernels/attention.h lay them out. */
int64_t tile_attention(const Graph *, const Node *);
/* Rows per partial sum of a row-wise gradient's parameter gradients. */
int64_t tile_part_rows(int64_t rows);
/* Floats of all these partial sums; -1: too many. */
int64_t tile_norm_parts(const Graph *, const Node *);
/* Rows per classifier chunk; `chunk` is the attribute (0: choose). */
int64_t tile_classifier_rows(int64_t rows, int64_t classes, int64_t chunk);

/* How a classifier cuts its work, and where in workspace it has what, in floats
 * from the beginning: float32 logits of a chunk, of adjoints of all rows as
 * 16-bit floats the latter, too.  float32 weights beside bf16 are rounded, some
 * classes at a time, which a sum for dx goes with. */
struct classifier_tile {
	int64_t classes, dim;
	bool keep;                      /* adjoints of all rows, for dw */
	int64_t chunk;                  /* rows that have place of their own */
	int64_t most;                   /* ... that a chunk may have */
	struct product_tile tile[3];    /* for logits, dx and dw */
	int64_t thread;                 /* floats for each thread's tiles */
	/* a loss per row of a chunk, bias, its gradient, the sum of dw, tiles;
	 * the latter four of 16-bit floats */
	int64_t each, bias, db, dw, tiles;
	int64_t slice;                  /* classes rounded at a time; 0: none */
	int64_t weights, dx;            /* these, and the sum for dx */
	int64_t floats;                 /* all; -1: too many */
};

struct classifier_tile tile_classifier(const Graph *, const Node *,
                                       int threads);

#endif
