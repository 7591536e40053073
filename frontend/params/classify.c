/* Which initializers are trained.  ONNX does not say.
 *
 * A candidate is a float initializer that receives a gradient from the loss:
 * there is a path through inputs that are differentiable.  The first rule
 * that applies decides:
 *   1. input 3 or 4 of a BatchNormalization: buffer
 *   2. named by --param (even if it is not a candidate), --train or --freeze;
 *      the last match of --train and --freeze wins
 *   3. the signature that PyTorch's dynamo exporter or ckc.torch.export leaves
 *      in the metadata, and the frozen parameters that the latter adds
 *   4. folded from constants alone, as PyTorch's optimizer notes: a constant,
 *      which forward computes in each step
 *   5. named by a dotted module path: a parameter, unless the name is usual for
 *      a buffer
 *   6. a plain name in a PyTorch file without a signature: an attribute of the
 *      exported module, because constants have no names there
 *   7. in a weight slot, of the right rank: a weight that the exporter
 *      transposed or merged and so renamed
 *   8. otherwise constant
 *
 * cost   linear in the nodes
 */
#include "frontend/onnx/flat_read.h"
#include "frontend/onnx/onnx_op.h"
#include "frontend/params/params.h"
#include "frontend/params/signature.h"
#include "runtime/support/glob.h"

#include <ctype.h>
#include <string.h>

struct param_classifier {
	struct flat *f;
	const struct import_options *opt;
	const struct signature *signature;
};

/* Whether ONNX's type number is that of a float type. */
static bool
is_float_type(int type)
{
	return dtype_info[onnx_dtype(type)].cls == 'f';
}

static int64_t
count_elements(const Onnx__TensorProto *p)
{
	int64_t n = 1;

	for (size_t i = 0; i < p->n_dims; i++)
		if (!mul_ok(n, p->dims[i], &n))
			return INT64_MAX;
	return n;
}

/* ---- reachability ---- */

static bool
passes_gradient(const struct flat_node *n, int input)
{
	uint32_t bit = input > 31 ? 1u << 31 : 1u << input;

	if (!n->op)
		return true;            /* unknown: refused later */
	if (n->op->stop & bit)
		return false;
	if (strcmp(n->type, "Cast") == 0) {
		const Onnx__AttributeProto *a = attr_find(n, "to");

		return a && a->i > 0 && a->i < 99 && is_float_type((int)a->i);
	}
	return true;
}

static void
mark_reached(struct flat *f, const int *target, int n)
{
	for (int i = 0; i < n; i++)
		f->val[target[i]].reached = true;
	for (int i = f->nnode - 1; i >= 0; i--) {
		const struct flat_node *node = &f->node[i];
		bool live = false;

		for (int k = 0; k < node->nout; k++)
			live |= node->out[k] && f->val[node->out[k]].reached
				&& !(node->op && k < 32
				     && node->op->dead & 1u << k);
		for (int k = 0; live && k < node->nin; k++)
			if (node->in[k] && passes_gradient(node, k))
				f->val[node->in[k]].reached = true;
	}
}

/* ---- slots ---- */

static void
mark_slots(struct flat *f)
{
	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];

		if (!n->op)
			continue;
		if (strcmp(n->type, "BatchNormalization") == 0)
			for (int k = 3; k < 5 && k < n->nin; k++)
				f->val[n->in[k]].state_slot = true;
		for (int s = 0; s < 4; s++) {
			const struct weight_slot *w = &n->op->slot[s];
			struct flat_val *v;

			if (!w->lo || w->input >= n->nin)
				continue;
			v = &f->val[n->in[w->input]];
			if (v->init && v->init->n_dims >= (size_t)w->lo
			    && v->init->n_dims <= (size_t)w->hi)
				v->weight_slot = true;
		}
	}
}

/* ---- the rule ---- */

static bool
any_name(int n, const char *const *names, const char *s)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], s) == 0)
			return true;
	return false;
}

static bool
buffer_name(const char *s)
{
	static const char *const names[] = {
		"inv_freq", "original_inv_freq", "running_mean", "running_var",
		"num_batches_tracked", "pos_weight"
	};
	const char *last = strrchr(s, '.');

	return any_name(sizeof names / sizeof *names, names,
	                last ? last + 1 : s);
}

/* PyTorch's TorchScript exporter, which does not tell buffers from
 * parameters. */
static bool
is_torchscript(const struct param_classifier *c)
{
	return c->signature->n == 0
		&& strcmp(flat_text(c->f->file->model->producer_name),
		          "pytorch") == 0;
}

/* The exporter writes constants as nodes.  Only attributes of the module have
 * Python identifiers as names. */
static bool
attribute_name(const struct param_classifier *c, const char *s)
{
	if (!is_torchscript(c) || buffer_name(s) || flat_is_made_up(s)
	    || (unsigned)(*s - '0') < 10)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_'
		    && (unsigned char)*s < 0x80)
			return false;
	return true;
}

/* Whether the exporter keeps the name for a parameter of the module. */
static bool
is_param_name(const void *ctx, const char *s)
{
	return !buffer_name(s) && (flat_is_path(s) || attribute_name(ctx, s));
}

static void
set_verdict(struct flat_val *v, enum verdict verdict, const char *reason)
{
	v->verdict = verdict;
	v->reason = reason;
}

/* Rules 3 to 8, for a candidate. */
static void
classify_candidate(const struct param_classifier *c, struct flat_val *v)
{
	const struct signature_entry *s = signature_find(c->signature,
	                                                 v->name);
	bool noted;

	if (s && s->kind == 'P')
		set_verdict(v, VERDICT_PARAM,
		            "PARAMETER in the exporter's signature");
	else if (s && s->kind == 'B')
		set_verdict(v, VERDICT_BUFFER,
		            "BUFFER in the exporter's signature");
	else if (s)
		set_verdict(v, VERDICT_CONST,
		            "CONSTANT_TENSOR in the exporter's signature");
	else if (!signature_source(c->f, v, &noted) && noted)
		set_verdict(v, VERDICT_CONST, "computed of constants, by the "
		            "exporter's note");
	else if (flat_is_path(v->name) && buffer_name(v->name))
		set_verdict(v, VERDICT_BUFFER, "named like a buffer");
	else if (flat_is_path(v->name))
		set_verdict(v, VERDICT_PARAM,
		            "named like a module's parameter");
	else if (attribute_name(c, v->name))
		set_verdict(v, VERDICT_PARAM, "named as an attribute of the "
		            "exported module");
	else if (v->weight_slot)
		set_verdict(v, VERDICT_PARAM, "used as a weight");
	else
		set_verdict(v, VERDICT_CONST, count_elements(v->init) == 1
		            ? "a scalar without a parameter's name"
		            : "neither named nor used like a weight");
	/* values that dynamo does not list are computed, named after ops */
	v->made_up = flat_is_made_up(v->name) || (c->signature->n && !s);
	v->named = !s && v->verdict == VERDICT_PARAM
		&& (!v->weight_slot || (is_torchscript(c)
		    && (flat_is_path(v->name) || attribute_name(c, v->name))));
}

static void
classify_value(const struct param_classifier *c, struct flat_val *v)
{
	const struct import_options *o = c->opt;
	const struct glob_wish *wish = glob_last(o->nwish, o->wish, v->name);
	const struct signature_entry *s = signature_find(c->signature,
	                                                 v->name);
	bool param = any_name(o->param.n, o->param.v, v->name);
	bool frozen = wish ? !wish->wanted : s && s->frozen && !param;

	if (!is_float_type(v->init->data_type)) {
		set_verdict(v, VERDICT_CONST, "not a float tensor");
	} else if (v->state_slot && !param) {
		set_verdict(v, VERDICT_BUFFER,
		            "running statistics of a BatchNormalization");
	} else if (frozen) {
		/* as if trained: frozen weights stay in the weights file */
		if (param)
			set_verdict(v, VERDICT_PARAM, "--param");
		else
			classify_candidate(c, v);
		v->frozen = v->verdict == VERDICT_PARAM && v->init->n_dims > 0;
		if (!v->frozen)
			v->verdict = VERDICT_CONST;
		v->reason = wish ? param_option_text(c->f->arena, wish)
			: "frozen in the module, as the file notes";
		v->by_option = true;
	} else if ((wish && v->reached) || param) {
		set_verdict(v, VERDICT_PARAM, param ? "--param"
		            : param_option_text(c->f->arena, wish));
		v->by_option = true;
		if (!v->reached)
			v->reason = arena_printf(c->f->arena, "%s, but gets no "
			                         "gradient", v->reason);
	} else if (!v->reached) {
		v->idle = s ? s->kind == 'P'
			: flat_is_path(v->name) && !buffer_name(v->name);
		set_verdict(v, VERDICT_CONST, v->nuse
		            ? "gets no gradient from the loss" : "not used");
	} else {
		classify_candidate(c, v);
	}
}

/* ---- inputs ---- */

static int
info_type(const struct flat_val *v)
{
	return v->info && v->info->type && v->info->type->tensor_type
		? v->info->type->tensor_type->elem_type : 0;
}

/* Apply --param and --const to inputs, with or without a default. */
static bool
classify_inputs(struct flat *f, const struct import_options *o)
{
	for (int i = 0; i < o->nconst; i++) {
		bool hit = false;

		for (int k = 0; k < f->ninput; k++) {
			struct flat_val *v = &f->val[f->input[k]];

			if (strcmp(v->name, o->constant[i].input) != 0)
				continue;
			hit = true;
			v->file = o->constant[i].file;
			v->init = NULL;
			set_verdict(v, VERDICT_CONST, "--const");
		}
		if (!hit)
			return diag_error(f->diag, "--const %s: no input has "
			                  "that name", o->constant[i].input);
	}
	for (int k = 0; k < f->ninput; k++) {
		struct flat_val *v = &f->val[f->input[k]];

		if (v->init || v->file
		    || !any_name(o->param.n, o->param.v, v->name))
			continue;
		if (!is_float_type(info_type(v)))
			return diag_error(f->diag, "--param %s: not a float "
			                  "tensor", v->name);
		set_verdict(v, VERDICT_PARAM, "named by --param");
	}
	return true;
}

bool
classify(struct flat *f, const struct import_options *opt, bool whole)
{
	struct param_classifier c = { .f = f, .opt = opt };
	int *target, n;

	mark_slots(f);
	untie_statistics(f);
	c.signature = signature_read(f);
	untie_names(f, opt->untie, is_param_name, &c);
	if (!classify_inputs(f, opt))
		return false;
	flat_targets(f, opt, &target, &n);
	mark_reached(f, target, n);
	if (whole && !check_param_options(f, opt))
		return false;
	for (int i = 1; i < f->nval; i++)
		if (f->val[i].init)
			classify_value(&c, &f->val[i]);
	untie(f, c.signature->lost, opt->untie);
	return true;
}
