/* Constants that may hold parameters, parameters that may be buffers, and
 * parameters without a gradient.
 */
#include "frontend/lint/lint_context.h"
#include "frontend/params/params.h"
#include "runtime/support/glob.h"

#include <string.h>

#define WHOLE "optimize=False (dynamo) or do_constant_folding=False " \
	"(TorchScript)"

/* Whether v is added to the result of a Gather. */
static bool
is_added_to_embedding(const struct flat *f, int v)
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

/* Whether v is the initial state of an LSTM, GRU or RNN. */
static bool
is_first_state(const struct flat *f, int v)
{
	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *n = &f->node[i];

		if (strcmp(n->type, "LSTM") != 0 && strcmp(n->type, "GRU") != 0
		    && strcmp(n->type, "RNN") != 0)
			continue;
		for (int k = 5; k < n->nin && k < 7; k++)
			if (n->in[k] == v)
				return true;
	}
	return false;
}

/* Whether only one extent is not 1, as in a scale or a bias. */
static bool
is_single_axis(const struct flat_val *v)
{
	int wide = 0;

	for (size_t i = 0; i < v->init->n_dims; i++)
		wide += v->init->dims[i] != 1;
	return wide == 1;
}

/* The parameter from which the exporter folded a constant that would get a
 * gradient: w for w.norm() of x @ w * w.norm().  NULL: none, or unknown. */
static const char *
lost_source(struct lint_context *s, const struct flat_val *v)
{
	const struct glob_wish *wish;
	const char *name;

	if (!v->nuse || !v->reached || v->by_option
	    || v->verdict != VERDICT_CONST
	    || strcmp(v->reason, "not a float tensor") == 0)
		return NULL;
	name = folded_from(s, v);
	wish = name ? glob_last(s->opt->nwish, s->opt->wish, name) : NULL;
	return wish && !wish->wanted ? NULL : name;
}

static bool
is_orphan(const struct flat_val *v)
{
	static const char *const doubtful[] = {
		"neither named nor used like a weight",
		"a scalar without a parameter's name"
	};
	int64_t n = 0;

	if (!v->init || !v->nuse || v->frozen || v->verdict != VERDICT_CONST
	    || (strcmp(v->reason, doubtful[0]) != 0
	        && strcmp(v->reason, doubtful[1]) != 0))
		return false;
	onnx_tensor_bytes(v->init, &n);
	/* TorchScript's constants are nodes: what it folded to a number may
	 * have been computed from a parameter */
	return n > 1 ? v->init->n_dims >= 1
		: strncmp(v->name, "onnx::", 6) == 0;
}

/* Constants with a gradient, grouped by probable origin. */
struct orphans {
	struct lint_group rows, copies, folded;
	struct lint_group computed;     /* folded, with a note of the source */
	const char *source;             /* source of the first of these */
	int64_t nrow;                   /* rows of the first table */
	bool can_rows, can_folded;      /* the first is trainable as it is */
};

static bool
sort_orphan(struct lint_context *s, struct orphans *o, int i)
{
	const struct flat_val *v = &s->f->val[i];
	enum contents c = classify_contents(s->f, v);
	size_t rank = v->init->n_dims;
	bool maybe;

	/* a parameter may begin as one number, or with equal rows */
	if (!v->made_up && (c == CONTENTS_COPIES || c == CONTENTS_STATE))
		c = CONTENTS_PLAIN;
	maybe = c == CONTENTS_UNKNOWN || c == CONTENTS_PLAIN;
	if (c == CONTENTS_COPIES
	    || (c == CONTENTS_STATE && !is_first_state(s->f, i))) {
		group_add_name(s, &o->copies, v->name);
	} else if (maybe && rank >= 2 && is_added_to_embedding(s->f, i)) {
		if (o->rows.n == 0) {
			o->nrow = v->init->dims[rank - 2];
			o->can_rows = c == CONTENTS_PLAIN;
		}
		group_add_name(s, &o->rows, v->name);
	} else if (c == CONTENTS_PLAIN) {
		if (o->folded.n == 0)
			o->can_folded = is_single_axis(v);
		group_add_name(s, &o->folded, v->name);
	} else {
		return false;
	}
	return true;
}

/* Constants identified by notes alone: numbers, and contents like a mask's. */
static void
add_computed(struct lint_context *s, struct orphans *o,
             const struct flat_val *v,
             const char *source)
{
	o->source = o->computed.n ? o->source : source;
	group_add(s, &o->computed, v->name,
	          arena_printf(s->arena, "'%s' from '%s'", v->name, source));
}

static void
warn_computed(struct lint_context *s, const struct orphans *o)
{
	int n = o->computed.n;

	if (n)
		add_warning(s, &o->computed,
		    "%s: the exporter computed %s from %s%s%s as a constant, "
		    "through which no gradient flows; export with "
		    "optimize=False",
		    group_subject(s, &o->computed), plural(n, "it", "them"),
		    plural(n, "'", "parameters (the first is '"), o->source,
		    plural(n, "'", "')"));
}

static void
find_orphans(struct lint_context *s)
{
	struct orphans o = { 0 };
	const char *first;

	for (int i = 1; i < s->f->nval; i++) {
		const struct flat_val *v = &s->f->val[i];
		const char *source = lost_source(s, v);

		if (source && is_trained(s->f, source))
			add_computed(s, &o, v, source);
		else if (!(is_orphan(v) && sort_orphan(s, &o, i)) && source)
			add_computed(s, &o, v, source);
	}
	warn_computed(s, &o);
	first = o.rows.first;
	if (o.rows.n)
		add_warning(s, &o.rows,
		    "%s %s added to an embedding: %jd rows of a position "
		    "table, which is not trained in this form and fits no "
		    "other length; export with " WHOLE "%s",
		    group_subject(s, &o.rows), plural(o.rows.n, "is", "are"),
		    (intmax_t)o.nrow, o.can_rows
		    ? arena_printf(s->arena, "; to train the rows, try: "
		                   "--train '%s'", first) : "");
	if (o.copies.n)
		add_warning(s, &o.copies,
		    "%s %s copies of one stored value, e.g. a class token or "
		    "positions for each row of the batch: not trained, and "
		    "--train would train each copy separately; export with "
		    WHOLE, group_subject(s, &o.copies),
		    plural(o.copies.n, "holds", "hold"));
	first = o.folded.first;
	if (o.folded.n)
		add_warning(s, &o.folded,
		    "%s would get a gradient but %s not trained: %s may be "
		    "part of a folded parameter (a scale, a bias); export the "
		    "parameter with " WHOLE "%s", group_subject(s, &o.folded),
		    plural(o.folded.n, "is", "are"),
		    plural(o.folded.n, "it", "they"), o.can_folded
		    ? arena_printf(s->arena, ", or if it is a parameter, try: "
		                   "--train '%s'", first) : "");
}

/* ---- terms of the loss ---- */

/* A number that an exporter computed.  Literals of the source are Constant
 * nodes, or have names such as val_7 (dynamo). */
static bool
is_computed_number(const struct flat_val *v)
{
	return v->init && v->init->n_dims == 0 && !v->frozen && !v->by_option
		&& v->verdict == VERDICT_CONST
		&& strcmp(v->reason, "a scalar without a parameter's name") == 0
		&& strncmp(v->name, "val_", 4) != 0;
}

const struct flat_node *
sum_producer(const struct flat *f, int v)
{
	static const char *const types[] = { "Add", "Sub", "Sum", "Mul",
		"Div", "Neg", "Identity", "Cast", "Squeeze", "Reshape" };
	const struct flat_node *n = f->val[v].def < 0 ? NULL
		: &f->node[f->val[v].def];

	if (!n || *n->domain)
		return NULL;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(n->type, types[i]) == 0)
			return n;
	return NULL;
}

/* A penalty on parameters depends on no input.  An exporter that folds
 * constants turns it into a number, and its gradient is lost. */
static void
find_folded_terms(struct lint_context *s)
{
	struct flat *f = s->f;
	bool *met = arena_array(s->arena, (size_t)f->nval, sizeof *met);
	int *todo = arena_array(s->arena, (size_t)f->nval, sizeof *todo);
	int *target, n;
	struct lint_group g = { 0 };

	flat_targets(f, s->opt, &target, &n);
	if (n != 1 || !is_pytorch(f))
		return;
	for (todo[0] = *target; n > 0;) {
		const struct flat_node *sum = sum_producer(f, todo[--n]);

		for (int i = 0; sum && i < sum->nin; i++) {
			int in = sum->in[i];

			if (!in || met[in])
				continue;
			met[in] = true;
			if (is_computed_number(&f->val[in])
			    && !lost_source(s, &f->val[in])
			    && strcmp(sum->type, "Mul") != 0
			    && strcmp(sum->type, "Div") != 0)
				group_add_name(s, &g, f->val[in].name);
			todo[n++] = in;
		}
	}
	if (g.n)
		add_warning(s, &g,
		    "%s %s added to the loss: %s without a gradient, perhaps "
		    "from a penalty on parameters that the exporter folded; "
		    "export with " WHOLE, group_subject(s, &g),
		    plural(g.n, "is a number", "are numbers"),
		    plural(g.n, "a term", "terms"));
}

/* Some modules have sinusoidal tables as frozen parameters.  Copies that the
 * user trains would drift apart. */
static void
find_wrongly_trained(struct lint_context *s)
{
	struct lint_group sines = { 0 }, copies = { 0 };

	for (int i = 1; i < s->f->nval; i++) {
		const struct flat_val *v = &s->f->val[i];

		if (!v->init || !v->nuse || v->frozen
		    || v->verdict != VERDICT_PARAM)
			continue;
		if (!v->by_option && is_sinusoid_table(s->f, v))
			group_add(s, &sines, v->name,
			          arena_printf(s->arena, "--freeze '%s'",
			                       v->name));
		else if (v->by_option && !flat_is_path(v->name)
		         && v->init->n_dims > 1
		         && classify_contents(s->f, v) == CONTENTS_COPIES)
			group_add_name(s, &copies, v->name);
	}
	if (sines.n)
		add_warning(s, &sines,
		    "%s %s and %s trained, because exports do not store "
		    "requires_grad; if %s frozen in PyTorch, export a buffer "
		    "with the dynamo exporter, or try: %s",
		    group_subject(s, &sines),
		    plural(sines.n, "looks like a fixed sinusoidal table",
		           "look like fixed sinusoidal tables"),
		    plural(sines.n, "is", "are"),
		    plural(sines.n, "it is", "they are"),
		    group_options(s, &sines));
	if (copies.n)
		add_warning(s, &copies,
		    "%s %s copies of one stored value: --train trains each "
		    "copy separately; export with " WHOLE,
		    group_subject(s, &copies),
		    plural(copies.n, "holds", "hold"));
}

/* Names that modules give to parameters and rarely to buffers: weight,
 * weight_ih_l0, in_proj_bias, cls_token, relative_position_bias_table. */
static bool
is_parameter_name(const char *name)
{
	static const char *const ends[] = { "weight", "bias", "bias_table",
		"gamma", "beta", "token", "embed", "embedding",
		"embeddings" };
	const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
	size_t n = strlen(name);

	if (strstr(name, "parametrizations.")
	    || strncmp(last, "weight", 6) == 0 || strncmp(last, "bias", 4) == 0)
		return true;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (n >= strlen(ends[i])
		    && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

/* Losses have weights of classes as buffers. */
static bool
is_in_loss(const char *name)
{
	return flat_is_path(name)
		&& (strstr(name, "loss") || strstr(name, "crit"));
}

/* TorchScript's exporter writes buffers and parameters alike. */
static void
find_maybe_buffers(struct lint_context *s)
{
	struct lint_group g = { 0 };

	for (int i = 1; i < s->f->nval; i++) {
		const struct flat_val *v = &s->f->val[i];

		if (v->init && v->nuse && v->named && !v->frozen
		    && !v->by_option && v->verdict == VERDICT_PARAM
		    && (!is_parameter_name(v->name) || is_in_loss(v->name))
		    && !is_sinusoid_table(s->f, v))
			group_add(s, &g, v->name,
			          arena_printf(s->arena, "--freeze '%s'",
			                       v->name));
	}
	if (g.n)
		add_warning(s, &g,
		    "%s %s trained as %s: this file does not distinguish "
		    "parameters from buffers (files of the dynamo exporter "
		    "do); for buffers, try: %s", group_subject(s, &g),
		    plural(g.n, "is", "are"),
		    plural(g.n, "a parameter only because of its name",
		           "parameters only because of their names"),
		    group_options(s, &g));
}

/* Tensors named like parameters that the loss does not depend on. */
static void
find_idle(struct lint_context *s)
{
	struct lint_group g = { 0 };

	for (int i = 1; i < s->f->nval; i++)
		if (s->f->val[i].idle)
			group_add(s, &g, s->f->val[i].name,
			          arena_printf(s->arena, "--freeze '%s'",
			                       s->f->val[i].name));
	if (g.n)
		add_warning(s, &g,
		    "%d parameter%s of the model get%s no gradient from the "
		    "loss and stay%s as %s (the first is '%s'); checkpoints "
		    "leave %s out, ckrun --export-onnx does not; if this is "
		    "intended, try: %s", g.n,
		    plural(g.n, "", "s"), plural(g.n, "s", ""),
		    plural(g.n, "s", ""), plural(g.n, "it is", "they are"),
		    g.first, plural(g.n, "it", "them"), group_options(s, &g));
}

/* No export says which parameters were frozen in the source. */
static void
find_adapters(struct lint_context *s)
{
	struct lint_group lora = { 0 };
	int others = 0;

	if (s->opt->nwish)
		return;
	for (int i = 1; i < s->f->nval; i++) {
		const struct flat_val *v = &s->f->val[i];

		if (!v->init || !v->nuse || v->verdict != VERDICT_PARAM)
			continue;
		if (strstr(v->name, "lora_A") || strstr(v->name, "lora_B"))
			group_add_name(s, &lora, v->name);
		else
			others++;
	}
	if (lora.n && others)
		add_warning(s, NULL,
		    "%d parameter%s trained in addition to %d of LoRA (the "
		    "first is '%s'), because exports do not store "
		    "requires_grad; to train only those of LoRA, try: --freeze "
		    "'*' --train '*lora_*'", others,
		    plural(others, " is", "s are"), lora.n, lora.first);
}

void
lint_trained(struct lint_context *s)
{
	find_wrongly_trained(s);
	find_maybe_buffers(s);
	find_orphans(s);
	find_folded_terms(s);
	find_idle(s);
	find_adapters(s);
}
