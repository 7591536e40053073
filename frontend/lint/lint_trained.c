/* Constants that may hold parameters, parameters that may be buffers, and
 * parameters without a gradient.
 */
#include "frontend/lint/lint_context.h"
#include "frontend/params/params.h"
#include "frontend/params/signature.h"
#include "runtime/support/glob.h"

#include <string.h>

#define WHOLE "optimize=False (dynamo) or do_constant_folding=False " \
	"(TorchScript)"
#define NAMELESS_NUMBER "a scalar without a parameter's name"

/* Whether v is added to the result of a Gather. */
static bool
is_added_to_embedding(const struct flat *f, int v)
{
	FOR_FLAT_NODES (n, f) {
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
	FOR_FLAT_NODES (n, f)
		if (word_is_listed("LSTM GRU RNN", n->type)
		    && (node_input(n, 5) == v || node_input(n, 6) == v))
			return true;
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
	bool noted;

	if (!v->nuse || !v->init || !v->reached || v->by_option
	    || v->verdict != VERDICT_CONST
	    || strcmp(v->reason, "not a float tensor") == 0)
		return NULL;
	name = signature_source(s->f, v, &noted);
	wish = name ? glob_last(s->opt->nwish, s->opt->wish, name) : NULL;
	return wish && !wish->wanted ? NULL : name;
}

static bool
is_orphan(const struct flat_val *v)
{
	int64_t n = 0;

	if (!v->init || !v->nuse || v->frozen || v->verdict != VERDICT_CONST
	    || (strcmp(v->reason, "neither named nor used like a weight") != 0
	        && strcmp(v->reason, NAMELESS_NUMBER) != 0))
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
sort_orphan(struct lint_context *s, struct orphans *o,
            const struct flat_val *v)
{
	int i = (int)(v - s->f->val);
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
             const struct flat_val *v, const char *source)
{
	o->source = o->computed.n ? o->source : source;
	group_add(s, &o->computed, v->name,
	          arena_printf(s->arena, "'%s' from '%s'", v->name, source));
}

/* ", or try: --train 'w'" if the first of the group can be trained. */
static const char *
or_train(struct lint_context *s, const struct lint_group *g, bool can,
         const char *before)
{
	return can ? arena_printf(s->arena, "%s, try: --train '%s'", before,
	                          g->first) : "";
}

static void
find_orphans(struct lint_context *s)
{
	struct orphans o = { .nrow = 0 };

	FOR_FLAT_VALS (v, s->f) {
		const char *source = lost_source(s, v);
		bool trained = source && is_trained(s->f, source);

		if (!trained && is_orphan(v) && sort_orphan(s, &o, v))
			continue;
		if (source)
			add_computed(s, &o, v, source);
	}
	add_warning(s, &o.computed,
	    "{subject}: the exporter computed {it|them} from {'|parameters "
	    "(the first is '}%s{'|')} as a constant, through which no gradient "
	    "flows; export with optimize=False", o.source);
	add_warning(s, &o.rows,
	    "{subject} {is|are} added to an embedding: %jd rows of a position "
	    "table, which is not trained in this form and fits no other "
	    "length; export with " WHOLE "%s", (intmax_t)o.nrow,
	    or_train(s, &o.rows, o.can_rows, "; to train the rows"));
	add_warning(s, &o.copies,
	    "{subject} {holds|hold} copies of one stored value, e.g. a class "
	    "token or positions for each row of the batch: not trained, and "
	    "--train would train each copy separately; export with " WHOLE);
	add_warning(s, &o.folded,
	    "{subject} would get a gradient but {is|are} not trained: "
	    "{it|they} may be part of a folded parameter (a scale, a bias); "
	    "export the parameter with " WHOLE "%s",
	    or_train(s, &o.folded, o.can_folded,
	             ", or if it is a parameter"));
}

/* ---- terms of the loss ---- */

/* A number that an exporter computed.  Literals of the source are Constant
 * nodes, or have names such as val_7 (dynamo). */
static bool
is_computed_number(const struct flat_val *v)
{
	return v->init && v->init->n_dims == 0 && !v->frozen && !v->by_option
		&& v->verdict == VERDICT_CONST
		&& strcmp(v->reason, NAMELESS_NUMBER) == 0
		&& strncmp(v->name, "val_", 4) != 0;
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
			    && !is_op_among(sum, "Mul Div"))
				group_add_name(s, &g, f->val[in].name);
			todo[n++] = in;
		}
	}
	add_warning(s, &g,
	    "{subject} {is a number|are numbers} added to the loss: {a "
	    "term|terms} without a gradient, perhaps from a penalty on "
	    "parameters that the exporter folded; export with " WHOLE);
}

static bool
is_chosen(const struct flat_val *v)
{
	return v->verdict == VERDICT_PARAM && !v->frozen;
}

/* Some modules have sinusoidal tables as frozen parameters. */
static bool
is_trained_table(struct lint_context *s, const struct flat_val *v)
{
	return is_chosen(v) && !v->by_option && is_sinusoid_table(s->f, v);
}

/* Copies that the user trains would drift apart. */
static bool
is_trained_copy(struct lint_context *s, const struct flat_val *v)
{
	return is_chosen(v) && v->by_option && !flat_is_path(v->name)
		&& v->init->n_dims > 1
		&& classify_contents(s->f, v) == CONTENTS_COPIES;
}

static void
find_wrongly_trained(struct lint_context *s)
{
	struct lint_group sines = group_weights(s, is_trained_table, true);
	struct lint_group copies = group_weights(s, is_trained_copy, false);

	add_warning(s, &sines,
	    "{subject} {looks like a fixed sinusoidal table|look like fixed "
	    "sinusoidal tables} and {is|are} trained, because exports do not "
	    "store requires_grad; if {it is|they are} frozen in PyTorch, "
	    "export a buffer with the dynamo exporter, or try: {options}");
	add_warning(s, &copies,
	    "{subject} {holds|hold} copies of one stored value: --train trains "
	    "each copy separately; export with " WHOLE);
}

/* Names that modules give to parameters and rarely to buffers: weight,
 * weight_ih_l0, in_proj_bias, cls_token, relative_position_bias_table. */
static bool
is_parameter_name(const char *name)
{
	static const char *const forms[] = { "*parametrizations.*", "*weight",
		"*bias", "*bias_table", "*gamma", "*beta", "*token", "*embed",
		"*embedding", "*embeddings" };
	const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;

	return glob_match("weight*", last) || glob_match("bias*", last)
		|| glob_any(sizeof forms / sizeof *forms, forms, name);
}

/* Losses have weights of classes as buffers. */
static bool
is_in_loss(const char *name)
{
	return flat_is_path(name)
		&& (strstr(name, "loss") || strstr(name, "crit"));
}

/* TorchScript's exporter writes buffers and parameters alike. */
static bool
is_maybe_buffer(struct lint_context *s, const struct flat_val *v)
{
	return is_chosen(v) && v->named && !v->by_option
		&& (!is_parameter_name(v->name) || is_in_loss(v->name))
		&& !is_sinusoid_table(s->f, v);
}

static void
find_maybe_buffers(struct lint_context *s)
{
	struct lint_group g = group_weights(s, is_maybe_buffer, true);

	add_warning(s, &g,
	    "{subject} {is|are} trained as {a parameter only because of its "
	    "name|parameters only because of their names}: this file does not "
	    "distinguish parameters from buffers (files of the dynamo exporter "
	    "do); for buffers, try: {options}");
}

/* Tensors named like parameters that the loss does not depend on. */
static void
find_idle(struct lint_context *s)
{
	struct lint_group g = { 0 };

	FOR_FLAT_VALS (v, s->f)
		if (v->idle)
			group_add(s, &g, v->name, arena_printf(s->arena,
				"--freeze '%s'", v->name));
	add_warning(s, &g,
	    "{n} {parameter|parameters} of the model {gets|get} no gradient "
	    "from the loss and {stays as it is|stay as they are} (the first is "
	    "{first}); checkpoints leave {it|them} out, ckrun --export-onnx "
	    "does not; if this is intended, try: {options}");
}

static bool
is_adapter(struct lint_context *s, const struct flat_val *v)
{
	(void)s;
	return v->verdict == VERDICT_PARAM
		&& (strstr(v->name, "lora_A") || strstr(v->name, "lora_B"));
}

static bool
is_beside_adapter(struct lint_context *s, const struct flat_val *v)
{
	return v->verdict == VERDICT_PARAM && !is_adapter(s, v);
}

/* No export says which parameters were frozen in the source. */
static void
find_adapters(struct lint_context *s)
{
	struct lint_group lora = group_weights(s, is_adapter, false);
	struct lint_group others = group_weights(s, is_beside_adapter, false);

	others.nline = 0;               /* no details */
	if (lora.n && !s->opt->nwish)
		add_warning(s, &others,
		    "{n} {parameter is|parameters are} trained in addition to "
		    "%d of LoRA (the first is '%s'), because exports do not "
		    "store requires_grad; to train only those of LoRA, try: "
		    "--freeze '*' --train '*lora_*'", lora.n, lora.first);
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
