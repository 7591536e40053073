/* Calls of the kernels of cross entropy, of all classes or of those that a rank
 * has. */
#include "codegen/rules/target_emitter.h"

bool
emit_labels(struct emit *e, const Node *n, int labels, int weights,
            int64_t ignore, int64_t classes)
{
	const Val *v = emit_in(e, n, labels);

	if (v->dt != DT_I64 && v->dt != DT_I32)
		return emit_unsupported(e, n, v->dt);
	out_line(e->out, "const struct ckr_labels labels = "
	         "{ p[%d], %d, %s, %lld, %s };", labels,
	         dtype_info[v->dt].nbytes, ignore == INT64_MIN ? "INT64_MIN"
	         : arena_printf(e->arena, "%lld", (long long)ignore),
	         (long long)classes, p_in(e, n, weights));
	return true;
}

/* ---- classes of a rank ---- */

static bool
part_of_classes(struct emit *e, const Node *n, const Val *x, int labels,
                int64_t ignore, int64_t classes)
{
	if (!emit_row_operand(e, n, "shard", x))
		return false;
	emit_part(e, x, 1, classes, 0);
	return emit_labels(e, n, labels, n->nin, ignore, classes);
}

/* Labels that are to be ignored or bad are nobody's; sce tells them apart. */
bool
emit_vocab_stats(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);

	if (!part_of_classes(e, n, x, 1, INT64_MIN,
	                     n->attr.VOCAB_STATS.whole_extent))
		return false;
	emit_line(e, n, "ckr_vocab_stats($o0, $i0, &labels, %lld, %lld, part, "
	          "env);", (long long)x->shape.dim[0],
	          (long long)x->shape.dim[1]);
	return true;
}

static bool
emit_sce_part(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);

	emit_shapes(e, n);
	emit_include(e, "shard");
	if (!emit_labels(e, n, 1, n->nin, n->attr.SCE.ignore,
	                 n->attr.SCE.whole_extent))
		return false;
	emit_line(e, n, "ckr_sce_part($o0, $o1, $o2, p[3], &labels, %lld, "
	          "%lld, %lld$,w, env);", (long long)x->shape.dim[0],
	          ranks_per_piece(x), (long long)n->attr.SCE.reduction);
	return true;
}

static bool
emit_sce_grad_part(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 1);

	if (!part_of_classes(e, n, x, 2, n->attr.SCE_GRAD.ignore,
	                     n->attr.SCE_GRAD.whole_extent))
		return false;
	emit_line(e, n, "ckr_sce_grad_part($o0, $i0, $i1, &labels, $i3, $i4,");
	out_line(e->out, "                  %lld, %lld, part, %lld, env);",
	         (long long)x->shape.dim[0], (long long)x->shape.dim[1],
	         (long long)n->attr.SCE_GRAD.reduction);
	return true;
}

/* ---- all classes ---- */

/* x: logits, or what has their shape. */
static bool
emit_loss_labels(struct emit *e, const Node *n, const Val *x, int labels,
                 int weights, int64_t ignore)
{
	return emit_row_operand(e, n, "rows", x)
		&& emit_labels(e, n, labels, weights, ignore, x->shape.dim[1]);
}

bool
emit_sce(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);

	if (n->attr.SCE.whole_extent)
		return emit_sce_part(e, n);
	if (!emit_loss_labels(e, n, x, 1, 2, n->attr.SCE.ignore))
		return false;
	emit_line(e, n, "ckr_sce($o0, $o1, $o2, $i0, &labels,");
	emit_line(e, n, "        %s, %lld, 0$,w, env);",
	          emit_planes(e, &x->shape), (long long)n->attr.SCE.reduction);
	return true;
}

bool
emit_sce_grad(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 1);

	if (n->attr.SCE_GRAD.whole_extent)
		return emit_sce_grad_part(e, n);
	if (!emit_loss_labels(e, n, x, 2, 5, n->attr.SCE_GRAD.ignore))
		return false;
	emit_line(e, n, "ckr_sce_grad($o0, $i0, $i1, &labels,");
	emit_line(e, n, "             $i3, $i4, %s, %lld, env);",
	          emit_planes(e, &x->shape),
	          (long long)n->attr.SCE_GRAD.reduction);
	return true;
}

bool
emit_nll(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);

	if (!emit_loss_labels(e, n, x, 1, 2, n->attr.NLL.ignore))
		return false;
	emit_line(e, n, "ckr_sce($o0, NULL, $o1, $i0, &labels,");
	emit_line(e, n, "        %s, %lld, 1$,w, env);",
	          emit_planes(e, &x->shape), (long long)n->attr.NLL.reduction);
	return true;
}

bool
emit_nll_grad(struct emit *e, const Node *n)
{
	const Val *dx = emit_out(e, n, 0);

	if (!emit_loss_labels(e, n, dx, 1, 3, n->attr.NLL_GRAD.ignore))
		return false;
	emit_line(e, n, "ckr_nll_grad($o0, $i0, &labels, $i2, %s, %lld, env);",
	          emit_planes(e, &dx->shape),
	          (long long)n->attr.NLL_GRAD.reduction);
	return true;
}
