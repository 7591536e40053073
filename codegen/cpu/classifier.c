/* Calls of the classifier's kernel. */
#include "codegen/cpu/tile.h"

/* How it is cut and where in workspace things are. */
static void
emit_classifier_tile(struct emit *e, const Node *n)
{
	struct classifier_tile t = tile_classifier(e->g, n, e->threads);

	EMIT_MEMBERS(e, "classes dim keep", t.classes, t.dim, t.keep);
	EMIT_MEMBERS(e, "chunk most each bias_at", t.chunk, t.most, t.each,
	             t.bias);
	EMIT_MEMBERS(e, "db dw tiles thread", t.db, t.dw, t.tiles, t.thread);
	EMIT_MEMBERS(e, "slice weights dx", t.slice, t.weights, t.dx);
	for (int i = 0; i < 3; i++)
		out_line(e->out, ".tile[%d] = { %lld, %lld, %lld },", i,
		         (long long)t.tile[i].rows, (long long)t.tile[i].cols,
		         (long long)t.tile[i].depth);
}

bool
cpu_classifier(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *w = emit_in(e, n, 1);
	const Val *bias = emit_in(e, n, 3);
	bool tb = n->attr.CLASSIFIER.tb;
	const char *seed = emit_float(e->arena, n->attr.CLASSIFIER.seed);

	if (emit_in(e, n, 4))
		seed = "*(const float *)p[4]";
	emit_include(e, "classifier");
	emit_shapes(e, n);
	for (int i = 0; i < 2; i++) {
		DType dt = emit_in(e, n, i)->dt;

		if (dt != DT_F32 && !dtype_is_half(dt))
			return emit_unsupported(e, n, dt);
	}
	out_line(e->out, "const struct ckr_classifier c1 = {");
	out_line(e->out, ".rows = %lld, .tb = %d, .reduction = %d, "
	         ".seed = %s,", (long long)x->shape.dim[0], tb,
	         (int)n->attr.CLASSIFIER.reduction, seed);
	out_line(e->out, ".x = %s, .w = %s, .bias = %s,", tables_dtype(x->dt),
	         tables_dtype(w->dt), tables_dtype(bias ? bias->dt : x->dt));
	emit_classifier_tile(e, n);
	out_line(e->out, "};");
	if (!emit_labels(e, n, 2, n->nin, n->attr.CLASSIFIER.ignore,
	                 w->shape.dim[!tb]))
		return false;
	emit_line(e, n, "ckr_classify(&c1, $o0, $o1, $o2, $o3,");
	emit_line(e, n, "             p[0], p[1], &labels, $i3, $w, env);");
	return true;
}
