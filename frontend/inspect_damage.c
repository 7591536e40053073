/* What exporters damage silently, each with the export option that avoids it.
 */
#include "frontend/findings.h"
#include "frontend/import_flat.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static void warn(struct findings *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void
warn(struct findings *x, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	x->warning = arena_grow(x->arena, x->warning, (size_t)x->nwarning,
	                        &x->warning_cap, (size_t)x->nwarning + 1,
	                        sizeof *x->warning);
	x->warning[x->nwarning++] = arena_str(x->arena, text);
}

/* Whether b is a transposed; both are float matrices of the file. */
static bool
transposed(struct findings *x, const struct flat_val *a,
           const struct flat_val *b)
{
	struct onnx_tensor s, t;
	int64_t rows, cols;
	size_t size;

	if (a->init->n_dims != 2 || b->init->n_dims != 2
	    || a->init->data_type != b->init->data_type
	    || a->init->dims[0] != b->init->dims[1]
	    || a->init->dims[1] != b->init->dims[0]
	    || !onnx_tensor_load(x->f->file, a->init, &s)
	    || !onnx_tensor_load(x->f->file, b->init, &t)
	    || !s.data || !t.data || s.nelem == 0)
		return false;
	rows = s.shape.dim[0];
	cols = s.shape.dim[1];
	size = (size_t)dtype_info[s.dt].nbytes;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < cols; k++)
			if (memcmp((const char *)s.data
			           + (size_t)(i * cols + k) * size,
			           (const char *)t.data
			           + (size_t)(k * rows + i) * size, size) != 0)
				return false;
	return true;
}

static void
find_renamed(struct findings *x)
{
	struct flat *f = x->f;
	int renamed = 0, first = 0;

	for (int i = 1; i < f->nval; i++) {
		const struct flat_val *v = &f->val[i];

		if (v->verdict != VERDICT_PARAM || !v->init
		    || flat_is_path(v->name) || !v->nuse
		    || strcmp(v->reason, "in the place of a weight") != 0)
			continue;
		first = renamed++ ? first : i;
		for (int k = 1; k < f->nval; k++)
			if (k != i && f->val[k].init && f->val[k].nuse
			    && f->val[k].verdict == VERDICT_PARAM
			    && flat_is_path(f->val[k].name)
			    && transposed(x, v, &f->val[k]))
				warn(x,
				     "'%s' is '%s' transposed: the exporter "
				     "split a tied weight in two, each is "
				     "trained on its own; export with "
				     "optimize=False (dynamo) or "
				     "do_constant_folding=False (TorchScript)",
				     v->name, f->val[k].name);
	}
	if (renamed)
		warn(x, "%d parameter%s lost %s name%s (the first is '%s'): "
		     "checkpoints will use what the exporter made up; export "
		     "with optimize=False (dynamo) or training=TRAINING, "
		     "do_constant_folding=False (TorchScript)", renamed,
		     renamed > 1 ? "s" : "", renamed > 1 ? "their" : "its",
		     renamed > 1 ? "s" : "", f->val[first].name);
}

/* Masks add huge negative numbers; no parameter looks like that. */
static bool
is_mask(struct findings *x, const struct flat_val *v)
{
	struct onnx_tensor t;
	Val val = { .kind = V_CONST };

	if (!onnx_tensor_load(x->f->file, v->init, &t) || !t.data)
		return false;
	val.dt = t.dt;
	val.shape = t.shape;
	val.data = t.data;
	for (int64_t i = 0; i < t.nelem; i++)
		if (val_float(&val, i) < -1e4)
			return true;
	return false;
}

/* An embedding with several readers is tied in earnest and stands for as many
 * names. */
static int
tied_names(const struct flat *f)
{
	int n = 0;

	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *node = &f->node[i];
		const struct flat_val *v = &f->val[node->nin ? node->in[0] : 0];

		if (strcmp(node->type, "Gather") == 0 && v->init
		    && v->verdict == VERDICT_PARAM && v->nuse > 1)
			n += v->nuse - 1;
	}
	return n;
}

/* Whether v is added to what a Gather gives. */
static bool
is_beside_embedding(const struct flat *f, int v)
{
	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];
		int other = n->nin != 2 ? 0 : n->in[0] == v ? n->in[1]
			: n->in[1] == v ? n->in[0] : 0;
		int def = other ? f->val[other].def : -1;

		if (other && strcmp(n->type, "Add") == 0 && def >= 0
		    && strcmp(f->node[def].type, "Gather") == 0)
			return true;
	}
	return false;
}

static void
warn_folded(struct findings *x, int i)
{
	const struct flat_val *v = &x->f->val[i];
	size_t rank = v->init->n_dims;

	if (rank >= 2 && is_beside_embedding(x->f, i))
		warn(x, "'%s' is added to an embedding: %jd rows cut from a "
		     "position table, which is not trained so and fits no "
		     "other length; export with optimize=False (dynamo) or "
		     "do_constant_folding=False (TorchScript); --train '%s' "
		     "trains the rows", v->name,
		     (intmax_t)v->init->dims[rank - 2], v->name);
	else
		warn(x, "'%s' would get a gradient but is not trained: it may "
		     "be part of a folded parameter (a scale, a bias); "
		     "--train '%s' trains it, optimize=False (dynamo) or "
		     "do_constant_folding=False (TorchScript) exports the "
		     "parameter itself", v->name, v->name);
}

/* Tables of sines are parameters in some modules, and frozen there. */
static bool
is_sinusoid(struct findings *x, const struct flat_val *v)
{
	const float one = 0.8414709848f;                /* sin 1 */
	struct onnx_tensor t;
	Val val = { .kind = V_CONST };
	int64_t width;

	if (v->init->n_dims != 2 || !onnx_tensor_load(x->f->file, v->init, &t)
	    || !t.data || t.shape.dim[0] < 2 || t.shape.dim[1] < 4
	    || dtype_info[t.dt].cls != 'f')
		return false;
	val.dt = t.dt;
	val.shape = t.shape;
	val.data = t.data;
	width = t.shape.dim[1];
	for (int64_t i = 0; i < width; i++) {
		double row = val_float(&val, i);

		if (row != 0 && row != 1)
			return false;
	}
	/* position 0 is sin 0 and cos 0; 1 begins with sin 1 */
	return fabs(val_float(&val, width) - one) < 1e-2;
}

static void
find_frozen(struct findings *x)
{
	struct flat *f = x->f;

	for (int i = 1; i < f->nval; i++) {
		const struct flat_val *v = &f->val[i];
		int64_t n = 0;

		if (!v->init || !v->nuse || v->frozen || !v->reason)
			continue;
		if (v->verdict == VERDICT_PARAM && is_sinusoid(x, v))
			warn(x, "'%s' is a table of sines, which modules "
			     "freeze, but no export says so (requires_grad is "
			     "lost): --freeze '%s', or make it a buffer before "
			     "the export", v->name, v->name);
		if (v->verdict != VERDICT_CONST
		    || strcmp(v->reason, "neither named nor placed like a "
		              "weight") != 0)
			continue;
		onnx_tensor_bytes(v->init, &n);
		if (v->init->n_dims >= 1 && n > 1 && !is_mask(x, v))
			warn_folded(x, i);
	}
}

/* Parameters of the exporter's list that the file does not hold. */
static void
find_lost(struct findings *x)
{
	struct flat *f = x->f;
	int lost = f->nlost - tied_names(f);
	const char *names = "";

	if (lost <= 0)
		return;
	for (int i = 0; i < FLAT_LOST && f->lost[i]; i++)
		names = arena_printf(x->arena, "%s%s'%s'", names,
		                     i ? ", " : "", f->lost[i]);
	warn(x, "%d parameter%s of the module %s not in the file under %s "
	     "(missing: %s%s): the exporter folded, merged or cut %s; "
	     "export with optimize=False", lost, lost > 1 ? "s" : "",
	     lost > 1 ? "are" : "is", lost > 1 ? "their names" : "its name",
	     names, f->nlost > FLAT_LOST ? ", ..." : "",
	     lost > 1 ? "them" : "it");
}

static void
find_ties(struct findings *x)
{
	for (int i = 0; i < x->f->ntie; i++)
		warn(x, "'%s' stands for %d norms or biases that the exporter "
		     "merged because they were equal; %s; export in training "
		     "mode (TorchScript) or with optimize=False (dynamo)",
		     x->f->val[x->f->tie[i].val].name, x->f->tie[i].n,
		     x->opt->untie ? "each is trained on its own"
		     : "they are trained together as --untie=off says");
}

/* Whether a Dropout is off although its ratio is not 0. */
static bool
is_inactive_dropout(struct findings *x, const struct flat_node *n)
{
	const Onnx__TensorProto *p;
	struct onnx_tensor t;
	double ratio = 0.5;

	if (strcmp(n->type, "Dropout") != 0 || *n->domain)
		return false;
	if (n->nin > 1 && n->in[1] && (p = flat_tensor(x->f, n->in[1]))
	    && onnx_tensor_load(x->f->file, p, &t) && t.data && t.nelem == 1) {
		Val v = { .kind = V_CONST, .dt = t.dt, .shape = t.shape,
		          .data = t.data };

		ratio = val_float(&v, 0);
	}
	if (ratio == 0)
		return false;
	if (n->opset < 12 || n->nin < 3 || !n->in[2])
		return true;
	p = flat_tensor(x->f, n->in[2]);
	return p && onnx_tensor_load(x->f->file, p, &t) && t.data
		&& t.nelem == 1 && !*(const char *)t.data;
}

static void
find_modes(struct findings *x)
{
	int off = 0, bn = 0;

	for (int i = 0; i < x->f->nnode; i++) {
		const struct flat_node *n = &x->f->node[i];
		const Onnx__AttributeProto *a;

		if (!n->needed)
			continue;
		off += is_inactive_dropout(x, n);
		if (import_lost_smoothing(n) > 0)
			warn(x, "'%s': " LOST_SMOOTHING, n->name,
			     import_lost_smoothing(n));
		if (strcmp(n->type, "BatchNormalization") == 0) {
			a = attr_find(n, "training_mode");
			bn += !a || !a->i;
		}
	}
	if (off)
		warn(x, "%d Dropout node%s inactive (no training_mode, or "
		     "false): trained without; attention by "
		     "scaled_dot_product_attention exports so, an eager "
		     "attention and training=TRAINING keep them", off,
		     off > 1 ? "s are" : " is");
	if (bn)
		warn(x,
		     "%d BatchNormalization node%s in inference form: running "
		     "statistics are used and never updated; export with "
		     "training=TRAINING (TorchScript) or a custom translation "
		     "(dynamo)",
		     bn, bn > 1 ? "s are" : " is");
	if (x->f->file->wire.training_info)
		warn(x,
		     "training_info of the file is ignored: ckc makes its own "
		     "gradients");
	if (x->f->file->wire.nunknown)
		warn(x, "%zu fields are not known to ONNX 1.23 and ignored",
		     x->f->file->wire.nunknown);
}

/* Parameters that reach no loss although they are called so. */
static void
find_idle(struct findings *x)
{
	int idle = 0;
	const char *first = "";

	for (int i = 1; i < x->f->nval; i++) {
		const struct flat_val *v = &x->f->val[i];

		if (!v->init || v->verdict != VERDICT_CONST || v->reached
		    || v->state_slot || !flat_is_path(v->name)
		    || onnx_dtype(v->init->data_type) == DT_NONE
		    || dtype_info[onnx_dtype(v->init->data_type)].cls != 'f')
			continue;
		first = idle++ ? first : v->name;
	}
	if (idle)
		warn(x, "%d tensor%s named like a parameter %s no gradient and "
		     "%s not trained (the first is '%s')", idle,
		     idle > 1 ? "s" : "", idle > 1 ? "get" : "gets",
		     idle > 1 ? "are" : "is", first);
}

void
inspect_damage(struct findings *x)
{
	find_ties(x);
	find_renamed(x);
	find_frozen(x);
	find_lost(x);
	find_idle(x);
	find_modes(x);
	for (int i = 0; i < x->opt->nnote; i++)
		warn(x, "%s", x->opt->note[i]);
}
