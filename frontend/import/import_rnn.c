/* RNN, GRU and LSTM: one node `rnn` per direction, which pass `fold` unrolls
 * once the number of steps is known.
 */
#include "frontend/import/node_import.h"

#include <string.h>

enum { KIND_RNN, KIND_GRU, KIND_LSTM };

/* ORDER ACT: passes/fold/fold_rnn.c */
static const char *const activations[] = { "Sigmoid", "Tanh", "Relu",
                                           "Softsign", "Softplus" };

struct recurrent {
	int kind, ndir, nact;
	bool by_batch;                  /* batch before time */
	Attr attr;
};

static ValId
swap_leading_axes(struct importer *m, ValId x, bool wanted)
{
	return wanted && x ? imp_transpose(m, x, (IntList){ 3, { 1, 0, 2 } })
	                   : x;
}

/* Direction d of input i. */
static ValId
direction(struct importer *m, ValId x, int d)
{
	return x ? EMIT_NODE(m, OP_GATHER, NULL, x, imp_scalar(m, d)) : 0;
}

static bool
read_activations(struct importer *m, struct recurrent *r, int d, IntList *act)
{
	static const int usual[3][3] = { { 1 }, { 0, 1 }, { 0, 1, 1 } };
	const Onnx__AttributeProto *p = attr_get(&m->r, "activations", 8);

	act->n = r->nact;
	for (int i = 0; i < r->nact; i++) {
		const ProtobufCBinaryData *s;
		int k = 0;

		act->v[i] = usual[r->kind][i];
		if (!p)
			continue;
		/* RNN's default serves both directions */
		if (p->n_strings != (size_t)(r->nact * r->ndir)
		    && (r->kind != KIND_RNN || p->n_strings != 2))
			return imp_fail(m, "expected %d activations, found %zu",
			                r->nact * r->ndir, p->n_strings);
		s = &p->strings[d * r->nact + i];
		while (k < 5 && (strlen(activations[k]) != s->len
		                 || memcmp(activations[k], s->data, s->len)))
			k++;
		if (k == 5)
			return imp_fail(m, "activation '%.*s' is not supported",
			                s->len > 32 ? 32 : (int)s->len,
			                s->len ? (const char *)s->data : "");
		act->v[i] = k;
	}
	return true;
}

static bool
read_attributes(struct importer *m, struct recurrent *r)
{
	static const char *const ways[] = { "forward", "reverse",
	                                    "bidirectional" };
	int way = attr_word(&m->r, "direction", 0, ways, 3);

	r->kind = m->n->type[0] == 'L' ? KIND_LSTM
		: m->n->type[0] == 'G' ? KIND_GRU : KIND_RNN;
	r->nact = 1 + r->kind;
	r->ndir = 1 + (way == 2);
	r->attr = attr_default(OP_RNN);
	r->attr.RNN.kind = r->kind;
	r->attr.RNN.reverse = way == 1;
	r->attr.RNN.reset_after =
		attr_int(&m->r, "linear_before_reset", 0) != 0;
	r->attr.RNN.coupled = attr_int(&m->r, "input_forget", 0) != 0;
	r->attr.RNN.clip = attr_float(&m->r, "clip", 0);
	r->by_batch = attr_int(&m->r, "layout", 0) != 0;
	if (attr_has(&m->r, "activation_alpha")
	    || attr_has(&m->r, "activation_beta"))
		return imp_fail(m, "activations with parameters are not "
		                "supported");
	return !m->r.failed;
}

/* The weights give the size of the state; hidden_size may repeat it. */
static bool
check_hidden(struct importer *m, const struct recurrent *r)
{
	static const int gates[] = { 1, 3, 4 };
	const Onnx__AttributeProto *p = attr_get(&m->r, "hidden_size", 2);
	int64_t h = imp_dim(m, imp_in(m, 2), 2), rows;

	if (!p)
		return !m->r.failed;
	if (p->i < 1)
		return imp_fail(m, "hidden_size: expected a positive number, "
		                "found %jd", (intmax_t)p->i);
	if (h >= 0 && h != p->i)
		return imp_fail(m, "hidden_size is %jd, but the weights R are "
		                "for %jd", (intmax_t)p->i, (intmax_t)h);
	rows = imp_dim(m, imp_in(m, 1), 1);
	if (rows >= 0 && (rows % gates[r->kind]
	                  || rows / gates[r->kind] != p->i))
		return imp_fail(m, "hidden_size is %jd, but the weights W have "
		                "%jd rows", (intmax_t)p->i, (intmax_t)rows);
	return true;
}

/* Stack one value per direction along a new axis. */
static ValId
stack_directions(struct importer *m, int n, const ValId *x, int64_t axis)
{
	ValId y[2];

	for (int i = 0; i < n; i++)
		y[i] = imp_unsqueeze(m, x[i], axis);
	return n == 1 ? y[0] : imp_concat(m, axis, n, y);
}

bool
run_rnn(struct importer *m)
{
	struct recurrent r;
	ValId x, h0, c0, y[2], yh[2], yc[2], all;

	if (!read_attributes(m, &r) || !check_hidden(m, &r))
		return false;
	x = swap_leading_axes(m, imp_in(m, 0), r.by_batch);
	h0 = swap_leading_axes(m, imp_in(m, 5), r.by_batch);
	c0 = swap_leading_axes(m, imp_in(m, 6), r.by_batch);
	for (int d = 0; d < r.ndir; d++) {
		ValId in[8] = { x, direction(m, imp_in(m, 1), d),
			direction(m, imp_in(m, 2), d),
			direction(m, imp_in(m, 3), d), imp_in(m, 4),
			direction(m, h0, d), direction(m, c0, d),
			direction(m, imp_in(m, 7), d) };

		if (!read_activations(m, &r, d, &r.attr.RNN.act))
			return false;
		if (d)
			r.attr.RNN.reverse = 1;
		y[d] = imp_node(m, OP_RNN, &r.attr, 8, in);
		yh[d] = imp_output(m, y[d], 1);
		yc[d] = imp_output(m, y[d], 2);
		m->g->val[yh[d]].dt = m->g->val[yc[d]].dt =
			m->g->val[y[d]].dt;
	}
	all = stack_directions(m, r.ndir, y, 1); /* [T,D,B,H] */
	if (r.by_batch)
		all = imp_transpose(m, all, (IntList){ 4, { 2, 0, 1, 3 } });
	imp_out(m, 0, all);
	imp_out(m, 1, stack_directions(m, r.ndir, yh, r.by_batch ? 1 : 0));
	if (r.kind == KIND_LSTM)
		imp_out(m, 2, stack_directions(m, r.ndir, yc, r.by_batch ? 1
		                               : 0));
	return true;
}
