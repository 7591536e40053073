/* Calls of the attention kernels: shapes and strides as a constant struct. */
#include "codegen/rules/target_emitter.h"
#include "ir/placement.h"

static void
emit_strides(struct emit *e, const char *name, const int64_t *s)
{
	out_line(e->out, "\t.%s = { %lld, %lld, %lld },", name,
	         (long long)s[0], (long long)s[1], (long long)s[2]);
}

struct attrs {
	double scale, ratio;
	int64_t causal, stream, batch_segments, half, context, share_heads;
};

/* Position of this rank's shard of the batch or the heads in the whole, and of
 * that in all replicas: masks of dropout are numbered by it.  Of a rank's heads
 * a replica may have a part. */
static void
emit_piece(struct emit *e, const Val *o, const struct attrs *at)
{
	Shape whole = val_whole(o);
	int axis = o->placement.axis;
	bool of_batch = at->batch_segments;
	long long shared = o->placement.replication, step = 0,
		  parts = at->share_heads ? at->context : 1,
		  heads = whole.dim[1] * parts;

	if (o->placement.kind != PLACEMENT_SHARD && !of_batch && parts == 1)
		return;
	if (o->placement.kind == PLACEMENT_SHARD)
		step = o->shape.dim[axis] * (axis ? parts : heads);
	out_line(e->out,
	         ".all = %lld, .first = env->rank / %lld * INT64_C("
	         "%lld) + %s * INT64_C(%lld)",
	         heads, shared ? shared : 1, step, random_part(e, at->half),
	         of_batch ? whole.dim[0] * heads : 0);
	if (parts > 1)
		out_line(e->out, "\t+ env->replica %% %lldu * INT64_C(%lld)",
		         parts, (long long)o->shape.dim[1]);
	out_line(e->out, ",");
}

/* The queries that replicas with the same samples have together, and those of
 * them before this replica's first and second stretch. */
static void
emit_stretches(struct emit *e, int64_t context, int64_t queries, int64_t keys)
{
	long long n = context > 1 ? context : 1, t = queries, here = t;
	const char *part = arena_printf(e->arena, "env->replica %% %lldu", n);

	if (n > 1 && e->g->zigzag)
		here = t / 2;
	out_line(e->out, ".shift = %lld, .all_queries = %lld, .stretch = %lld,",
	         (long long)keys - n * t, n * t, here);
	if (n == 1)
		return;
	/* of the second stretch without its place in the replica */
	out_line(e->out, ".before = { %s * INT64_C(%lld), (%lldu - %s) * "
	         "INT64_C(%lld) },", part, here,
	         2 * n - 2, part, here);
}

/* All members but the strides of outputs; o: the output, or a value with its
 * layout. */
static void
emit_struct(struct emit *e, const Node *n, const struct attrs *at,
            const Val *q, const Val *k, const Val *v, const Val *mask,
            const Val *o)
{
	int64_t step[MAX_RANK];
	Shape scores = { 4, { q->shape.dim[0], q->shape.dim[1],
		q->shape.dim[2], k->shape.dim[2] } };

	emit_include(e, "attention");
	out_line(e->out, "const struct ckr_attention a = {");
	EMIT_MEMBERS(e, "batch heads groups", q->shape.dim[0],
	             q->shape.dim[1], k->shape.dim[1]);
	EMIT_MEMBERS(e, "queries keys dim vdim", q->shape.dim[2],
	             k->shape.dim[2], q->shape.dim[3], v->shape.dim[3]);
	emit_strides(e, "q", q->stride);
	emit_strides(e, "k", k->stride);
	emit_strides(e, "v", v->stride);
	if (mask) {
		nest_strides(mask, &scores, step);
		out_line(e->out, ".mask = { %lld, %lld, %lld, %lld },",
		         (long long)step[0], (long long)step[1],
		         (long long)step[2], (long long)step[3]);
		out_line(e->out, ".mask_type = %s,", tables_dtype(mask->dt));
	}
	out_line(e->out, ".causal = %d, .scale = %s, .ratio = %s,",
	         at->causal != 0, emit_float(e->arena, at->scale),
	         emit_double(e->arena, at->ratio));
	if (at->ratio > 0) {
		out_line(e->out, ".stream = (uint32_t)%s,",
		         emit_const(e, at->stream));
		emit_piece(e, o, at);
	}
	emit_stretches(e, at->share_heads ? 1 : at->context, q->shape.dim[2],
	               k->shape.dim[2]);
	out_line(e->out, ".type = %s,", tables_dtype(q->dt));
	if (e->emitter->attention)
		e->emitter->attention(e, n, q, k);
}

/* like: so many operands are of one type. */
static bool
check_attention(struct emit *e, const Node *n, int like, const Val *q,
                const Val *mask, const Val *o, double ratio)
{
	emit_shapes(e, n);
	if (ratio > 0 && o->placement.kind == PLACEMENT_SHARD
	    && (o->placement.axis > 1 || o->placement.nsegment > 1))
		return diag_internal(e->diag, "codegen: attention with dropout "
		                     "is sharded along dim %d",
		                     o->placement.axis);
	if (q->dt != DT_F32 && !dtype_is_half(q->dt))
		return emit_unsupported(e, n, q->dt);
	if (mask && mask->dt != DT_F32 && mask->dt != DT_BOOL
	    && !dtype_is_half(mask->dt))
		return emit_unsupported(e, n, mask->dt);
	for (int i = 0; i < like; i++) {
		const Val *v = emit_in(e, n, i);

		if (v->dt != q->dt)
			return diag_internal(e->diag, "codegen: attention on "
			                     "operands of dtypes %s and %s",
			                     dtype_info[q->dt].text,
			                     dtype_info[v->dt].text);
	}
	return true;
}

static const char *
kernel_suffix(const struct emit *e, const Val *q, const Val *v)
{
	return e->emitter->attention_kernel
	     ? e->emitter->attention_kernel(e, q, v) : "";
}

bool
emit_attention(struct emit *e, const Node *n)
{
	const Val *q = emit_in(e, n, 0), *k = emit_in(e, n, 1);
	const Val *v = emit_in(e, n, 2), *mask = emit_in(e, n, 3);
	const Val *o = emit_out(e, n, 0);
	struct attrs at = { n->attr.ATTENTION.scale, n->attr.ATTENTION.ratio,
		n->attr.ATTENTION.causal, n->attr.ATTENTION.stream,
		n->attr.ATTENTION.batch_segments, n->attr.ATTENTION.half,
		n->attr.ATTENTION.context, n->attr.ATTENTION.share_heads };

	if (!check_attention(e, n, 3, q, mask, o ? o : q, at.ratio))
		return false;
	emit_struct(e, n, &at, q, k, v, mask, o ? o : q);
	if (o)
		emit_strides(e, "o", o->stride);
	out_line(e->out, "};");
	emit_line(e, n, "ckr_attention%s(&a, $o0, $o1,",
	          kernel_suffix(e, q, v));
	emit_line(e, n, "              $i0, $i1, $i2, %s, $w, env);",
	          mask ? "p[3]" : "NULL");
	return true;
}

/* Offset and strides of part `which` (q, k, v) of a packed output
 * [B, T, (H + 2G) * D]. */
static int64_t
packed_offset(const Val *y, int64_t heads, int64_t groups, int64_t dim,
              int which, int64_t *stride)
{
	stride[0] = y->stride[0];
	stride[1] = dim;
	stride[2] = y->stride[1];
	return which == 0 ? 0 : (heads + (which - 1) * groups) * dim;
}

bool
emit_attention_grad(struct emit *e, const Node *n)
{
	static const char *const name[] = { "dq", "dk", "dv" };
	const Val *d_o = emit_in(e, n, 0), *q = emit_in(e, n, 1);
	const Val *k = emit_in(e, n, 2), *v = emit_in(e, n, 3);
	const Val *o = emit_in(e, n, 4), *mask = emit_in(e, n, 6);
	bool packed = n->attr.ATTENTION_GRAD.packed;
	struct attrs at = { n->attr.ATTENTION_GRAD.scale,
		n->attr.ATTENTION_GRAD.ratio, n->attr.ATTENTION_GRAD.causal,
		n->attr.ATTENTION_GRAD.stream,
		n->attr.ATTENTION_GRAD.batch_segments,
		n->attr.ATTENTION_GRAD.half, n->attr.ATTENTION_GRAD.context,
		n->attr.ATTENTION_GRAD.share_heads };
	int64_t starts[3] = { 0 };
	const char *to[3];

	if (!check_attention(e, n, 5, q, mask, o, at.ratio))
		return false;
	emit_include(e, "attention_grad");
	emit_struct(e, n, &at, q, k, v, mask, o);
	emit_strides(e, "d_o", d_o->stride);
	emit_strides(e, "o", o->stride);
	for (int i = 0; i < 3; i++) {
		const Val *y = emit_out(e, n, packed ? 0 : i);
		int64_t stride[3] = { 0 }, start = 0;
		int arg = n->nin + (packed ? 0 : i);

		to[i] = "NULL";
		if (!y)
			continue;
		for (int d = 0; d < 3; d++)
			stride[d] = y->stride[d];
		if (packed)
			start = packed_offset(y, q->shape.dim[1],
			                      k->shape.dim[1], q->shape.dim[3],
			                      i, stride);
		starts[i] = start;
		to[i] = arena_printf(e->arena, "p[%d]", arg);
		emit_strides(e, name[i], stride);
	}
	out_line(e->out, "};");
	out_line(e->out, "const struct ckr_attention_grad t = {");
	out_line(e->out, ".d_o = p[0], .q = p[1], .k = p[2], .v = p[3],");
	out_line(e->out, ".o = p[4], .lse = p[5], .mask = %s,",
	         mask ? "p[6]" : "NULL");
	out_line(e->out, ".dq = %s, .dk = %s, .dv = %s,", to[0], to[1], to[2]);
	out_line(e->out, ".start = { %lld, %lld, %lld },",
	         (long long)starts[0], (long long)starts[1],
	         (long long)starts[2]);
	out_line(e->out, "};");
	emit_line(e, n, "ckr_attention_grad%s(&a, &t, $w, env);",
	          kernel_suffix(e, q, v));
	return true;
}
