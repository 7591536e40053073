/* Random words of element-wise nests.
 *
 * The words of an element depend on its row-major index in the shape of the
 * nest, or in the full shape if a rank has a shard of it.  So masks are the
 * same on any number of ranks.
 */
#include "codegen/rules/emit.h"
#include "ir/placement.h"

bool
random_drawn(const struct loop_nest *nest)
{
	for (int i = 0; nest->body && i < nest->body->nop; i++)
		if (op_info[nest->body->op[i].op].flags & F_RNG)
			return true;
	return false;
}

static bool
is_piece(const struct loop_nest *nest)
{
	return nest->split && nest->split->kind == PLACEMENT_SHARD
		&& random_drawn(nest);
}

bool
random_check(const struct emit *e, const struct loop_nest *nest)
{
	return !is_piece(nest) || nest->split->nsegment == 1
		|| diag_internal(e->diag, "codegen: random numbers for shards "
		                 "of %d segments", nest->split->nsegment);
}

void
random_strides(const struct loop_nest *nest, int64_t *stride)
{
	Shape whole = nest->shape;

	if (is_piece(nest))
		whole = placement_whole(nest->split, &nest->shape);
	shape_strides(&whole, stride);
}

/* Elements of the whole before this rank's first. */
static const char *
first_element_text(struct emit *e, const struct loop_nest *nest)
{
	const Placement *s = nest->split;

	if (!is_piece(nest))
		return "";
	return arena_printf(e->arena, " + env->rank / %lld * INT64_C(%lld)",
	                    (long long)s->replication,
	                    (long long)shape_span(&nest->shape, s->axis,
	                                          nest->shape.rank));
}

const char *
random_draw(struct emit *e, const struct scalar_op *m, int i, const char *x)
{
	double a = m->attr.RANDOM.a, b = m->attr.RANDOM.b;

	if (m->op == OP_DROPOUT)
		return arena_printf(e->arena, "w%d[j] >= below%d ? "
		                    "%s * scale%d : 0.0f", i, i, x, i);
	if (m->op == OP_BERNOULLI)
		return arena_printf(e->arena, "ckr_bernoulli(w%d[j], %s)", i,
		                    x);
	if (m->attr.RANDOM.kind == 1)
		return arena_printf(e->arena, "%s + %s * ckr_normal(w%d[j])",
		                    emit_float(e->arena, a),
		                    emit_float(e->arena, b), i);
	if (m->dt == DT_F64)
		return arena_printf(e->arena, "ckr_uniform_d(w%d[j], %s, %s)",
		                    i, emit_double(e->arena, a),
		                    emit_double(e->arena, b));
	return arena_printf(e->arena, "ckr_uniform(w%d[j], %d, %s, %s)", i,
	                    m->dt == DT_BF16 ? 8 : m->dt == DT_F16 ? 11 : 24,
	                    emit_float(e->arena, a), emit_float(e->arena, b));
}

void
random_numbers(struct emit *e, const struct loop_nest *nest)
{
	for (int i = 0; nest->body && i < nest->body->nop; i++) {
		const struct scalar_op *m = &nest->body->op[i];
		const char *ratio;

		if (m->op != OP_DROPOUT)
			continue;
		ratio = emit_double(e->arena, m->attr.DROPOUT.ratio);
		out_line(e->out, "const uint32_t below%d = "
		         "ckr_drop_below(%s, env);", i, ratio);
		out_line(e->out, "const float scale%d = "
		         "ckr_drop_scale(%s, env);", i, ratio);
	}
}

static int64_t
count_segments(const struct scalar_op *m, const char *attr)
{
	Attr a = m->attr;
	const int64_t *n = attr_int_of(m->op, &a, attr);

	return n ? *n : 0;
}

/* How many elements of a replica are behind one another among those of the
 * replicas with the same samples; 0: what m draws does not go by positions. */
static int64_t
position_run(const struct loop_nest *nest, const struct scalar_op *m)
{
	int64_t segments = count_segments(m, "position_segments");
	Shape whole = nest->split ? placement_whole(nest->split, &nest->shape)
	              : nest->shape;

	return segments ? shape_nelem(&whole) / segments : 0;
}

/* How many elements of a replica, or of those with the same samples together,
 * are behind one another in the whole; 0: what m draws does not go by
 * replicas. */
static int64_t
replica_run(const struct emit *e, const struct loop_nest *nest,
            const struct scalar_op *m)
{
	int64_t segments = count_segments(m, "batch_segments");
	Shape whole = nest->split ? placement_whole(nest->split, &nest->shape)
	              : nest->shape;
	int64_t n = shape_nelem(&whole);

	if (count_segments(m, "position_segments"))
		n *= e->g->context;
	return segments ? n / segments : 0;
}

static int64_t
common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

int64_t
random_run(const struct emit *e, const struct loop_nest *nest, int64_t extent,
           int64_t most)
{
	int64_t run = extent, common;

	for (int i = 0; nest->body && i < nest->body->nop; i++) {
		const struct scalar_op *m = &nest->body->op[i];

		run = common_divisor(run, replica_run(e, nest, m));
		run = common_divisor(run, position_run(nest, m));
	}
	if (run == extent)
		return most;
	common = run;
	while (run > most || common % run)
		run--;
	return run;
}

const char *
random_part(struct emit *e, int64_t half)
{
	long long context = e->g->context ? e->g->context : 1;
	const char *part = context > 1
		? arena_printf(e->arena, "env->replica / %lldu", context)
		: "env->replica";

	return half ? arena_printf(e->arena, "(2 * (%s) + %d)", part, half == 2)
		    : part;
}

/* Element `at` is in run at / n of this part, one of `parts` whose runs
 * alternate in the whole. */
static const char *
spread_text(struct emit *e, const char *at, int64_t n, const char *parts,
            const char *part)
{
	return arena_printf(e->arena, "%s + ((%s) / INT64_C(%lld) * (%s - 1) "
	                    "+ %s) * INT64_C(%lld)", at, at, (long long)n,
	                    parts, part, (long long)n);
}

/* Which part of a run of positions this replica has, where the run is the one
 * of element `at`. */
static const char *
position_part(struct emit *e, const char *at, int64_t run)
{
	long long n = e->g->context;
	const char *part = arena_printf(e->arena, "(int64_t)(env->replica %% "
	                                "%lldu)", n);

	return !e->g->zigzag ? part
	     : arena_printf(e->arena, "((%s) / INT64_C(%lld) %% 2 ? %lld - %s "
	                    ": %s)", at, (long long)run, n - 1, part, part);
}

/* Index, in the tensor of all replicas, of the element `at` of this replica or
 * of its half; their runs alternate there. */
static const char *
index_text(struct emit *e, const struct loop_nest *nest,
           const struct scalar_op *m, const char *at)
{
	int64_t n = replica_run(e, nest, m), run = position_run(nest, m);
	long long context = e->g->context;
	int64_t half = count_segments(m, "half");
	const char *parts = context ? arena_printf(e->arena, "(env->replicas / "
	                                           "%lldu)", context)
		: "env->replicas";

	at = arena_printf(e->arena, "0%s%s", at, first_element_text(e, nest));
	if (run)
		at = spread_text(e, at, run,
		                 arena_printf(e->arena, "%lld", context),
		                 position_part(e, at, run));
	if (!n)
		return at;
	return spread_text(e, at, n, half ? arena_printf(e->arena, "2 * %s",
	                                                 parts)
	                   : parts, random_part(e, half));
}

static int64_t
draw_stream(const struct scalar_op *m)
{
	return m->op == OP_DROPOUT ? m->attr.DROPOUT.stream
	     : m->op == OP_BERNOULLI ? m->attr.BERNOULLI.stream
	     : m->attr.RANDOM.stream;
}

void
random_words(struct emit *e, const struct loop_nest *nest, const char *at,
             const char *count, bool buffered)
{
	for (int i = 0; nest->body && i < nest->body->nop; i++) {
		const struct scalar_op *m = &nest->body->op[i];
		const char *index;

		if (!(op_info[m->op].flags & F_RNG))
			continue;
		index = index_text(e, nest, m, at);
		if (!buffered) {
			out_line(e->out, "uint32_t w%d[%s];", i, count);
			out_line(e->out, "ckr_draw<%s>(w%d, (uint64_t)(%s), "
			         "(uint32_t)%s, env);", count, i, index,
			         emit_const(e, draw_stream(m)));
			continue;
		}
		emit_include(e, "words");
		out_line(e->out, "uint32_t words%d[CKR_WORD_BUFFER];", i);
		out_line(e->out, "const uint32_t *w%d = ckr_words(words%d, "
		         "(uint64_t)(%s), %s, (uint32_t)%s, env);", i, i,
		         index, count, emit_const(e, draw_stream(m)));
	}
}

