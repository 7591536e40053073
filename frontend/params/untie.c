/* Accidental ties: parameters that the exporter merged because they were
 * equal.
 *
 * TorchScript merges equal parameters of any shape, such as those of copies of
 * a module, and leaves an Identity node with the name of each.  A parameter
 * that modules share has one name and no such node.
 *
 * Without names, a tie is taken for an accident if a vector with equal
 * elements, as after initialisation, feeds several norm or bias slots, and the
 * signature lists parameters that the file lacks.  A module called several
 * times is no accident: by the exporter's notes, all its calls read the same
 * parameters.
 *
 * cost   linear in the nodes for each such vector
 */
#include "frontend/onnx/flat_read.h"
#include "frontend/onnx/onnx_op.h"
#include "frontend/params/params.h"
#include "frontend/params/signature.h"

/* Whether all elements are equal, as in norms and biases after
 * initialisation. */
static bool
uniform(struct flat *f, const Onnx__TensorProto *p)
{
	Val v;
	int64_t n = flat_load(f, p, &v);
	size_t size = n > 0 ? (size_t)dtype_info[v.dt].nbytes : 0;

	for (int64_t i = 1; i < n; i++)
		if (memcmp((const char *)v.data + (size_t)i * size, v.data,
		           size) != 0)
			return false;
	return n > 0;
}

static bool
is_norm_or_bias(const struct flat_node *n, int input)
{
	return n->op && input < 32 && n->op->norm & 1u << input;
}

/* How many norm or bias slots each value feeds. */
static int *
count_slots(struct flat *f)
{
	int *slots = arena_array(f->arena, (size_t)f->nval + 1, sizeof *slots);

	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];

		for (int k = 0; n->needed && k < n->nin; k++)
			slots[n->in[k]] += is_norm_or_bias(n, k);
	}
	return slots;
}

static bool
is_identity(const struct flat_node *n)
{
	return n->needed && n->nin == 1 && n->nout == 1 && !*n->domain
		&& strcmp(n->type, "Identity") == 0;
}

static int
clone_param(struct flat *f, int v, const char *name)
{
	struct flat_val copy = f->val[v];

	f->val = arena_grow(f->arena, f->val, (size_t)f->nval, &f->val_cap,
	                    (size_t)f->nval + 1, sizeof *f->val);
	copy.name = name;
	copy.info = NULL;
	copy.output = false;
	copy.nuse = 1;
	copy.untied = true;
	copy.tie = v;
	f->nuntied++;
	f->val[f->nval] = copy;
	return f->nval++;
}

/* The exporter's note of the parameters that n's call reads, from the first
 * name on; NULL: no note. */
static const char *
recorded_params(const struct flat_node *n)
{
	const char *s = NULL;

	for (size_t i = 0; i < n->p->n_metadata_props && !s; i++)
		if (n->p->metadata_props[i]->value)
			s = strstr(n->p->metadata_props[i]->value,
			           WIRE_PARAMETER);
	return s;
}

/* Whether the calls of a and b are known to have the same parameters. */
static bool
reads_same_params(const struct flat_node *a, const struct flat_node *b)
{
	const char *x = recorded_params(a), *y = recorded_params(b);

	if (!x || !y)
		return false;
	while (x && y) {
		size_t n = strcspn(x, ",) ");

		if (strcspn(y, ",) ") != n || strncmp(x, y, n) != 0)
			return false;
		x = strstr(x + n, WIRE_PARAMETER);
		y = strstr(y + n, WIRE_PARAMETER);
	}
	return x == y;
}

/* A norm or bias slot, and the value that feeds it now. */
struct slot_reader {
	const struct flat_node *node;
	int slot, val;
};

/* The value that feeds the same slot of the same call; 0: none yet. */
static int
find_call(const struct slot_reader *seen, int n, const struct flat_node *node,
          int slot)
{
	for (int i = 0; i < n; i++)
		if (seen[i].slot == slot
		    && (seen[i].node->p == node->p
		        || reads_same_params(seen[i].node, node)))
			return seen[i].val;
	return 0;
}

/* Give each norm or bias slot that reads v directly a parameter of its own,
 * except the first slot and those of the same call. */
static int
untie_readers(struct flat *f, int v, int nslot, bool apply)
{
	struct slot_reader *seen = arena_array(f->arena, (size_t)nslot,
	                                       sizeof *seen);
	int n = 0;

	for (int i = 0; i < f->nnode; i++) {
		struct flat_node *node = &f->node[i];

		for (int k = 0; node->needed && k < node->nin; k++) {
			int to;

			if (node->in[k] != v || !is_norm_or_bias(node, k))
				continue;
			to = find_call(seen, n, node, k);
			if (!to) {
				to = n == 0 || !apply ? v
					: clone_param(f, v, arena_printf(
						f->arena, "%s.%d",
						f->val[v].name, n + 1));
				seen[n++] = (struct slot_reader){ node, k, to };
			} else if (to != v) {
				f->val[to].nuse++;
			}
			f->val[v].nuse -= to != v;
			node->in[k] = to;
		}
	}
	return n;
}

/* Make y, an Identity of v, a parameter with a copy of v's contents. */
static void
give_own_contents(struct flat *f, struct flat_node *identity)
{
	int v = identity->in[0], y = identity->out[0];

	f->val[y].init = f->val[v].init;
	f->val[y].tie = v;
	f->val[y].def = -1;
	f->val[y].untied = true;
	f->nuntied++;
	identity->needed = false;
	f->val[v].nuse--;
}

/* Statistics equal a parameter, or those of another module, only by accident.
 * A module called twice has one set: dynamo names the second call's after a
 * result of the first. */
void
untie_statistics(struct flat *f)
{
	for (int i = 0; i < f->nnode; i++) {
		struct flat_node *node = &f->node[i];

		if (!is_identity(node) || !f->val[node->in[0]].init
		    || !f->val[node->out[0]].state_slot
		    || f->val[node->out[0]].output)
			continue;
		if (flat_is_path(f->val[node->out[0]].name))
			give_own_contents(f, node);
		else
			f->val[node->in[0]].state_slot = true;
	}
}

void
untie_names(struct flat *f, bool apply, ParamNameFn *is_param_name,
            const void *ctx)
{
	for (int i = 0; i < f->nnode; i++) {
		struct flat_node *node = &f->node[i];
		int v = node->nin ? node->in[0] : 0, y;

		/* those of a loop's body are there once per trip */
		if (!is_identity(node) || !f->val[v].init || node->index < 0)
			continue;
		y = node->out[0];
		if (f->val[y].output || !is_param_name(ctx, f->val[y].name))
			continue;
		f->val[y].tie = v;
		if (apply)
			give_own_contents(f, node);
	}
}

static void
note_tie(struct flat *f, int v, int n)
{
	if (n < 2)
		return;
	f->val[v].tie = v;
	f->tie = arena_grow(f->arena, f->tie, (size_t)f->ntie, &f->tie_cap,
	                    (size_t)f->ntie + 1, sizeof *f->tie);
	f->tie[f->ntie++] = (struct flat_tie){ v, n };
}

void
untie(struct flat *f, bool lost, bool apply)
{
	int nval = f->nval, *slots = count_slots(f);
	int *names = arena_array(f->arena, (size_t)nval + 1, sizeof *names);
	int *readers = arena_array(f->arena, (size_t)nval + 1, sizeof *readers);

	for (int i = 1; i < nval; i++) {
		const struct flat_val *y = &f->val[i];

		names[y->tie] += y->tie && (!y->untied
		                            || y->verdict == VERDICT_PARAM);
		readers[y->tie] += y->tie && !y->untied;
	}
	for (int v = 1; v < nval; v++) {
		const struct flat_val *x = &f->val[v];
		bool is_param = x->init && x->verdict == VERDICT_PARAM;

		if (names[v] && (is_param || !readers[v]))
			note_tie(f, v, names[v]
			         + (is_param && x->nuse > readers[v]));
		else if (is_param && lost && slots[v] > 1
		         && x->init->n_dims <= 1 && uniform(f, x->init))
			note_tie(f, v, untie_readers(f, v, slots[v], apply));
	}
}
