/* The fused classifier on a GPU: places in its workspace, the call. */
#include "codegen/cuda/cuda.h"

enum {
	LOGITS = 256 << 20,             /* bytes of one chunk */
	/* Rows of logits are padded to a multiple of LD, so that products read
	 * vectors.  The weight has as many rows as there are classes: products
	 * with the classes as extent are not padded, because they would read
	 * behind it. */
	LD = 64,
	ROWS = 128,
};

/* Chunks of about equal size.  Rows are the number of columns of one product
 * and the inner extent of another, which tensor cores compute in tiles: a
 * multiple of ROWS, or of less where that adds more than a sixteenth. */
int64_t
cuda_classifier_rows(int64_t rows, int64_t classes, bool half)
{
	int64_t most = LOGITS / (half ? 2 : 4) / (classes > 0 ? classes : 1);
	int64_t multiple = ROWS, chunks, equal;

	if (most < ROWS)
		most = ROWS;
	if (rows <= most)
		return rows > 0 ? rows : 1;
	chunks = (rows + most - 1) / most;
	equal = (rows + chunks - 1) / chunks;
	while (equal < 16 * multiple)
		multiple /= 2;
	return (equal + multiple - 1) / multiple * multiple;
}

/* Rows of a chunk of the node, at most all; chunk 0: as many as suit. */
static int64_t
chunk_rows(int64_t rows, int64_t classes, int64_t chunk, bool half)
{
	if (chunk == 0)
		return cuda_classifier_rows(rows, classes, half);
	return chunk < rows ? chunk : rows > 0 ? rows : 1;
}

struct classifier_workspace {
	int64_t rows, classes, dim, chunk, ld;
	int64_t at[9];          /* in bytes: z, each, dw, db, x, w, dx, work,
	                         * the end; -1: too many */
};

/* Add a place; x: elements. */
static void
add_region(struct classifier_workspace *s, int i, bool wanted, int64_t x,
           int64_t size)
{
	int64_t bytes = wanted ? cuda_bytes(x, size) : 0;

	s->at[i + 1] = s->at[i] < 0 || bytes < 0
	               || !add_ok(s->at[i], bytes, &s->at[i + 1])
	             ? -1 : s->at[i] + bytes;
}

/* ORDER CLASSIFIER: struct ckr_classifier. */
static struct classifier_workspace
lay_out_workspace(const Graph *g, const Node *n)
{
	const Val *x = &g->val[n->in[0]], *w = &g->val[n->in[1]];
	bool tb = n->attr.CLASSIFIER.tb, half = dtype_is_half(x->dt);
	bool mixed = x->dt != w->dt;
	int64_t logit = mixed || !half ? 4 : 2;
	struct classifier_workspace s = { .rows = x->shape.dim[0],
		.dim = x->shape.dim[1],
		.classes = w->shape.dim[tb ? 0 : 1] };
	int64_t size;

	s.chunk = chunk_rows(s.rows, s.classes, n->attr.CLASSIFIER.chunk,
	                     logit == 2);
	s.ld = (s.classes + LD - 1) / LD * LD;
	if (!mul_ok(s.classes, s.dim, &size) || !mul_ok(s.chunk, s.ld, &s.at[8])
	    || !mul_ok(s.chunk, s.dim, &s.at[7])) {
		s.at[8] = -1;
		return s;
	}
	add_region(&s, 0, true, s.at[8], logit);
	add_region(&s, 1, true, s.rows + 1, 4);
	add_region(&s, 2, n->out[2] && half && (mixed || s.chunk < s.rows),
	           size, 4);
	add_region(&s, 3, n->nout > 3 && n->out[3] && half, s.classes, 4);
	size = s.at[7];
	add_region(&s, 4, mixed && half, size, 4);
	add_region(&s, 5, mixed && dtype_is_half(w->dt), s.classes * s.dim, 4);
	add_region(&s, 6, n->out[1] && mixed && half, size, 4);
	add_region(&s, 7, true, CUDA_GEMM_BYTES, 1);
	return s;
}

int64_t
cuda_work_classifier(const Graph *g, const Node *n, int threads)
{
	(void)threads;
	return lay_out_workspace(g, n).at[8];
}

static void
emit_classifier_struct(struct emit *e, const Node *n,
                       const struct classifier_workspace *s)
{
	out_line(e->out, "const struct ckr_classifier c1 = {");
	EMIT_MEMBERS(e, "rows classes dim", s->rows, s->classes, s->dim);
	EMIT_MEMBERS(e, "chunk ld tb reduction", s->chunk, s->ld,
	             n->attr.CLASSIFIER.tb != 0,
	             n->attr.CLASSIFIER.reduction);
	out_line(e->out, ".seed = %s,",
	         emit_float(e->arena, n->attr.CLASSIFIER.seed));
	emit_members(e, "z each dw db", s->at);
	emit_members(e, "x w dx", s->at + 4);
	EMIT_MEMBERS(e, "work work_bytes", s->at[7], CUDA_GEMM_BYTES);
	out_line(e->out, "};");
}

bool
cuda_classifier(struct emit *e, const Node *n)
{
	struct classifier_workspace s = lay_out_workspace(e->g, n);

	emit_include(e, "classifier");
	emit_shapes(e, n);
	for (int i = 0; i < 2; i++) {
		DType dt = emit_in(e, n, i)->dt;

		if (!e->emitter->takes(dt))
			return emit_unsupported(e, n, dt);
	}
	emit_classifier_struct(e, n, &s);
	if (!emit_labels(e, n, 2, n->nin, n->attr.CLASSIFIER.ignore,
	                 s.classes))
		return false;
	emit_line(e, n, "ckr_classify(&c1, $o0, $o1, $o2, $o3,");
	emit_line(e, n, "             $i0, $i1, &labels, $i3, $i4, $w, env);");
	return true;
}
