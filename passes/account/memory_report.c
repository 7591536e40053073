/* Values that a step saves for backward: by value, by block of a layer, by
 * layer.
 *
 * what    places of the arena that are occupied across the end of forward,
 *         each charged to the segment that writes it; statistics (the side
 *         outputs of norms and attention) apart, as the usual accounts of
 *         activation memory leave them out
 * blocks  the activation between two segments belongs to the norm that reads
 *         it; else a segment with a softmax is attention, another one with
 *         products is the MLP
 * ranks   of a sharded graph all bytes are one rank's, and the shape of the
 *         transformer is the whole one
 * needs   the plan of the final graph and the reference graph
 */
#include "passes/account/memory_report.h"
#include "ir/placement.h"

#include <inttypes.h>
#include <string.h>

const char *const memory_block[B_COUNT] = {
	"norms", "attention", "mlp", "other", "statistics"
};

/* ---- places ---- */

/* By tensor: the step that writes it, -1 none; the first that reads it after
 * forward, plan->nstep none. */
struct places {
	const Plan *plan;
	int64_t boundary;
	int64_t *writer, *reader;
	int64_t *first, *last;          /* by owner, over all that lie in it */
	int64_t *content;               /* by owner: tensor that it holds at
	                                 * the end of forward; -1 */
	const bool *feeds_norm;         /* by owner of the reference */
};

static int64_t
owner_of(const Plan *plan, int64_t i)
{
	return plan->tensor[i].alias_of >= 0 ? plan->tensor[i].alias_of : i;
}

static void
read_steps(struct places *s)
{
	const Plan *plan = s->plan;

	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *t = &plan->step[i];

		if (t->phase == PH_FORWARD)
			s->boundary = i;
		for (int k = 0; k < t->nwrite; k++)
			if (t->write[k] >= 0 && !t->view)
				s->writer[t->write[k]] = i;
	}
	for (int64_t i = plan->nstep - 1; i > s->boundary; i--) {
		const struct plan_step *t = &plan->step[i];

		for (int k = 0; k < t->nread && !t->view; k++)
			s->reader[owner_of(plan, t->read[k])] = i;
	}
}

static struct places
places_find(const Plan *plan, Arena *arena)
{
	size_t n = (size_t)plan->ntensor + 1;
	struct places s = { .plan = plan, .boundary = -1 };

	s.writer = arena_array(arena, n, 8);
	s.reader = arena_array(arena, n, 8);
	s.first = arena_array(arena, n, 8);
	s.last = arena_array(arena, n, 8);
	s.content = arena_array(arena, n, 8);
	for (int64_t i = 0; i < plan->ntensor; i++) {
		s.writer[i] = s.content[i] = -1;
		s.reader[i] = plan->nstep;
		s.first[i] = INT64_MAX;
	}
	read_steps(&s);
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		int64_t o = owner_of(plan, i), *c = &s.content[o];

		if (t->first < s.first[o])
			s.first[o] = t->first;
		if (t->last > s.last[o])
			s.last[o] = t->last;
		if (s.writer[i] >= 0 && s.writer[i] <= s.boundary
		    && (*c < 0 || s.writer[i] > s.writer[*c]))
			*c = i;
	}
	return s;
}

/* ---- rows ---- */

static bool
is_row_norm(Op op)
{
	return op == OP_LAYERNORM || op == OP_RMSNORM;
}

static bool
is_stat(const Graph *g, const Val *v)
{
	Op op = v->def ? g->node[v->def].op : OP_NONE;

	return v->result_index > 0 && (op_info[op].flags & F_ROWS
	                               || op == OP_ATTENTION);
}

/* By owner: read in forward by a norm, directly or through views. */
static bool *
find_norm_inputs(const Graph *g, Arena *arena)
{
	bool *feeds = arena_array(arena, g->nval, sizeof *feeds);

	FOR_NODES (n, g)
		if (n->phase == PH_FORWARD && is_row_norm(n->op) && n->in[0])
			feeds[val_owner(g, n->in[0])] = true;
	return feeds;
}

static enum layer_block
block_of(const struct segments *s, const Graph *g, const bool *feeds_norm,
         ValId id)
{
	const Val *v = &g->val[id];
	int32_t at = s->of_node[v->def];

	if (is_stat(g, v))
		return B_STATS;
	if (at < 0)
		return B_OTHER;
	if (at + 1 < s->n && s->cut[at + 1] == val_owner(g, id))
		return feeds_norm[val_owner(g, id)] ? B_NORM : B_OTHER;
	return s->attention[at] ? B_ATTENTION : s->product[at] ? B_MLP
		: B_OTHER;
}

/* The activation at the end of a segment is the input of what follows. */
static int32_t
layer_of(const struct segments *s, const Graph *g, ValId id)
{
	int32_t at = s->of_node[g->val[id].def];

	if (at < 0 || !s->nlayer)
		return -1;
	if (at + 1 < s->n && s->cut[at + 1] == val_owner(g, id))
		at++;
	at -= s->first;
	return at >= 0 && at < s->nlayer * s->period ? at / s->period : -1;
}

static const char *
onnx_op(const Graph *g, const Val *v)
{
	const Node *n = &g->node[v->def];

	/* the operator whose output it is, else the last one */
	for (int i = 0; v->onnx && i < n->norigin; i++)
		if (!strcmp(g->origin[n->origin[i]].name, v->onnx))
			return g->origin[n->origin[i]].op;
	return n->norigin ? g->origin[n->origin[n->norigin - 1]].op
		: op_info[n->op].text;
}

static void
add_saved(struct memory_report *r, const struct places *s, const Graph *g,
          int64_t owner)
{
	const Plan *plan = s->plan;
	int64_t c = s->content[owner];
	const struct plan_tensor *t = &plan->tensor[c < 0 ? owner : c];
	struct saved *row = &r->saved[r->nsaved++];

	*row = (struct saved){
		.name = t->onnx ? t->onnx : t->name, .op = "", .reader = "",
		.bytes = plan->tensor[owner].bytes, .segment = -1,
		.layer = -1, .block = B_OTHER,
	};
	if (s->reader[owner] < plan->nstep)
		row->reader = plan->step[s->reader[owner]].op;
	if (!t->val || t->val >= g->nval || !g->val[t->val].def)
		return;
	row->op = t->dt == DT_BOOL ? "mask" : onnx_op(g, &g->val[t->val]);
	row->segment = r->seg.of_node[g->val[t->val].def];
	row->block = block_of(&r->seg, g, s->feeds_norm, t->val);
	/* a copy of a weight is no activation of the layer */
	row->layer = val_param_of(g, t->val) ? -1
		: layer_of(&r->seg, g, t->val);
}

/* ---- the shape of a transformer ---- */

/* Scores say batch, heads and length; the layers' input the width. */
static void
find_transformer_shape(struct memory_report *r, const Graph *g)
{
	Shape x;

	if (!r->seg.nlayer || !r->seg.cut[r->seg.first])
		return;
	x = val_whole(&g->val[r->seg.cut[r->seg.first]]);
	r->unit = shape_nelem(&x);
	FOR_NODES (n, g) {
		Shape s = val_whole(&g->val[n->nin ? n->in[0] : 0]);
		Shape w = val_whole(&g->val[n->nin > 1 ? n->in[1] : 0]);

		if ((n->op == OP_SOFTMAX || n->op == OP_ATTENTION)
		    && s.rank == 4 && !r->seq) {
			r->batch = s.dim[0];
			r->heads = s.dim[1];
			r->seq = s.dim[2];
			r->hidden = x.dim[x.rank - 1];
		}
		if (n->op == OP_CLASSIFIER && w.rank == 2)
			r->vocab = w.dim[n->attr.CLASSIFIER.tb ? 0 : 1];
		if (n->op == OP_SCE && s.rank >= 2)
			r->vocab = s.dim[1];
	}
}

static void
sum_saved_by_layer(struct memory_report *r, Arena *arena)
{
	size_t n = (size_t)r->seg.nlayer + 1;

	r->layer = arena_array(arena, n, sizeof *r->layer);
	r->stats = arena_array(arena, n, sizeof *r->stats);
	for (int64_t i = 0; i < r->nsaved; i++) {
		const struct saved *s = &r->saved[i];

		if (s->layer < 0) {
			r->outside += s->bytes;
		} else if (s->block == B_STATS) {
			r->stats[s->layer] += s->bytes;
		} else {
			r->layer[s->layer] += s->bytes;
		}
	}
}

struct memory_report *
memory_report_new(const Pass *p, const Plan *plan, Arena *arena)
{
	struct memory_report *r = arena_alloc(arena, sizeof *r);
	struct places s = places_find(plan, arena);
	const Graph *g = p->planned.reference;

	if (!g)
		return NULL;
	segments_find(&r->seg, g, arena);
	s.feeds_norm = find_norm_inputs(g, arena);
	r->saved = arena_array(arena, (size_t)plan->ntensor + 1,
	                       sizeof *r->saved);
	for (int64_t i = 0; i < plan->ntensor; i++)
		if (plan->tensor[i].alias_of < 0 && !plan->tensor[i].resident
		    && s.first[i] <= s.boundary && s.boundary < s.last[i])
			add_saved(r, &s, g, i);
	FOR_VALS (v, g)
		if (v->kind == V_PARAM && !v->frozen)
			r->param += shape_nelem(&v->shape);
	find_transformer_shape(r, g);
	sum_saved_by_layer(r, arena);
	return r;
}
