/* Unroll Loop and Scan: one copy of the body per trip, which reads the results
 * of the copy before.
 *
 * needs    Loop: a trip count that is known, or a condition that is known
 *          after each trip.
 *          Scan (since opset 9): an input with known extents.
 * refuses  others, by leaving the node, which is then reported as any
 *          operator that is missing
 * cost     trips times the body
 */
#include "frontend/onnx/flat_read.h"

#include <string.h>

enum { MAX_TRIPS = 1024, MAX_STATES = 64 };

struct loop_unroll {
	struct flat *f;
	const struct context *c;
	const struct flat_node *n;      /* the Loop or Scan */
	FlatReader *read;               /* reads its body */
	const Onnx__GraphProto *body;
	int64_t trips;
	bool open;                      /* the condition ends the loop */
	int on;                         /* condition after the last trip */
	int nstate;                     /* loop-carried values */
	int nlead;                      /* body inputs before the state */
	int nscan;                      /* inputs read one slice at a time */
	int nout;                       /* stacked outputs */
	int state[MAX_STATES];          /* current values of the state */
	int *slices;                    /* output slices: [trip * nout + k] */
};

/* ---- pieces made here ---- */

static int
new_const(struct loop_unroll *u, const char *what, int type, const void *data,
          size_t n)
{
	Onnx__TensorProto *t = arena_alloc(u->f->arena, sizeof *t);
	int v = flat_add_val(u->f, u->c, arena_printf(u->f->arena, "%s/%s",
	                                              u->n->name, what));

	*t = (Onnx__TensorProto)ONNX__TENSOR_PROTO__INIT;
	t->name = arena_str(u->f->arena, u->f->val[v].name);
	t->has_data_type = t->has_raw_data = 1;
	t->data_type = type;
	t->raw_data.len = n;
	t->raw_data.data = arena_copy(u->f->file->arena, data, n);
	u->f->val[v].init = t;
	return v;
}

/* A node with one attribute; returns its new output. */
static int
new_node(struct loop_unroll *u, const char *type, const char *attribute,
         int64_t value, bool list, int nin, const int *in)
{
	Arena *a = u->f->arena;
	Onnx__NodeProto *p = arena_alloc(a, sizeof *p);
	Onnx__AttributeProto *at = arena_alloc(a, sizeof *at);
	int y = flat_add_val(u->f, u->c, arena_printf(a, "%s/%s", u->n->name,
	                                              type));
	struct flat_node *n = flat_add_node(u->f);

	*at = (Onnx__AttributeProto)ONNX__ATTRIBUTE_PROTO__INIT;
	at->name = arena_str(a, attribute);
	at->has_type = 1;
	at->type = list ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS
	                : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
	at->has_i = !list;
	at->i = value;
	at->n_ints = list;
	at->ints = arena_copy(a, &value, sizeof value);
	*p = (Onnx__NodeProto)ONNX__NODE_PROTO__INIT;
	p->op_type = arena_str(a, type);
	p->n_attribute = 1;
	p->attribute = arena_array(a, 1, sizeof *p->attribute);
	p->attribute[0] = at;
	n->p = p;
	n->name = u->n->name;
	n->domain = "";
	n->type = p->op_type;
	n->opset = 11;                  /* where axes are attributes */
	n->nin = nin;
	n->nout = 1;
	n->in = arena_array(a, (size_t)nin + 1, sizeof *n->in);
	memcpy(n->in, in, (size_t)nin * sizeof *in);
	n->out = n->in + nin;
	n->out[0] = y;
	u->f->val[y].def = u->f->nnode - 1;
	return y;
}

/* ---- is it possible ---- */

/* Element k of a list attribute. */
static int64_t
item(const struct flat_node *n, const char *name, int k)
{
	const Onnx__AttributeProto *a = attr_find(n, name);

	return a && (size_t)k < a->n_ints ? a->ints[k] : 0;
}

static const Onnx__NodeProto *
find_writer(const Onnx__GraphProto *g, const char *name)
{
	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_output; k++)
			if (strcmp(g->node[i]->output[k], name) == 0)
				return g->node[i];
	return NULL;
}

/* Whether the body's condition is its own input, a constant, or a known value
 * from outside. */
static bool
keeps_going(struct loop_unroll *u, bool *stops)
{
	const Onnx__GraphProto *g = u->body;
	const char *name = flat_text(g->output[0]->name);
	int64_t on = 1;
	bool ok;

	*stops = false;
	for (size_t hops = 0; hops <= g->n_node; hops++) {
		const Onnx__NodeProto *by = find_writer(g, name);
		int outer = by ? 0 : flat_name_get(&u->c->names, name);
		const Onnx__TensorProto *t;

		if (strcmp(name, flat_text(g->input[1]->name)) == 0)
			return true;
		if (outer) {
			if (!flat_number(u->f, outer, &on))
				return false;
			*stops = !on;
			return true;
		}
		if (!by || !by->op_type)
			return false;
		if (strcmp(by->op_type, "Constant") == 0) {
			struct flat_node n = { .p = by, .name = "", .type =
				by->op_type, .scope = u->c->attrs };

			t = constant_tensor(u->f, &n, &ok);
			if (!t || !tensor_number(u->f, t, &on))
				return false;
			*stops = !on;
			return true;
		}
		if ((strcmp(by->op_type, "Identity") != 0
		     && strcmp(by->op_type, "Cast") != 0) || by->n_input != 1)
			return false;
		name = by->input[0];
	}
	return false;
}

static bool
plan_loop(struct loop_unroll *u)
{
	const struct flat_node *n = u->n;
	int64_t on = 1;
	bool stops;

	u->trips = MAX_TRIPS;
	if (n->nin < 2
	    || (n->in[0] && !flat_number(u->f, n->in[0], &u->trips))
	    || (n->in[1] && !flat_number(u->f, n->in[1], &on)))
		return false;
	u->nlead = 2;
	u->nstate = n->nin - 2;
	u->nout = n->nout - u->nstate;
	if (u->body->n_input != (size_t)n->nin || u->body->n_output < 1)
		return false;
	u->open = n->in[1] && !keeps_going(u, &stops);
	if (!u->open && n->in[1] && stops && u->trips > 1)
		u->trips = 1;
	else if (!u->open && !n->in[0])
		return false;           /* endless loop */
	if (!on || u->trips < 0)
		u->trips = 0;
	return true;
}

/* Extent of a value on an axis; -1: unknown. */
static int64_t
known_extent(struct flat *f, int v, int64_t axis)
{
	const struct flat_known *k;
	const Onnx__TensorProto *t = flat_tensor(f, v);
	const Onnx__ValueInfoProto *info = f->val[v].info;
	const Onnx__TensorShapeProto *s;

	if (t) {
		axis += axis < 0 ? (int64_t)t->n_dims : 0;
		return axis < 0 || (size_t)axis >= t->n_dims ? -1
			: t->dims[axis];
	}
	s = info && info->type && info->type->tensor_type
		? info->type->tensor_type->shape : NULL;
	if (s) {
		int64_t at = axis + (axis < 0 ? (int64_t)s->n_dim : 0);

		if (at >= 0 && (size_t)at < s->n_dim
		    && s->dim[at]->value_case
		       == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
			return s->dim[at]->dim_value;
	}
	k = flat_request(f, v);
	if (!k || !shape_known(&k->shape))
		return -1;
	axis += axis < 0 ? k->shape.rank : 0;
	return axis < 0 || axis >= k->shape.rank ? -1 : k->shape.dim[axis];
}

static bool
plan_scan(struct loop_unroll *u)
{
	const struct flat_node *n = u->n;
	const Onnx__AttributeProto *a = attr_find(n, "num_scan_inputs");

	if (n->opset < 9 || !a || a->i < 1 || a->i > n->nin)
		return false;
	u->nscan = (int)a->i;
	u->nstate = n->nin - u->nscan;
	u->nout = n->nout - u->nstate;
	u->trips = -1;
	for (int i = 0; i < u->nscan; i++) {
		int64_t d = known_extent(u->f, n->in[u->nstate + i],
		                         item(n, "scan_input_axes", i));

		if (d >= 0)
			u->trips = d;
	}
	return u->trips > 0 && u->body->n_input == (size_t)n->nin;
}

static bool
can_unroll(struct loop_unroll *u)
{
	const Onnx__AttributeProto *a = attr_find(u->n, "body");
	bool loop = u->n->type[0] == 'L';
	int depth = u->c->call ? u->c->call->depth : 0;

	u->body = a ? a->g : NULL;
	if (!u->body || depth >= MAX_CALLS
	    || !(loop ? plan_loop(u) : plan_scan(u)))
		return false;
	return u->trips <= MAX_TRIPS && u->nstate <= MAX_STATES
		&& u->nout >= 0 && (u->trips > 0 || u->nout == 0)
		&& u->body->n_output
		   == (size_t)(loop + u->nstate + u->nout);
}

/* ---- one trip ---- */

/* Values that the body's inputs stand for, by position. */
static void
bind_inputs(struct loop_unroll *u, struct name_scope *names, int64_t trip)
{
	const Onnx__GraphProto *g = u->body;
	const char on = 1;

	if (u->nlead) {
		flat_name_set(u->f, names, flat_text(g->input[0]->name),
		              new_const(u, "trip", 7, &trip, sizeof trip));
		flat_name_set(u->f, names, flat_text(g->input[1]->name),
		              new_const(u, "on", 9, &on, 1));
	}
	for (int i = 0; i < u->nstate; i++)
		flat_name_set(u->f, names,
		              flat_text(g->input[u->nlead + i]->name),
		              u->state[i]);
	for (int i = 0; i < u->nscan; i++) {
		int64_t at = item(u->n, "scan_input_directions", i)
			? u->trips - 1 - trip : trip;
		int in[2] = { u->n->in[u->nstate + i],
			new_const(u, "trip", 7, &at, sizeof at) };

		flat_name_set(u->f, names,
		              flat_text(g->input[u->nstate + i]->name),
		              new_node(u, "Gather", "axis",
		                       item(u->n, "scan_input_axes", i),
		                       false, 2, in));
	}
}

static bool
read_trip(struct loop_unroll *u, int64_t trip)
{
	const Onnx__GraphProto *g = u->body;
	struct flat *f = u->f;
	struct call call = { u->c->call, NULL,
	                     u->c->call ? u->c->call->depth + 1 : 1 };
	struct context inner = *u->c;
	int lead = u->nlead != 0;

	inner.names = (struct name_scope){
		.up = (struct name_scope *)&u->c->names,
	};
	inner.prefix = arena_printf(f->arena, "%s/%jd/", u->n->name,
	                            (intmax_t)trip);
	inner.call = &call;
	inner.top = false;
	inner.bound = true;
	bind_inputs(u, &inner.names, trip);
	if (!u->read(f, &inner, g))
		return false;
	if (u->open)
		u->on = flat_name_get(&inner.names,
		                      flat_text(g->output[0]->name));
	for (int i = 0; i < u->nstate + u->nout; i++) {
		const char *name = flat_text(g->output[lead + i]->name);
		int v = flat_name_get(&inner.names, name);
		int64_t axis = i < u->nstate ? 0
			: item(u->n, "scan_output_axes", i - u->nstate);

		if (!v)
			return diag_error(f->diag, "value '%s' is never "
			                  "written", name);
		if (i < u->nstate)
			u->state[i] = v;
		else
			u->slices[trip * u->nout + i - u->nstate] =
				new_node(u, "Unsqueeze", "axes", axis, true, 1,
				         &v);
	}
	return true;
}

/* ---- the whole ---- */

static void
stack_slices(struct loop_unroll *u, int k, int y)
{
	bool backwards = item(u->n, "scan_output_directions", k) != 0;
	int *in = arena_array(u->f->arena, (size_t)u->trips, sizeof *in);

	for (int64_t t = 0; t < u->trips; t++)
		in[backwards ? u->trips - 1 - t : t] =
			u->slices[t * u->nout + k];
	flat_add_identity(u->f, new_node(u, "Concat", "axis",
	                                 item(u->n, "scan_output_axes", k),
	                                 false, (int)u->trips, in), y);
}

/* Restore the node: the loop cannot be unrolled to its end. */
static void
restore_node(struct loop_unroll *u)
{
	struct flat_node *n = flat_add_node(u->f);

	*n = *u->n;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			u->f->val[n->out[i]].def = u->f->nnode - 1;
}

/* Unroll all trips; *known is false if their number depends on data. */
static bool
read_trips(struct loop_unroll *u, bool *known)
{
	int64_t on = 1;

	*known = true;
	for (int64_t t = 0; on && t < u->trips; t++) {
		if (!read_trip(u, t))
			return false;
		*known = !u->open || flat_number(u->f, u->on, &on);
		if (!*known)
			return true;
		if (!on)
			u->trips = t + 1;
	}
	*known = !on || u->n->in[0] || !u->open;
	return true;
}

bool
flat_unroll(struct flat *f, const struct context *c,
            const struct flat_node *n, FlatReader *read, bool *ok)
{
	struct loop_unroll u = { .f = f, .c = c, .n = n, .read = read };
	bool known;

	if (!can_unroll(&u))
		return false;
	f->nnode--;                     /* the node itself */
	for (int i = 0; i < u.nstate; i++)
		u.state[i] = n->in[u.nlead + i];
	u.slices = arena_array(f->arena,
	                       (size_t)(u.trips * u.nout) + 1,
	                       sizeof *u.slices);
	*ok = read_trips(&u, &known);
	if (*ok && !known)
		restore_node(&u);
	for (int i = 0; *ok && known && i < n->nout; i++) {
		if (!n->out[i])
			continue;
		if (i < u.nstate)
			flat_add_identity(f, u.state[i], n->out[i]);
		else
			stack_slices(&u, i - u.nstate, n->out[i]);
	}
	return true;
}
