/* Write the report of `ckc inspect` as a page. */
#include "frontend/inspect/findings.h"

#include <stdlib.h>
#include <string.h>

/* A name from the file between two texts. */
static void
print_name(FILE *out, const char *before, const char *name, const char *after)
{
	fputs(before, out);
	diag_escape(out, name);
	fputs(after, out);
}

static const char *
init_text(const struct flat_val *v, char *buf, size_t n)
{
	Shape s = { .rank = (int)v->init->n_dims };

	if (v->init->n_dims > MAX_RANK) {
		snprintf(buf, n, "rank %zu", v->init->n_dims);
		return buf;
	}
	for (int i = 0; i < s.rank; i++)
		s.dim[i] = v->init->dims[i];
	if (onnx_dtype(v->init->data_type) == DT_NONE) {
		snprintf(buf, n, "%s", onnx_dtype_name(v->init->data_type));
		return buf;
	}
	return shape_text(buf, n, onnx_dtype(v->init->data_type), &s);
}

/* A line of the page: initializers whose names differ only in numbers, as in
 * equal layers. */
struct line {
	const struct flat_val *v;
	const char *pattern;            /* the name with * for numbers */
	int count;                      /* initializers; 0: in another line */
};

static const char *
make_pattern(Arena *a, const char *name)
{
	char *s = arena_alloc(a, strlen(name) + 1), *to = s;

	while (*name) {
		size_t n = strspn(name, "0123456789");

		*to++ = n ? '*' : *name;
		name += n ? n : 1;
	}
	return s;
}

static int
likeness(const struct line *a, const struct line *b)
{
	const Onnx__TensorProto *s = a->v->init, *t = b->v->init;
	int c = strcmp(a->pattern, b->pattern);

	if (c == 0 && s->n_dims != t->n_dims)
		c = s->n_dims < t->n_dims ? -1 : 1;
	if (c == 0 && s->n_dims)
		c = memcmp(s->dims, t->dims, s->n_dims * sizeof *s->dims);
	if (c == 0)
		c = s->data_type - t->data_type;
	if (c == 0)
		c = a->v->frozen - b->v->frozen;
	return c ? c : strcmp(a->v->reason, b->v->reason);
}

static int
by_likeness(const void *a, const void *b)
{
	const struct line *const *p = a, *const *q = b;
	int c = likeness(*p, *q);

	return c ? c : *p < *q ? -1 : *p > *q;
}

/* Merge each group of similar lines into its first line. */
static void
join_lines(struct inspect_report *x, struct line *line, size_t n)
{
	struct line **sorted = arena_array(x->arena, n + 1, sizeof *sorted);

	for (size_t i = 0; i < n; i++)
		sorted[i] = &line[i];
	qsort(sorted, n, sizeof *sorted, by_likeness);
	for (size_t i = 0, k; i < n; i = k)
		for (k = i; k < n && likeness(sorted[i], sorted[k]) == 0; k++)
			sorted[i]->count++;
}

static void
print_line(const struct line *l, FILE *out)
{
	char buf[160];

	print_name(out, "  ", l->count > 1 ? l->pattern : l->v->name, "  ");
	fprintf(out, "%s%s  ", init_text(l->v, buf, sizeof buf),
	        l->v->frozen ? "  frozen" : "");
	if (l->count > 1)
		fprintf(out, "%d times  ", l->count);
	fprintf(out, "%s\n", l->v->reason);
}

static void
print_inits(struct inspect_report *x, FILE *out, enum verdict verdict)
{
	struct line *line = arena_array(x->arena, (size_t)x->f->nval,
	                                sizeof *line);
	size_t n = 0;
	int other = 0;

	FOR_FLAT_VALS (v, x->f) {
		if (!v->init || v->verdict != verdict)
			continue;
		if (verdict == VERDICT_CONST && !v->frozen && (!v->reached
		    || dtype_info[onnx_dtype(v->init->data_type)].cls != 'f'))
			other++;
		else
			line[n++] = (struct line){
				v, make_pattern(x->arena, v->name), 0
			};
	}
	join_lines(x, line, n);
	for (size_t i = 0; i < n; i++)
		if (line[i].count)
			print_line(&line[i], out);
	if (other)
		fprintf(out, "  %d more without a gradient\n", other);
}

static void
print_size(FILE *out, int64_t n)
{
	if (n >= (int64_t)1 << 30)
		fprintf(out, "%.2f GiB", (double)n / (1 << 30));
	else if (n >= 1 << 20)
		fprintf(out, "%.2f MiB", (double)n / (1 << 20));
	else
		fprintf(out, "%.1f KiB", (double)n / 1024);
}

/* Print a shape, with symbolic dims by name. */
static void
print_shape(const Val *v, FILE *out)
{
	char buf[512];
	bool named = false;

	for (int i = 0; i < v->shape.rank; i++)
		named |= v->shape.dim[i] < 0 && v->dim_name[i];
	if (!named) {
		fprintf(out, "%s\n", shape_text(buf, sizeof buf, v->dt,
		                                &v->shape));
		return;
	}
	fprintf(out, "%s[", dtype_info[v->dt].text);
	for (int i = 0; i < v->shape.rank; i++)
		if (v->shape.dim[i] >= 0)
			fprintf(out, "%s%jd", i ? "," : "",
			        (intmax_t)v->shape.dim[i]);
		else
			print_name(out, i ? "," : "", v->dim_name[i]
			           ? v->dim_name[i] : "?", "");
	fputs("]\n", out);
}

static void
print_values(struct inspect_report *x, FILE *out)
{
	const Onnx__ModelProto *m = x->f->file->model;

	fprintf(out, "IR version %jd, opset %d", (intmax_t)m->ir_version,
	        x->f->opset);
	for (size_t i = 0; i < m->n_opset_import; i++)
		if (m->opset_import[i]->domain && *m->opset_import[i]->domain
		    && strcmp(m->opset_import[i]->domain, "ai.onnx") != 0) {
			print_name(out, ", ", m->opset_import[i]->domain, " ");
			fprintf(out, "%jd",
			        (intmax_t)m->opset_import[i]->version);
		}
	print_name(out, ", written by ", m->producer_name ? m->producer_name
	           : "unknown", " ");
	print_name(out, "", m->producer_version ? m->producer_version : "",
	           "\n");
	fprintf(out, "%d nodes", x->f->nnode);
	if (x->f->ninlined)
		fprintf(out, " (%d function calls inlined)", x->f->ninlined);
	fputs("\n\ninputs\n", out);
	FOR_VALS (v, x->g) {
		if (v->kind != V_INPUT)
			continue;
		print_name(out, "  ", v->name, "  ");
		print_shape(v, out);
	}
	fputs("outputs\n", out);
	for (int i = 0; i < x->f->noutput; i++)
		print_name(out, "  ", x->f->val[x->f->output[i]].name,
		           x->ntarget == 1 && x->target[0] == x->f->output[i]
		           ? "  trained on\n" : "\n");
	if (x->ndim)
		fputs("dimensions to bind\n", out);
	for (int i = 0; i < x->ndim; i++) {
		print_name(out, "  ", x->dim[i].flag, "  (");
		print_name(out, "", x->dim[i].where, ")\n");
	}
}

static void
print_op_name(FILE *out, const struct coverage *c)
{
	print_name(out, "", c->domain, *c->domain ? "." : "");
	print_name(out, "", c->type, " ");
	fprintf(out, "%d", c->count);
}

/* List operators of one kind, with lines wrapped. */
static void
print_kind(struct inspect_report *x, FILE *out, enum support kind,
           const char *text)
{
	enum { WIDTH = 78 };
	size_t at = WIDTH;
	bool any = false;

	for (int i = 0; i < x->nop; i++) {
		const struct coverage *c = &x->op[i];
		size_t n = strlen(c->domain) + strlen(c->type) + 5;

		if (c->support != kind)
			continue;
		if (any)
			putc(',', out);
		else
			fprintf(out, "  %s:", text);
		if (at + n > WIDTH) {
			fputs("\n   ", out);
			at = 4;
		}
		putc(' ', out);
		print_op_name(out, c);
		at += n;
		any = true;
	}
	if (any)
		putc('\n', out);
}

static void
print_ops(struct inspect_report *x, FILE *out)
{
	fputs("operators (number of nodes)\n", out);
	for (int i = 0; i < x->nop; i++) {
		const struct coverage *c = &x->op[i];

		if (c->support != MISSING)
			continue;
		fputs("  NOT SUPPORTED: ", out);
		print_op_name(out, c);
		print_name(out, " (first '", c->first, "'");
		fprintf(out, "%s%s)\n", c->hint ? "; " : "",
		        c->hint ? c->hint : "");
	}
	print_kind(x, out, FORWARD, "forward, NO GRADIENT");
	print_kind(x, out, GRADIENT, "forward and gradient");
	print_kind(x, out, NOT_NEEDED, "forward, no gradient needed");
}

const char *
findings_warning(const struct inspect_report *x, int i)
{
	const char *lacks = x->f->file->lacks;

	if (i < x->lint.n)
		return x->lint.at[i].text;
	i -= x->lint.n;
	if (lacks && i == 0)
		return lacks;
	i -= lacks != NULL;
	return i < x->opt->nnote ? x->opt->note[i] : NULL;
}

static void
print_warnings(struct inspect_report *x, FILE *out)
{
	const char *text;

	for (int i = 0; (text = findings_warning(x, i)); i++) {
		int ndetail = i < x->lint.n ? x->lint.at[i].ndetail : 0;

		if (i == 0)
			fputs("\nwarnings\n", out);
		print_name(out, *text ? "  " : "", text, "\n");
		for (int k = 0; k < ndetail; k++) {
			const char *detail = x->lint.at[i].detail[k];

			print_name(out, *detail ? "      " : "", detail, "\n");
		}
	}
}

/* Print the messages of the compile without the program's name. */
static void
print_errors(const struct import_options *o, FILE *out)
{
	static const char program[] = "ckc: ";

	if (o->outcome != OUTCOME_REFUSED || !o->refusal)
		return;
	fputs("\nerrors\n", out);
	for (const char *line = o->refusal; *line;) {
		size_t n = strcspn(line, "\n");
		size_t skip = strncmp(line, program, sizeof program - 1) == 0
			? sizeof program - 1 : 0;

		fprintf(out, "  %.*s\n", (int)(n - skip), line + skip);
		line += n + (line[n] == '\n');
	}
}

static void
print_verdict(const struct import_options *o, FILE *out)
{
	const char *can = o->all_outputs ? "be compiled" : "be trained";

	switch (o->outcome) {
	case OUTCOME_ACCEPTED:
		fprintf(out, "can %s\n", can);
		break;
	case OUTCOME_UNBOUND:
		fprintf(out, "can %s once dimensions are bound", can);
		print_name(out, ": ", o->unbound, "\n");
		break;
	case OUTCOME_REFUSED:
		fprintf(out, "cannot %s: see the errors above\n", can);
		break;
	case OUTCOME_UNKNOWN:
		break;
	}
}

static void
print_bytes(struct inspect_report *x, FILE *out)
{
	const struct step_bytes *b = &x->opt->step;

	fputs("\nmemory: parameters ", out);
	print_size(out, x->param_bytes);
	if (b->rule && b->grad >= 0) {
		fputs(", gradients ", out);
		print_size(out, b->grad);
		fprintf(out, "%s, optimizer (%s) ", b->early
		        ? " (each freed after its update)" : "", b->rule);
		print_size(out, b->state);
	}
	if (b->all) {
		fprintf(out, "; training step %s: ", b->recomputes
		        ? "with recomputation" : "without recomputation");
		print_size(out, b->all);
		fprintf(out, " (%jd B)\n", (intmax_t)b->all);
	} else {
		fputs(x->opt->outcome == OUTCOME_UNBOUND
		      ? "; bind the dimensions above to see the memory of a "
		      "step\n" : "\n", out);
	}
}

void
inspect_page(struct inspect_report *x, FILE *out)
{
	print_values(x, out);
	fprintf(out, "\nparameters: %jd, %jd elements, ", (intmax_t)x->nparam,
	        (intmax_t)x->nelem);
	print_size(out, x->param_bytes);
	fputc('\n', out);
	print_inits(x, out, VERDICT_PARAM);
	if (x->nbuffer) {
		fprintf(out, "buffers: %jd, ", (intmax_t)x->nbuffer);
		print_size(out, x->buffer_bytes);
		fputc('\n', out);
		print_inits(x, out, VERDICT_BUFFER);
	}
	fputs("constants\n", out);
	print_inits(x, out, VERDICT_CONST);
	fputc('\n', out);
	print_ops(x, out);
	print_warnings(x, out);
	print_errors(x->opt, out);
	print_bytes(x, out);
	print_verdict(x->opt, out);
}
