/* Frozen weights in fewer bits: what no update writes needs no float32.
 *
 *     y = matmul(x, w)    becomes    y = matmul(x, dequantize(q))    or, of 16
 *                                    bits, y = matmul(x, cast(h))
 *
 * q holds w in blocks of 64 weights with a scale each (support/blocks.h), as
 * QLoRA does (Dettmers et al. 2023).  The values that the nodes give are
 * planned as any others: kept, made again, or never made where the machine's
 * products convert such weights themselves (fuse/fuse_frozen.c).
 *
 * Only weights of matrix products are stored in blocks; not those whose results
 * become the class scores of a cross-entropy or a log-softmax, as every score
 * would move (bitsandbytes keeps them, too).  Of several options that match a
 * parameter the last one that it can follow counts.
 *
 * needs   P_STATIC, P_CANON, P_LOSS
 * cost    linear in weights
 * refuses an option that no parameter follows; weights without contents are
 *         planned, too
 */
#include "passes/frozen/frozen.h"
#include "ir/element.h"
#include "runtime/support/blocks.h"

#include <math.h>
#include <string.h>

/* Why a parameter cannot be stored in blocks. */
enum obstacle {
	FITS,
	NO_FLOATS,
	NO_MATRIX,
	NO_PRODUCT,
	IS_CLASSIFIER,
	NO_BLOCKS,
	OBSTACLES
};

static const char *const obstacle_text[OBSTACLES] = {
	[NO_FLOATS] = "its type is not a float",
	[NO_MATRIX] = "it is not a matrix",
	[NO_PRODUCT] = "other ops than matrix products use it",
	[IS_CLASSIFIER] = "it makes the logits of the loss",
	[NO_BLOCKS] = "its last dimension is no multiple of 64",
};

#define F16_END 65520.0                 /* rounds to infinity */

struct frozen {
	Pass *p;
	Graph *g;
	uint32_t nval;                  /* values before; arrays have so many */
	bool *logits;                   /* by value */
	enum obstacle *obstacle;        /* by value */
	const struct type_wish **wish;  /* by value: that it follows; NULL */
	DType *type;                    /* by value: to store it in; DT_NONE: as
	                                 * it is */
	DType *was;                     /* by value: its type before */
	ValId *wide;                    /* by value: what readers take instead;
	                                 * 0: nothing yet */
	NodeId *order;
	uint32_t n;
	const struct uses *uses;
};

/* ---- what can be stored in blocks ---- */

/* Values that become class scores of a cross-entropy, element by element and by
 * moves. */
static void
find_logits(struct frozen *f)
{
	Graph *g = f->g;

	for (NodeId id = g->nnode; id-- > 1;) {
		const Node *n = &g->node[id];
		bool moves = op_info[n->op].flags & (F_EW | F_VIEW);

		if (n->op == OP_SCE || n->op == OP_LOG_SOFTMAX)
			f->logits[n->in[0]] = true;
		for (int k = 0; k < n->nin; k++)
			f->logits[n->in[k]] |= moves && f->logits[n->out[0]];
	}
	f->logits[0] = false;
}

static enum obstacle
find_obstacle(const struct frozen *f, ValId id)
{
	const Val *v = &f->g->val[id];
	enum obstacle found = FITS;

	if (v->shape.rank != 2)
		return NO_MATRIX;
	FOR_USES (i, f->uses, id) {
		const Node *n = &f->g->node[f->uses->node[i]];

		if (n->op != OP_MATMUL || n->in[1] != id || n->in[0] == id)
			return NO_PRODUCT;
		if (f->logits[n->out[0]])
			found = IS_CLASSIFIER;
	}
	if (f->uses->first[id] == f->uses->first[id + 1])
		return NO_PRODUCT;
	return found ? found
	     : v->shape.dim[1] % BLOCK_WEIGHTS ? NO_BLOCKS : FITS;
}

/* Nothing trains without backward, unless it is the evaluation of what trains.
 */
static bool
is_frozen_param(const struct frozen *f, const Val *v)
{
	return v->kind == V_PARAM
	       && (v->frozen || (f->p->opt->forward_only && !f->p->training));
}

static bool
can_follow(const struct frozen *f, const Val *v, DType dt)
{
	enum obstacle why = f->obstacle[val_id(f->g, v)];

	return v->dt == dt
	       || (why != NO_FLOATS && (!why || !dtype_is_blocks(dt)));
}

static void
find_types(struct frozen *f)
{
	const struct options *o = f->p->opt;

	FOR_VALS (v, f->g) {
		ValId id = val_id(f->g, v);

		if (!is_frozen_param(f, v))
			continue;
		f->obstacle[id] = dtype_info[v->dt].cls != 'f'
			|| v->dt == DT_F64 ? NO_FLOATS : find_obstacle(f, id);
		for (int i = 0; i < o->nfrozen_dtype; i++)
			if (can_follow(f, v, o->frozen_dtype[i].dt)
			    && glob_match(o->frozen_dtype[i].glob, v->name))
				f->wish[id] = &o->frozen_dtype[i];
		if (f->wish[id])
			f->type[id] = f->wish[id]->dt;
	}
}

/* ---- what is said ---- */

static const char *
type_text(DType dt)
{
	return dt == DT_INT8X64 ? "int8" : dt == DT_NF4X64 ? "nf4"
	     : dtype_info[dt].text;
}

static const char *
wish_text(const struct frozen *f, const struct type_wish *w)
{
	return strcmp(w->glob, "*") == 0
	       ? arena_printf(f->p->scratch, "--frozen-dtype %s",
	                      type_text(w->dt))
	       : arena_printf(f->p->scratch, "--frozen-dtype '%s=%s'", w->glob,
	                      type_text(w->dt));
}

/* Why none that matches follows the option. */
static bool
refuse_wish(const struct frozen *f, const struct type_wish *w)
{
	const char *text = wish_text(f, w);
	const Val *trained = NULL, *other = NULL;

	FOR_VALS (v, f->g) {
		enum obstacle why = f->obstacle[val_id(f->g, v)];

		if (v->kind != V_PARAM || !glob_match(w->glob, v->name))
			continue;
		if (!is_frozen_param(f, v))
			trained = v;
		else if (!other || why > f->obstacle[val_id(f->g, other)])
			other = v;
	}
	if (other)
		return diag_error(f->p->diag, "%s: no frozen parameter can be "
		                  "stored so: '%s': %s", text, other->name,
		                  obstacle_text[f->obstacle[val_id(f->g,
		                                                   other)]]);
	if (trained)
		return diag_error(f->p->diag, "%s: '%s' is trained, and only "
		                  "frozen parameters change their type; try: "
		                  "--freeze '%s', or --lora GLOB=RANK, which "
		                  "freezes all others", text, trained->name,
		                  w->glob);
	return diag_error(f->p->diag, "%s: there is no such parameter; "
	                  "--dump=canon shows their names", text);
}

/* An option that nothing could follow is a mistake. */
static bool
check_frozen_wish(const struct frozen *f, const struct type_wish *w)
{
	bool could = false;

	FOR_VALS (v, f->g) {
		if (f->wish[val_id(f->g, v)] == w)
			return true;
		could |= is_frozen_param(f, v) && can_follow(f, v, w->dt)
			&& glob_match(w->glob, v->name);
	}
	if (!could)
		return refuse_wish(f, w);
	diag_warn(f->p->diag, "%s has no effect: options behind it apply to "
	          "the same parameters, and the last one counts",
	          wish_text(f, w));
	return true;
}

/* Parameters that match an option for blocks but have another type. */
static void
note_others(const struct frozen *f)
{
	const struct options *o = f->p->opt;
	const char *first = NULL, *why = "";
	int64_t many = 0, bytes = 0;

	FOR_VALS (v, f->g) {
		ValId id = val_id(f->g, v);
		bool asked = false;

		for (int i = 0; i < o->nfrozen_dtype; i++)
			asked |= dtype_is_blocks(o->frozen_dtype[i].dt)
				&& glob_match(o->frozen_dtype[i].glob, v->name);
		if (!asked || !is_frozen_param(f, v) || f->type[id]
		    || f->obstacle[id] == NO_FLOATS)
			continue;
		many++;
		bytes += val_data_bytes(v);
		if (!first || f->obstacle[id] == IS_CLASSIFIER) {
			first = v->name;
			why = obstacle_text[f->obstacle[id]];
		}
	}
	if (many)
		diag_note(f->p->diag, "--frozen-dtype: %lld frozen parameters "
		          "(%.1f MiB) keep their type, as '%s': %s; "
		          "--frozen-dtype bf16 before the other stores them in "
		          "16 bits", (long long)many, (double)bytes / 0x1p20,
		          first, why);
}

static void
note_stored(const struct frozen *f, DType dt, int64_t many, int64_t before,
            int64_t after)
{
	if (many)
		diag_note(f->p->diag, "--frozen-dtype: %lld frozen parameters "
		          "stored as %s take %.1f MiB instead of %.1f MiB",
		          (long long)many, type_text(dt),
		          (double)after / 0x1p20, (double)before / 0x1p20);
}

/* ---- parameters ---- */

/* The contents in the new type, a block of weights at a time; the last one of
 * 16-bit floats may be shorter. */
static const void *
stored_data(const struct frozen *f, const Val *v, DType dt)
{
	bool beyond = false;
	bool blocks = dtype_is_blocks(dt);
	int64_t n = val_nelem(v), size = dtype_info[dt].nbytes;
	int64_t most = blocks ? n / BLOCK_WEIGHTS : n;
	char *data = arena_array(f->g->arena, (size_t)most + 1, (size_t)size);
	double wide[BLOCK_WEIGHTS];
	float x[BLOCK_WEIGHTS];

	for (int64_t at = 0; at < n; at += BLOCK_WEIGHTS) {
		int some = n - at < BLOCK_WEIGHTS ? (int)(n - at)
			: BLOCK_WEIGHTS;

		element_get_floats(v->dt, v->data, at, some, wide);
		for (int k = 0; k < some; k++) {
			x[k] = (float)wide[k];
			beyond |= dt == DT_F16 && fabs(wide[k]) >= F16_END
				&& isfinite(wide[k]);
		}
		if (blocks)
			blocks_pack((uint8_t)dt,
			            data + at / BLOCK_WEIGHTS * size, x, 1);
		else
			element_set_floats(dt, data, at, some, wide);
	}
	if (beyond)
		diag_warn(f->p->diag, "--frozen-dtype f16: '%s' has weights "
		          "beyond 65504, which become infinite; try: bf16",
		          v->name);
	return data;
}

/* The parameter itself gets the type, under its name. */
static void
store_param(struct frozen *f, ValId id)
{
	Val *v = &f->g->val[id];
	DType dt = f->type[id];
	bool blocks = dtype_is_blocks(dt);

	if (v->data)
		v->data = stored_data(f, v, dt);
	v->dt = dt;
	if (blocks)
		v->shape.dim[1] /= BLOCK_WEIGHTS;
}

static void
store_params(struct frozen *f)
{
	static const DType type[] = { DT_BF16, DT_F16, DT_INT8X64, DT_NF4X64 };

	for (size_t t = 0; t < sizeof type / sizeof *type; t++) {
		int64_t many = 0, before = 0, after = 0;

		FOR_VALS (v, f->g) {
			ValId id = val_id(f->g, v);

			if (f->type[id] != type[t])
				continue;
			v->frozen = true;
			if (v->dt == type[t])
				continue;
			many++;
			before += val_data_bytes(v);
			store_param(f, id);
			after += val_data_bytes(v);
		}
		note_stored(f, type[t], many, before, after);
	}
}

/* ---- nodes ---- */

static void
schedule_frozen_node(struct frozen *f, NodeId id)
{
	f->order[f->n++] = id;
}

/* v, which `like` reads, in the type that it had; 0 after a diagnostic. */
static ValId
widened(struct frozen *f, ValId v, DType to, NodeId like)
{
	Graph *g = f->g;
	Attr a = attr_default(OP_DEQUANTIZE);
	ValId y;

	a.DEQUANTIZE.to = to;
	y = dtype_is_blocks(g->val[v].dt)
	    ? emit_op(g, f->p->diag, OP_DEQUANTIZE, 1, &v, &a, like)
	    : emit_cast(g, f->p->diag, v, to, like);
	if (y)
		schedule_frozen_node(f, g->val[y].def);
	return y;
}

/* v takes the place of y, with its name. */
static void
take_name(Graph *g, ValId y, ValId v)
{
	const char *name = g->val[y].name;

	val_rename(g, y, arena_printf(g->arena, "%s.before", name));
	val_rename(g, v, name);
	g->val[v].output = g->val[y].output;
	g->val[v].onnx = g->val[y].onnx;
	g->val[v].rows = g->val[y].rows;
	g->val[y].output = false;
	g->val[y].onnx = NULL;
}

/* The rows that are looked up are converted, not the table. */
static bool
gather_first(struct frozen *f, NodeId id, uint32_t nnode)
{
	Graph *g = f->g;
	const Node n = g->node[id];
	ValId y = n.out[0], rows, wide;

	rows = emit_op(g, f->p->diag, OP_GATHER, 2, n.in, &n.attr, id);
	if (!rows)
		return false;
	schedule_frozen_node(f, g->val[rows].def);
	wide = widened(f, rows, g->val[y].dt, id);
	if (!wide)
		return false;
	val_replace(g, y, wide, id + 1, nnode);
	take_name(g, y, g->val[y].output ? wide : rows);
	return true;
}

/* Whether readers of v, old or new, find another type than before. */
static bool
is_stored_otherwise(const struct frozen *f, ValId v)
{
	return v && v < f->nval && f->type[v] && f->type[v] != f->was[v];
}

static bool
convert_readers(struct frozen *f, uint32_t nnode)
{
	Graph *g = f->g;

	for (NodeId id = 1; id < nnode; id++) {
		ValId table = g->node[id].op == OP_GATHER ? g->node[id].in[0]
			: 0;

		if (is_stored_otherwise(f, table)) {
			if (!gather_first(f, id, nnode))
				return false;
			continue;
		}
		for (int k = 0; k < g->node[id].nin; k++) {
			ValId v = g->node[id].in[k];

			if (!is_stored_otherwise(f, v))
				continue;
			if (!f->wide[v])
				f->wide[v] = widened(f, v, f->was[v], id);
			if (!f->wide[v])
				return false;
			g->node[id].in[k] = f->wide[v];
		}
		schedule_frozen_node(f, id);
	}
	graph_reorder(g, f->order, f->n);
	return true;
}

/* Each node may get two more in front, each of its operands one. */
static uint32_t
most_nodes(const Graph *g)
{
	uint32_t n = g->nnode;

	FOR_NODES (node, g)
		n += (uint32_t)node->nin + 2;
	return n;
}

bool
pass_frozen(Pass *p, Graph *g)
{
	const struct options *o = p->opt;
	struct frozen f = { .p = p, .g = g, .nval = g->nval };
	struct uses uses;

	if (!o->nfrozen_dtype)
		return true;
	if (g->props & P_BWD)
		return diag_error(p->diag, "--frozen-dtype must be applied "
		                  "before differentiation, but the graph "
		                  "already has a backward pass");
	uses = graph_uses(g, p->scratch);
	f.uses = &uses;
	f.logits = arena_array(p->scratch, g->nval, sizeof *f.logits);
	f.wish = arena_array(p->scratch, g->nval, sizeof *f.wish);
	f.obstacle = arena_array(p->scratch, g->nval, sizeof *f.obstacle);
	f.type = arena_array(p->scratch, g->nval, sizeof *f.type);
	f.was = arena_array(p->scratch, g->nval, sizeof *f.was);
	f.wide = arena_array(p->scratch, g->nval, sizeof *f.wide);
	f.order = arena_array(p->scratch, most_nodes(g), sizeof *f.order);
	FOR_VALS (v, g)
		f.was[val_id(g, v)] = v->dt;
	find_logits(&f);
	find_types(&f);
	for (int i = 0; i < o->nfrozen_dtype; i++)
		if (!check_frozen_wish(&f, &o->frozen_dtype[i]))
			return false;
	note_others(&f);
	store_params(&f);
	return convert_readers(&f, g->nnode);
}
