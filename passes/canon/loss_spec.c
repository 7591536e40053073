/* Parse --loss KIND[:OUTPUT][,KEY=VALUE]..., and find outputs by name. */
#include "passes/canon/loss.h"
#include "runtime/support/number.h"

#include <float.h>
#include <string.h>

static const struct {
	const char *name, *value;
} key_text[LOSS_KEYS] = {
	[LOSS_AXIS] = { "axis", "N" }, [LOSS_IGNORE] = { "ignore", "K" },
	[LOSS_SMOOTHING] = { "smoothing", "E (0 <= E < 1)" },
	[LOSS_WEIGHTS] = { "weights", "W/W/..." },
	[LOSS_POS_WEIGHT] = { "pos_weight", "W[/W...]" },
	[LOSS_DELTA] = { "delta", "D (above 0)" },
	[LOSS_REDUCTION] = { "reduction", "mean|sum" },
};

struct spec_parser {
	Pass *p;
	const Graph *g;
	const char *kind;
	unsigned keys;
	struct loss_spec *spec;
};

ValId
loss_find_output(const Graph *g, const char *name)
{
	FOR_VALS (v, g)
		if (v->output && val_is_named(v, name))
			return val_id(g, v);
	return 0;
}

void
loss_list_outputs(Pass *p, const Graph *g)
{
	enum { MOST = 20 };
	char text[160];
	int n = 0;

	FOR_VALS (v, g) {
		if (!v->output || n++ >= MOST)
			continue;
		shape_text(text, sizeof text, v->dt, &v->shape);
		diag_more(p->diag, "output '%s': %s", v->name, text);
	}
	if (n > MOST)
		diag_more(p->diag, "and %d more", n - MOST);
}

/* Parse numbers separated by slashes. */
static bool
read_weights(struct spec_parser *r, char *text)
{
	size_t n = 1;
	float *w;
	double x;

	for (const char *s = text; *s; s++)
		n += *s == '/';
	w = arena_array(r->g->arena, n, sizeof *w);
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(text, "/");

		text[len] = '\0';
		/* the step computes in float32 */
		if (!number_real(text, &x) || x < 0 || x > (double)FLT_MAX)
			return false;
		w[i] = (float)x;
		text += len + 1;
	}
	r->spec->weight = w;
	r->spec->nweight = (int)n;
	return true;
}

static bool
is_valid_value(enum loss_key k, double x)
{
	switch (k) {
	case LOSS_SMOOTHING:
		return x >= 0 && x < 1;
	case LOSS_DELTA:
		return x >= (double)FLT_MIN && x <= (double)FLT_MAX;
	default:
		return x >= INT32_MIN && x <= INT32_MAX
			&& x == (double)(int64_t)x;
	}
}

static bool
read_value(struct spec_parser *r, enum loss_key k, char *value)
{
	switch (k) {
	case LOSS_WEIGHTS:
	case LOSS_POS_WEIGHT:
		return read_weights(r, value);
	case LOSS_REDUCTION:
		r->spec->sum = !strcmp(value, "sum");
		return r->spec->sum || !strcmp(value, "mean");
	default:
		return number_real(value, &r->spec->number[k])
			&& is_valid_value(k, r->spec->number[k]);
	}
}

static bool
refuse_setting(const struct spec_parser *r, const char *setting)
{
	const char *list = "";

	for (int k = 0; k < LOSS_KEYS; k++)
		if (r->keys & 1u << k)
			list = arena_printf(r->p->scratch, "%s%s%s=%s", list,
			                    *list ? ", " : "",
			                    key_text[k].name,
			                    key_text[k].value);
	return diag_error(r->p->diag, "--loss %s: expected %s, found '%s'",
	                  r->kind, list, setting);
}

/* Parse KEY=VALUE. */
static bool
read_setting(struct spec_parser *r, const char *text)
{
	size_t n = strcspn(text, "=");
	char *value;

	for (int k = 0; text[n] && k < LOSS_KEYS; k++) {
		if (!(r->keys & 1u << k) || strlen(key_text[k].name) != n
		    || strncmp(key_text[k].name, text, n) != 0)
			continue;
		value = arena_printf(r->p->scratch, "%s", text + n + 1);
		return read_value(r, (enum loss_key)k, value)
			|| refuse_setting(r, text);
	}
	return refuse_setting(r, text);
}

/* The whole text after the kind may be an output's name. */
bool
loss_parse_spec(Pass *p, const Graph *g, const char *kind, unsigned keys,
                const char *text, struct loss_spec *spec)
{
	struct spec_parser r = { p, g, kind, keys, spec };
	char *at = arena_printf(p->scratch, "%s", text + strlen(kind));

	*spec = (struct loss_spec){ .output = *at == ':' ? at + 1 : "" };
	spec->number[LOSS_AXIS] = -1;
	spec->number[LOSS_IGNORE] = -100;
	spec->number[LOSS_DELTA] = 1;
	if (loss_find_output(g, spec->output))
		return true;
	for (at = strchr(at, ','); at; ) {
		char *setting = at + 1;

		*at = '\0';
		at = strchr(setting, ',');
		if (at)
			*at = '\0';
		if (!read_setting(&r, setting))
			return false;
	}
	return true;
}
