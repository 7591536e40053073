/* Setters of ckc's options: they parse an argument and store its value. */
#include "frontend/driver/opts_set.h"
#include "runtime/support/number.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
reject_option(struct arg_parser *p, enum option_fault fault, const char *arg,
              const char *expected)
{
	bool twice = fault == OPTION_TWICE;

	fprintf(p->err, twice ? "ckc: --%s is given twice, as '"
	        : "ckc: --%s: expected ", p->row->name);
	if (twice)
		diag_escape(p->err, expected);
	else
		fputs(expected, p->err);
	fputs(twice ? "' and as '" : ", found '", p->err);
	diag_escape(p->err, arg);
	fputs("'\n", p->err);
	return false;
}

static bool
reject_value(struct arg_parser *p, const char *arg, const char *expected)
{
	return reject_option(p, OPTION_BAD, arg, expected);
}

/* "-" means standard output in other options, which is no folder. */
bool
set_folder(struct arg_parser *p, const char *arg, void *field)
{
	if (!strcmp(arg, "-"))
		return reject_value(p, arg,
		                    "a folder, not standard output (for a "
		                    "folder named '-': ./-)");
	return set_once(p, arg, field);
}

/* Add an element to the list of *n; list: address of a pointer to any type. */
static bool
append(struct arg_parser *p, void *list, int *n, const void *one, size_t size)
{
	char *grown = arena_array(p->arena, (size_t)*n + 1, size), *old;

	memcpy(&old, list, sizeof old);
	if (*n)
		memcpy(grown, old, (size_t)*n * size);
	memcpy(grown + (size_t)(*n)++ * size, one, size);
	memcpy(list, &grown, sizeof grown);
	return true;
}

bool
add_name(struct arg_parser *p, const char *arg, void *field)
{
	struct name_list *list = field;

	return *arg ? append(p, &list->v, &list->n, &arg, sizeof arg)
		: reject_value(p, arg, "a name or pattern");
}

/* The order of --train and --freeze counts, so they share a list. */
static bool
add_wish(struct arg_parser *p, const char *arg, struct options *o, bool wanted)
{
	const struct glob_wish w = { arg, wanted };

	return *arg ? append(p, &o->wish, &o->nwish, &w, sizeof w)
		: reject_value(p, arg, "a name or pattern");
}

bool
add_train(struct arg_parser *p, const char *arg, void *field)
{
	return add_wish(p, arg, field, true);
}

bool
add_freeze(struct arg_parser *p, const char *arg, void *field)
{
	return add_wish(p, arg, field, false);
}

bool
add_batchnorm(struct arg_parser *p, const char *arg, void *field)
{
	struct cli *c = field;
	const char *eq = strrchr(arg, '='), *form = eq ? eq + 1 : arg;
	struct glob_wish w = { "*", strcmp(form, "batch") == 0 };

	if ((!w.wanted && strcmp(form, "running") != 0) || eq == arg)
		return reject_value(p, arg, "batch, running, GLOB=batch or "
		                    "GLOB=running");
	if (eq)
		w.glob = arena_printf(p->arena, "%.*s", (int)(eq - arg), arg);
	return append(p, &c->batchnorm, &c->nbatchnorm, &w, sizeof w);
}

static bool
parse_count(const char *s, int64_t *x)
{
	return number_whole(s, INT64_MAX, (uint64_t *)x);
}

/* NAME=N: split at the last '=', because names may contain one. */
static const char *
split_binding(struct arg_parser *p, const char *arg, const char **name)
{
	const char *eq = strrchr(arg, '=');

	if (!eq || eq == arg || !eq[1])
		return NULL;
	*name = arena_printf(p->arena, "%.*s", (int)(eq - arg), arg);
	return eq + 1;
}

bool
add_dim_binding(struct arg_parser *p, const char *arg, void *field)
{
	struct options *o = field;
	struct dim_binding b = { 0 };
	const char *size = split_binding(p, arg, &b.name);

	if (size && !strcmp(size, "?"))
		return set_once(p, b.name, &o->batch_dim);
	if (!size || !parse_count(size, &b.size) || b.size <= 0)
		return reject_value(p, arg,
		                    "NAME=N or INPUT.AXIS=N with N > 0");
	return append(p, &o->dim, &o->ndim, &b, sizeof b);
}

static bool
parse_shape(const char *s, Shape *shape)
{
	memset(shape, 0, sizeof *shape);
	if (!strcmp(s, "scalar"))
		return true;
	for (;;) {
		char *end;
		int64_t x;

		errno = 0;
		x = strtoll(s, &end, 10);
		if (!isdigit((unsigned char)*s) || errno || x < 0
		    || shape->rank == MAX_RANK)
			return false;
		shape->dim[shape->rank++] = x;
		if (!*end)
			return true;
		if (*end != 'x')
			return false;
		s = end + 1;
	}
}

bool
add_shape(struct arg_parser *p, const char *arg, void *field)
{
	struct options *o = field;
	struct shape_binding b = { 0 };
	const char *shape = split_binding(p, arg, &b.input);

	if (!shape || !parse_shape(shape, &b.shape))
		return reject_value(p, arg, "INPUT=8x128 (at most 8 extents)");
	return append(p, &o->shape, &o->nshape, &b, sizeof b);
}

bool
add_shard_constraint(struct arg_parser *p, const char *arg, void *field)
{
	struct options *o = field;
	struct shard_constraint w = { .axis = 0 };
	const char *state = split_binding(p, arg, &w.glob);
	static const char letter[] = "IRSP"; /* in the order of PlacementKind */
	const char *kind = state ? strchr(letter, *state) : NULL;

	if (!kind || !*kind
	    || (*kind == 'S' ? state[1] < '0' || state[1] >= '0' + MAX_RANK
	        || state[2] : state[1] != 0))
		return reject_value(p, arg,
		                    "VALUE=STATE with I, R, P or S0, S1 ...");
	w.kind = (PlacementKind)(kind - letter);
	w.axis = *kind == 'S' ? state[1] - '0' : 0;
	return append(p, &o->shard, &o->nshard, &w, sizeof w);
}

bool
add_precision(struct arg_parser *p, const char *arg, void *field)
{
	struct options *o = field;
	struct precision_wish w = { .op = !strncmp(arg, "op:", 3) };
	const char *type = split_binding(p, arg + (w.op ? 3 : 0), &w.glob);

	for (DType dt = DT_NONE + 1; type && dt < DT_COUNT; dt++)
		if (!strcmp(dtype_info[dt].text, type))
			w.dt = dt;
	if (w.dt != DT_F32 && !dtype_is_half(w.dt))
		return reject_value(p, arg,
		                    "VALUE=TYPE or op:NAME=TYPE with f32, bf16 "
		                    "or f16");
	return append(p, &o->precision, &o->nprecision, &w, sizeof w);
}

bool
add_frozen_dtype(struct arg_parser *p, const char *arg, void *field)
{
	static const struct { const char *text; DType dt; } type[] = {
		{ "bf16", DT_BF16 }, { "f16", DT_F16 }, { "int8", DT_INT8X64 },
		{ "nf4", DT_NF4X64 },
	};
	struct options *o = field;
	const char *eq = strrchr(arg, '='), *text = eq ? eq + 1 : arg;
	struct type_wish w = { "*", DT_NONE };

	for (size_t i = 0; i < sizeof type / sizeof *type; i++)
		if (!strcmp(type[i].text, text))
			w.dt = type[i].dt;
	if (!w.dt || eq == arg)
		return reject_value(p, arg, "bf16, f16, int8, nf4 or GLOB= and "
		                    "one of them");
	if (eq)
		w.glob = arena_printf(p->arena, "%.*s", (int)(eq - arg), arg);
	return append(p, &o->frozen_dtype, &o->nfrozen_dtype, &w, sizeof w);
}

enum { RANK_MOST = 65536 };             /* rank of an adapter */

bool
add_lora(struct arg_parser *p, const char *arg, void *field)
{
	struct options *o = field;
	struct lora_wish w = { 0 };
	const char *rank = split_binding(p, arg, &w.glob), *alpha;
	size_t n = rank ? strcspn(rank, ":") : 0;

	alpha = rank && rank[n] ? rank + n + 1 : rank;
	if (!rank || !parse_count(arena_printf(p->arena, "%.*s", (int)n, rank),
	                          &w.rank) || w.rank <= 0 || w.rank > RANK_MOST
	    || !number_real(alpha, &w.alpha)
	    || !((float)(w.alpha / (double)w.rank) > 0 && w.alpha < FLT_MAX))
		return reject_value(p, arg,
		                    "GLOB=RANK or GLOB=RANK:ALPHA with RANK "
		                    "from 1 to 65536 and ALPHA > 0");
	return append(p, &o->lora, &o->nlora, &w, sizeof w);
}

bool
add_const(struct arg_parser *p, const char *arg, void *field)
{
	struct cli *c = field;
	struct import_const b;
	const char *eq = strchr(arg, '=');

	if (!eq || eq == arg || !eq[1])
		return reject_value(p, arg, "INPUT=FILE (.npy or .pb)");
	b.input = arena_printf(p->arena, "%.*s", (int)(eq - arg), arg);
	b.file = eq + 1;
	for (int i = 0; i < c->nconst; i++)
		if (!strcmp(c->constant[i].input, b.input))
			return reject_value(p, arg, "one FILE for each INPUT");
	return append(p, &c->constant, &c->nconst, &b, sizeof b);
}

/* no step is so small: a unit or % is missing */
enum { UNITLESS_MIN = 4096 };

static bool
reject_unitless(struct arg_parser *p, const char *arg)
{
	fprintf(p->err, "ckc: --memory-budget: expected a size with a unit, or "
	        "a percentage, found '%s'; try: --memory-budget ", arg);
	if (strlen(arg) < 3 || !strcmp(arg, "100"))
		fprintf(p->err, "%s%% or --memory-budget %sMiB\n", arg, arg);
	else
		fprintf(p->err, "%sMiB or --memory-budget %sB\n", arg, arg);
	return false;
}

bool
set_budget(struct arg_parser *p, const char *arg, void *field)
{
	struct options *o = field;
	size_t n = strlen(arg);
	unsigned char last = n ? (unsigned char)arg[n - 1] : 0;
	char *end;

	o->budget_pct = 0;
	o->budget_bytes = -1;
	if (n && arg[n - 1] == '%' && isdigit((unsigned char)*arg)) {
		o->budget_pct = strtod(arg, &end);
		if (end == arg + n - 1 && o->budget_pct > 0
		    && o->budget_pct <= 1e6)
			return true;
	} else if (number_size(arg, &o->budget_bytes) && o->budget_bytes > 0) {
		return o->budget_bytes >= UNITLESS_MIN || isalpha(last)
			|| reject_unitless(p, arg);
	}
	return reject_value(p, arg,
	                    "a size such as 512MiB, 24GB (24G), or 60%");
}

bool
set_recompute(struct arg_parser *p, const char *arg, void *field)
{
	static const char *const words[] = {
		"auto", "none", "full", "selective", NULL
	};
	struct options *o = field;

	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], arg)) {
			o->remat = (enum remat_mode)i;
			return true;
		}
	if (!strncmp(arg, "every=", 6)
	    && parse_count(arg + 6, &o->remat_every) && o->remat_every > 0) {
		o->remat = REMAT_EVERY;
		return true;
	}
	return reject_value(p, arg, "auto, none, full, selective or every=K");
}

bool
set_curve_svg(struct arg_parser *p, const char *arg, void *field)
{
	struct cli *c = field;

	c->curve = true;
	return set_once(p, arg, &c->curve_svg);
}

bool
set_target(struct arg_parser *p, const char *arg, void *field)
{
	const char *names = machines->name;

	for (const struct machine *m = machines; m->name; m++) {
		if (m > machines)
			names = arena_printf(p->arena, "%s or %s", names,
			                     m->name);
		if (strcmp(arg, m->name))
			continue;
		*(const struct machine **)field = m;
		return true;
	}
	return reject_value(p, arg, names);
}

bool
set_machine_option(struct arg_parser *p, const char *arg, void *field)
{
	struct cli *c = p->object;
	ptrdiff_t at = (const char **)field - c->machine_option[0];
	const struct machine_option *o = &machines[at / MACHINE_OPTIONS]
		.option[at % MACHINE_OPTIONS];

	if (o->accepts && !o->accepts(arg))
		return reject_value(p, arg, o->expected);
	return set_string(p, arg, field);
}

bool
set_dp(struct arg_parser *p, const char *arg, void *field)
{
	if (strcmp(arg, "auto") && strcmp(arg, "off"))
		return set_whole(p, arg, field);
	*(int64_t *)field = *arg == 'a' ? DP_ANY : 0;
	return true;
}

bool
set_cp_dim(struct arg_parser *p, const char *arg, void *field)
{
	struct cli *c = p->object;
	const char *eq = strrchr(arg, '=');
	uint64_t axis;

	(void)field;
	if (!eq || eq == arg || !number_whole(eq + 1, MAX_RANK - 1, &axis))
		return reject_value(p, arg, "INPUT=AXIS, an input and one of "
		                    "its dims, counted from 0");
	c->opt.cp_input = arena_printf(p->arena, "%.*s", (int)(eq - arg), arg);
	c->opt.cp_axis = (int64_t)axis;
	return true;
}

bool
set_zero(struct arg_parser *p, const char *arg, void *field)
{
	uint64_t stage;
	bool is_auto = !strcmp(arg, "auto");

	if (!is_auto && !number_whole(arg, 3, &stage))
		return reject_value(p, arg, "0, 1, 2, 3 or auto");
	*(int64_t *)field = is_auto ? ZERO_AUTO : (int64_t)stage;
	return true;
}

bool
set_schedule(struct arg_parser *p, const char *arg, void *field)
{
	static const char interleaved[] = "interleaved=";
	struct options *o = field;
	size_t n = sizeof interleaved - 1;
	uint64_t chunks = 1;

	o->zero_bubble = strcmp(arg, "zb-h1") == 0;
	if (strcmp(arg, "1f1b") != 0 && !o->zero_bubble
	    && (strncmp(arg, interleaved, n) != 0
	        || !number_whole(arg + n, GROUP_MAX, &chunks) || chunks < 2))
		return reject_value(p, arg, "1f1b, interleaved=V with V > 1 "
		                    "or zb-h1");
	o->chunks = chunks > 1 ? (int64_t)chunks : 0;
	return true;
}

bool
set_thread_count(struct arg_parser *p, const char *arg, void *field)
{
	int64_t x;
	bool ok = set_whole(p, arg, &x);

	*(int *)field = ok ? (int)x : 0;
	return ok;
}

bool
set_graph_budget(struct arg_parser *p, const char *arg, void *field)
{
	struct cli *c = field;
	double x;
	bool real = number_real(arg, &x);

	c->budget = -1;
	c->budget_bytes = -1;
	if (real && x > 0 && x <= 1)
		c->budget = x;
	else if (number_size(arg, &c->budget_bytes) && c->budget_bytes > 0)
		return true;
	else if (real && x > 1 && x < 0x1p62)
		c->budget_bytes = (int64_t)ceil(x);
	else
		return reject_value(p, arg, "a fraction from 0 to 1, or a "
			"number of bytes");
	return true;
}

bool
set_size(struct arg_parser *p, const char *arg, void *field)
{
	return (number_size(arg, field) && *(int64_t *)field > 0)
		|| reject_value(p, arg, "a size such as 256MiB");
}
