#include "frontend/driver/auto_request.h"

#include <string.h>

#include "frontend/driver/opts_check.h"
#include "frontend/driver/opts_set.h"
#include "passes/expert_parallel/expert_parallel.h"

/* ---- options beside --auto ---- */

/* Those that --auto cannot follow, with what to do instead. */
static const struct {
	const char *option, *remedy;
} excluded[] = {
	{ "forward-only", "leave out --forward-only, because --auto chooses "
	  "how to train" },
	{ "curve", "add it to the line that --auto prints" },
	{ "curve-svg", "add it to the line that --auto prints" },
	{ "dump", "add it to the line that --auto prints" },
	{ "report", "add it to the line that --auto prints" },
	{ "explain", "add it to the line that --auto prints" },
	{ "passes", "add it to the line that --auto prints" },
	{ "stop-after", "add it to the line that --auto prints" },
};

static int
refuse_excluded(const struct cli *c, FILE *err)
{
	for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++)
		if (option_given(c, excluded[i].option)) {
			fprintf(err, "ckc: --auto does not go with --%s; "
			        "%s\n", excluded[i].option, excluded[i].remedy);
			return 2;
		}
	if (c->opt.budget_pct > 0) {
		fprintf(err, "ckc: --auto: expected --memory-budget as a size, "
		        "found a percentage, which is another size for each "
		        "configuration; try: --memory-budget 80GB\n");
		return 2;
	}
	return CLI_GO;
}

static bool
gives_microbatches(const struct options *o)
{
	return o->pp > 1 && o->microbatches;
}

/* Whether the user fixed the micro-batches of a step. */
static bool
gives_accum(const struct cli *c)
{
	return option_given(c, "grad-accum") || gives_microbatches(&c->opt);
}

/* Micro-batches of a step, as far as options say. */
static int64_t
given_accum(const struct options *o)
{
	return gives_microbatches(o) ? o->microbatches : o->grad_accum;
}

static int
check_counts(const struct cli *c, FILE *err)
{
	const struct options *o = &c->opt;
	long long tp = o->tp > 1 ? o->tp : 1;
	long long dp = o->dp > 1 ? o->dp : o->ep > 1 ? o->ep : 1;
	long long pp = o->pp > 1 ? o->pp : 1;
	long long devices = c->devices ? c->devices : 1;
	long long samples = c->global_batch;
	long long parts = dp * (gives_accum(c) ? given_accum(o) : 1);

	if (!samples) {
		fprintf(err, "ckc: --auto: expected --global-batch B, the "
		        "samples of a step over all devices; try: "
		        "--global-batch 32\n");
		return 2;
	}
	if (tp * dp * pp > devices) {
		fprintf(err, "ckc: --auto: --tp %lld, --dp %lld and --pp %lld "
		        "take %lld devices, found --devices %lld; try: "
		        "--devices %lld\n", tp, dp, pp, tp * dp * pp, devices,
		        tp * dp * pp);
		return 2;
	}
	if (samples % parts) {
		fprintf(err, "ckc: --auto: expected --global-batch as a "
		        "multiple of %lld, of --dp and %s, found "
		        "%lld; try: --global-batch %lld\n", parts,
		        gives_microbatches(o) ? "--microbatches"
		        : "--grad-accum", samples,
		        (samples / parts + 1) * parts);
		return 2;
	}
	return CLI_GO;
}

static int
check_stage(const struct cli *c, FILE *err)
{
	const struct options *o = &c->opt;

	if (o->zero > 0 && (c->devices < 2 || o->dp == 1
	                    || (option_given(c, "dp") && !o->dp))) {
		fprintf(err, "ckc: --auto: --zero %lld needs two replicas at "
		        "least, found %s; leave out --zero\n",
		        (long long)o->zero, c->devices < 2 ? "one device"
		        : "one replica (--dp)");
		return 2;
	}
	if (o->zero_group > 0 && o->dp > 1 && o->dp % o->zero_group) {
		fprintf(err, "ckc: --zero-group %lld: expected a divisor of "
		        "--dp %lld\n", (long long)o->zero_group,
		        (long long)o->dp);
		return 2;
	}
	return CLI_GO;
}

int
check_auto(const struct cli *c, FILE *err)
{
	int status = c->automatic ? refuse_excluded(c, err) : CLI_GO;

	if (!c->automatic && c->opt.batch_dim) {
		fprintf(err, "ckc: --dim ");
		diag_escape(err, c->opt.batch_dim);
		fprintf(err, "=?: expected a size, or --auto, which chooses "
		        "it\n");
		return 2;
	}
	if (!c->automatic)
		return CLI_GO;
	if (status == CLI_GO)
		status = check_counts(c, err);
	return status == CLI_GO ? check_stage(c, err) : status;
}

/* ---- the batch ---- */

static const char *
label(const Val *v)
{
	return v->onnx ? v->onnx : v->name;
}

/* Whether --dim gives this axis a size; *size: which. */
static bool
is_bound(const struct options *o, const Val *v, int axis, int64_t *size,
         Arena *a)
{
	const char *by_axis = arena_printf(a, "%s.%d", label(v), axis);

	for (int i = 0; i < o->ndim; i++)
		if ((v->dim_name[axis]
		     && !strcmp(o->dim[i].name, v->dim_name[axis]))
		    || !strcmp(o->dim[i].name, by_axis)) {
			*size = o->dim[i].size;
			return true;
		}
	for (int i = 0; i < o->nshape; i++)
		if (!strcmp(o->shape[i].input, label(v))
		    && axis < o->shape[i].shape.rank) {
			*size = o->shape[i].shape.dim[axis];
			return true;
		}
	return false;
}

/* The name that --dim gives the first axis of an input a size by; NULL: it has
 * one, or it is a formula of other names. */
static const char *
free_name(const struct options *o, const Val *v, Arena *a)
{
	int64_t size;

	if (v->kind != V_INPUT || v->shape.rank < 1 || v->shape.dim[0] >= 0
	    || is_bound(o, v, 0, &size, a))
		return NULL;
	if (!v->dim_name[0])
		return arena_printf(a, "%s.0", label(v));
	return strpbrk(v->dim_name[0], "+-*/()") ? NULL : v->dim_name[0];
}

static bool
refuse_two_batches(const char *first, const char *second, Diag *diag)
{
	diag_error(diag, "--auto: the first axes of the inputs have two names, "
	           "'%s' and '%s'; expected one, the batch", first, second);
	diag_more(diag, "try: --dim '%s=?' and a size for '%s', or --dim "
	          "'%s=?' and a size for '%s'", first, second, second, first);
	return false;
}

/* *name: of the batch dim; NULL: it has a size. */
static bool
find_batch_dim(const struct options *o, const Graph *g, const char **name,
               Arena *a, Diag *diag)
{
	*name = o->batch_dim;
	if (*name)
		return true;
	FOR_VALS (v, g) {
		const char *own = free_name(o, v, a);

		if (own && *name && strcmp(own, *name) != 0)
			return refuse_two_batches(*name, own, diag);
		*name = own ? own : *name;
	}
	if (*name)
		*name = arena_str(a, *name);
	return true;
}

int64_t
auto_batch(const struct options *o, const Graph *g, const char **name, Arena *a)
{
	const Val *v = graph_batch_input(g);
	int64_t size = -1;

	*name = NULL;
	if (!v)
		return -1;
	if (v->shape.dim[0] >= 0)
		return v->shape.dim[0];
	for (int i = 0; i < o->ndim; i++)
		if (is_bound(&(struct options){ .ndim = 1, .dim = &o->dim[i] },
		             v, 0, &size, a))
			*name = o->dim[i].name;
	return is_bound(o, v, 0, &size, a) ? size : -1;
}

/* The samples of a micro-batch that are not free. */
static bool
find_fixed_batch(const struct options *o, const Graph *g,
                 struct auto_request *r, Arena *a, Diag *diag)
{
	const Val *v = graph_batch_input(g);
	const char *name;
	int64_t size = auto_batch(o, g, &name, a), near;

	if (!v)
		return diag_error(diag, "--auto: the model has no input with a "
		                  "batch axis");
	if (size < 0)
		return diag_error(diag, "--auto: axis 0 of input '%s' has no "
		                  "size; try: --dim %s.0=N", label(v),
		                  label(v));
	size = size < 1 ? 1 : size;
	near = (r->samples / size + 1) * size;
	if (r->samples % size)
		return diag_error(diag, "--auto: expected --global-batch as a "
		                  "multiple of the batch of a micro-batch, "
		                  "%lld (axis 0 of input '%s'), found %lld; "
		                  "try: --global-batch %lld", (long long)size,
		                  label(v), (long long)r->samples,
		                  (long long)near);
	r->fixed.batch = size;
	return true;
}

/* ---- the request ---- */

/* Whether the search may take pipelines. */
static bool
goes_with_stages(const struct cli *c)
{
	const char *remedy;

	return !stages_conflict(c, &remedy) && c->opt.optimizer != OPT_NONE;
}

static void
set_free(const struct cli *c, struct auto_request *r, bool host)
{
	const struct options *o = &c->opt;
	bool trains = o->optimizer != OPT_NONE;

	r->chunks = o->chunks;
	r->zero_bubble = o->zero_bubble;
	r->fixed = (struct auto_config){
		.tp = o->tp > 1 ? o->tp : 1, .dp = o->dp > 1 ? o->dp : 1,
		.pp = o->pp > 1 ? o->pp : 1,
		.ep = o->ep > 1 ? o->ep : 1,
		.zero = o->zero > 0 ? o->zero : 0,
		.zero_group = o->zero_group,
		.accum = given_accum(o),
		.sp = o->sp,
	};
	r->may = (struct auto_free){
		.tp = !option_given(c, "tp"),
		.dp = !option_given(c, "dp") || o->dp == DP_ANY,
		.zero = trains && (!option_given(c, "zero")
		                   || o->zero == ZERO_AUTO),
		.zero_group = trains && !o->zero_group,
		.batch = r->batch_dim != NULL,
		.pp = !option_given(c, "pp") && goes_with_stages(c),
		.accum = !gives_accum(c),
		.sp = !o->sp,
		.halves = !option_given(c, "halves")
			|| o->halves == SPLIT_AUTO,
		.offload = trains && host && !option_given(c, "offload"),
	};
}

/* Nodes of a model whose plans take seconds each, as do all with host memory;
 * seconds for those that are predicted and are then made. */
enum { LARGE = 1000, EXACT_SEC = 10 };

bool
auto_request(const struct cli *c, const Graph *g, struct auto_request *r,
             Arena *a, Diag *diag)
{
	const struct device_profile *d = device_of(g);

	*r = (struct auto_request){
		.devices = c->devices ? c->devices : 1,
		.samples = c->global_batch,
		.budget = c->opt.budget_bytes > 0 ? c->opt.budget_bytes
			: (int64_t)d->memory,
		.device_budget = c->opt.budget_bytes <= 0,
		.in_proportion = d->nmeasured == 0,
		.may_reorder = c->opt.update_in_backward == TRI_AUTO,
		.exact = g->nnode < LARGE && c->opt.offload != OFFLOAD_AUTO
			? 5 : 2,
		.device = d,
		.seconds = c->opt.plan_sec,
		.exact_sec = c->opt.plan_sec > 0 ? c->opt.plan_sec : EXACT_SEC,
	};
	if (!find_batch_dim(&c->opt, g, &r->batch_dim, a, diag))
		return false;
	set_free(c, r, d->host > 0);
	return r->may.batch || find_fixed_batch(&c->opt, g, r, a, diag);
}

void
auto_take_experts(const struct cli *c, const Graph *g, struct auto_request *r)
{
	r->experts = experts_count(g);
	r->may.ep = r->experts > 1 && !option_given(c, "ep");
}

static void
bind_batch(struct options *o, const char *name, int64_t size, Arena *a)
{
	struct dim_binding *dim = arena_array(a, (size_t)o->ndim + 1,
	                                      sizeof *dim);

	for (int i = 0; i < o->ndim; i++)
		dim[i] = o->dim[i];
	dim[o->ndim++] = (struct dim_binding){ .name = name, .size = size };
	o->dim = dim;
}

struct options
auto_configured(const struct cli *c, const struct auto_request *r,
                const struct auto_config *x, bool budget, Arena *a)
{
	struct options o = c->opt;

	o.batch_dim = NULL;
	o.tp = x->tp > 1 ? x->tp : 0;
	o.dp = x->dp > 1 ? x->dp : 0;
	o.sp = x->sp;
	o.zero = x->zero;
	o.zero_group = x->zero_group;
	o.ep = x->ep > 1 ? x->ep : 0;
	o.pp = x->pp > 1 ? x->pp : 0;
	o.stages = x->pp > 1;
	if (o.stages)
		o.update_in_backward = TRI_OFF;
	o.grad_accum = x->accum;
	o.microbatches = 0;
	o.plan_sec = 0;
	if (r->may.halves)
		o.halves = x->halves ? SPLIT_ON : SPLIT_OFF;
	if (x->offload)
		o.offload = OFFLOAD_AUTO;
	o.budget_bytes = budget ? r->budget : -1;
	if (r->may.batch)
		bind_batch(&o, r->batch_dim, x->batch, a);
	o.account = o.compare = o.curve = o.stats = o.eval = false;
	return o;
}

/* ---- the line to type ---- */

/* Options of the search itself, and those whose value was no choice, or is
 * what auto_words says. */
static bool
is_of_search(const char *name, const char *value)
{
	static const char *const own[] = { "auto", "devices", "global-batch",
		"json", "plan-time", "plan-only" };
	static const char *const said[][2] = {
		{ "dp", "auto" }, { "dp", "off" }, { "dp", "1" }, { "tp", "1" },
		{ "zero", "auto" }, { "halves", "auto" },
	};

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strcmp(name, own[i]))
			return true;
	if (!value)
		return false;
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		if (!strcmp(name, said[i][0]) && !strcmp(value, said[i][1]))
			return true;
	return !strcmp(name, "dim") && strlen(value) > 2
		&& !strcmp(value + strlen(value) - 2, "=?");
}

/* The words of one option from *i on, unless it is of the search; *i moves to
 * the last of them. */
static int
keep_option(const struct cli *c, char **flag, int *i, const char **to)
{
	const struct option_spec *row = option_find(c->row, c->nrow, flag[*i]);
	int first = *i, n = 0;
	const char *value = row && row->arg ? option_value(c->nflag, flag, i)
		: NULL;

	if (!strncmp(flag[first], "-o", 2)) {
		*i += !flag[first][2];
		return 0;
	}
	if (row && is_of_search(row->name, value))
		return 0;
	for (int k = first; k <= *i; k++)
		to[n++] = flag[k];
	return n;
}

int
auto_arguments(const struct cli *c, const struct auto_request *r,
               const struct auto_config *x, const char *out,
               const char ***argument, Arena *a)
{
	const char **w = arena_array(a, (size_t)c->nflag + AUTO_WORDS + 8,
	                             sizeof *w);
	char **flag = arena_copy(a, c->flag, ((size_t)c->nflag + 1)
	                                     * sizeof *flag);
	bool plain = *c->model != '-';
	int n = 0;

	if (plain)
		w[n++] = c->model;
	for (int i = 0; i < c->nflag && strcmp(flag[i], "--"); i++)
		if (flag[i] != c->model)
			n += keep_option(c, flag, &i, w + n);
	n += auto_words(r, x, false, w + n, a);
	if (r->device_budget && r->budget > 0) {
		w[n++] = "--memory-budget";
		w[n++] = auto_size(r->budget, a);
	}
	w[n++] = "-o";
	w[n++] = out;
	if (!plain) {
		w[n++] = "--";
		w[n++] = c->model;
	}
	*argument = w;
	return n;
}
