/* The textual form of a graph: printing values, their types, marks and
 * contents. */
#include "ir/text/print.h"
#include "ir/placement.h"
#include "ir/text/text.h"
#include "runtime/support/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool
is_plain_word(const char *s)
{
	return *s && strspn(s, TEXT_WORD) == strlen(s);
}

void
text_quoted(FILE *out, const char *s)
{
	putc('"', out);
	diag_escape(out, s);
	putc('"', out);
}

void
text_name(FILE *out, char sigil, const char *name)
{
	putc(sigil, out);
	if (is_plain_word(name))
		fputs(name, out);
	else
		text_quoted(out, name);
}

void
text_word(FILE *out, const char *s)
{
	if (is_plain_word(s) && !strchr("0123456789+-.", *s))
		fputs(s, out);
	else
		text_quoted(out, s);
}

void
text_ref(FILE *out, const Graph *g, ValId v)
{
	if (v)
		text_name(out, '%', g->val[v].name);
	else
		putc('_', out);
}

static bool
same_as(DType dt, double x, double y)
{
	switch (dt) {
	case DT_F32:
		return (float)x == (float)y;
	case DT_F16:
		return float_to_half((float)x) == float_to_half((float)y);
	case DT_BF16:
		return float_to_bf16((float)x) == float_to_bf16((float)y);
	default:
		return x == y;
	}
}

void
text_float(FILE *out, double x, DType dt)
{
	static const int digits[] = { 6, 9, 17 };
	char text[40];

	if (isnan(x)) {
		fputs("nan", out);
		return;
	}
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof text, "%.*g", digits[i], x);
		if (same_as(dt, strtod(text, NULL), x))
			break;
	}
	fputs(text, out);
}

void
text_ints(FILE *out, int n, const int64_t *v)
{
	putc('[', out);
	for (int i = 0; i < n; i++)
		fprintf(out, "%s%lld", i ? "," : "", (long long)v[i]);
	putc(']', out);
}

void
text_type(FILE *out, const Val *v)
{
	const char *type = v->dt ? dtype_info[v->dt].text : "?";

	if (v->shape.rank < 0) {
		fprintf(out, "%s[*]", type);
		return;
	}
	fprintf(out, "%s[", type);
	for (int i = 0; i < v->shape.rank; i++) {
		const char *name = v->dim_name[i];

		if (i)
			putc(',', out);
		if (name)
			text_word(out, name);
		else if (v->shape.dim[i] < 0)
			putc('?', out);
		if (v->shape.dim[i] >= 0)
			fprintf(out, "%s%lld", name ? "=" : "",
			        (long long)v->shape.dim[i]);
	}
	putc(']', out);
}

static void
print_layout(FILE *out, const Graph *g, const Val *v)
{
	if (!val_contiguous(v)) {
		fputs(" strides ", out);
		text_ints(out, v->shape.rank, v->stride);
	}
	if (v->start)
		fprintf(out, " start %lld", (long long)v->start);
	if (v->base) {
		fputs(" in ", out);
		text_ref(out, g, v->base);
	} else {
		fprintf(out, " bytes %lld", (long long)v->nbytes);
	}
}

void
text_mark(FILE *out, const Graph *g, const char *word, ValId v)
{
	if (v) {
		fprintf(out, " %s ", word);
		text_ref(out, g, v);
	}
}

void
text_placement(FILE *out, const char *word, const Placement *s)
{
	if (s->kind == PLACEMENT_REPLICATE)
		return;
	fprintf(out, " %s ", word);
	if (s->kind != PLACEMENT_SHARD) {
		fputs(s->kind == PLACEMENT_REPLICATE_PARTIAL
		      ? "replicate_partial" : "partial", out);
		return;
	}
	fprintf(out, "%d [", s->axis);
	for (int i = 0; i < s->nsegment; i++)
		fprintf(out, "%s%lld", i ? "," : "", (long long)s->segment[i]);
	putc(']', out);
	if (s->first_axis != s->axis)
		fprintf(out, " from %d", s->first_axis);
	if (s->replication != 1)
		fprintf(out, " replication %lld", (long long)s->replication);
}

static void
print_shard_clause(FILE *out, const struct replica_shard *p)
{
	fputs(" shard ", out);
	text_ints(out, p->shape.rank, p->shape.dim);
	fputs(p->rows ? " rows" : "", out);
	text_placement(out, "whole_placement", &p->placement);
}

void
text_marks(FILE *out, const Graph *g, const Val *v)
{
	if (v->output)
		fputs(" output", out);
	if (v->frozen)
		fputs(" frozen", out);
	if (v->resident)
		fputs(" resident", out);
	if (v->host)
		fputs(" host", out);
	if (v->batch)
		fprintf(out, " batch %d", v->batch - 1);
	if (v->onnx) {
		fputs(" onnx", out);
		if (strcmp(v->onnx, v->name) != 0) {
			putc(' ', out);
			text_quoted(out, v->onnx);
		}
	}
	text_mark(out, g, "of", v->of);
	text_mark(out, g, "low_precision", v->low_precision_of);
	text_mark(out, g, "param", v->param);
	text_mark(out, g, "adjoint", v->grad_of);
	if (v->state) {
		fputs(" state ", out);
		text_word(out, v->state);
	}
	text_placement(out, "placement", &v->placement);
	if (v->shard)
		print_shard_clause(out, v->shard);
	if (v->laid_out)
		print_layout(out, g, v);
	if (v->offset >= 0)
		fprintf(out, " at %lld", (long long)v->offset);
}

/* ---- contents ---- */

static void
print_element(FILE *out, const Val *v, int64_t i)
{
	switch (dtype_info[v->dt].cls) {
	case 'f':
		text_float(out, val_float(v, i), v->dt);
		break;
	case 'u':
		fprintf(out, "%llu", (unsigned long long)val_int(v, i));
		break;
	default:
		fprintf(out, "%lld", (long long)val_int(v, i));
	}
}

void
text_contents(FILE *out, const Graph *g, const Val *v)
{
	Shape whole = val_whole(v);
	int64_t n = shape_nelem(&whole), nbytes = val_data_bytes(v);
	double x;

	if (!v->data || n < 0) {
		if (v->kind == V_CONST)
			fputs(" = ...", out);
		return;
	}
	if (n <= TEXT_LISTED && !val_is_blocks(v)) {
		fputs(" = {", out);
		for (int64_t i = 0; i < n; i++) {
			fputs(i ? ", " : "", out);
			print_element(out, v, i);
		}
		putc('}', out);
	} else if (v->kind == V_CONST && val_splat(g, val_id(g, v), &x)) {
		fputs(" = splat ", out);
		print_element(out, v, 0);
	} else if ((v->kind == V_CONST || n <= TEXT_LISTED)
	           && nbytes <= TEXT_HEX) {
		const unsigned char *p = v->data;

		fputs(" = hex \"", out);
		for (int64_t i = 0; i < nbytes; i++)
			fprintf(out, "%02x", p[i]);
		putc('"', out);
	} else if (v->kind == V_CONST) {
		fputs(" = ...", out);
	}
}
